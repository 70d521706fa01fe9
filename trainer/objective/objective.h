/* SPDX-License-Identifier: Apache-2.0
 *
 * objective.h: the loss that is minimized: (1 - kd_ratio) CE + kd_ratio temperature^2 D, where D is the divergence of
 * an objective (docs/objective.md).
 */
#ifndef NOJIT_TRAINER_OBJECTIVE_H
#define NOJIT_TRAINER_OBJECTIVE_H

#include "net/work.h"
#include "objective/losses.h"

#include <stddef.h>
#include <stdint.h>

/* Table of objectives: the name in enum objective and in functions (objective.c), the word of --objective, and D in
 * words, for help. */
#define OBJECTIVES(ROW)                                                                            \
    ROW(KL, kl, "the divergence that --beta selects")                                              \
    ROW(TVD, tvd,                                                                                  \
        "total variation distance, 1 minus the acceptance rate of speculative decoding with the "  \
        "student as draft model")

#define OBJECTIVE_ID(ID, word, help) OBJECTIVE_##ID,
#define OBJECTIVE_CHOICE(ID, word, help) "|" #word
#define OBJECTIVE_HELP(ID, word, help) "; " #word ": " help
enum objective { OBJECTIVES(OBJECTIVE_ID) };

/* Form in which a teacher gives the distributions of a chunk of rows. */
enum teacher_form {
    TEACHER_NONE,  /* no teacher */
    TEACHER_LOGITS /* logits of all tokens */
};

/* A chunk of rows of logits, and the places of the results. */
struct objective_rows {
    enum nj_dtype T;
    /* Number of rows, of columns read, of elements from one row to the next. */
    int count, vocab, ld;
    void *logits;  /* logits of the student, replaced by their gradient */
    void *teacher; /* logits of the teacher; NULL: there is no teacher, and the loss is CE */
    const int32_t *target;
    const float *state;               /* step state (step_state.h) */
    float *kd, *ce, *entropy, *agree; /* [count] parts of struct objective_sums for each row */
    float temperature, kd_ratio, beta;
    struct {
        void *at; /* place of the gradient as E5M2; NULL: it replaces the logits */
        float *scale;
        const int32_t *key; /* random key of its stochastic rounding */
        int ld, first; /* elements from one row to the next; the first row's place in the batch */
    } e5m2;
};

/* Return whether the gradient of the logits can be computed as E5M2. */
bool objective_has_e5m2(enum objective which);
/* Return whether --beta selects the divergence. */
bool objective_takes_beta(enum objective which);
/* Return the divergence as a formula, "KL(teacher || student)"; it may be written into the buffer. */
const char *objective_text(enum objective which, float beta, char *buffer, size_t bytes);

/* Compute the loss of each row, and the gradient. */
void objective_losses(struct work *r, enum objective which, const struct objective_rows *rows);
/* Compute the cross-entropy of each row of logits, without gradients; the logits are lost. */
void objective_cross_entropies(struct work *r, const struct objective_rows *rows);
/* Compute total variation distances at temperature 1; the logits stay as they are. */
void objective_distances(struct work *r, const struct objective_rows *rows);
/* Compute both Kullback-Leibler divergences and the student's entropy of rows of answers; the logits stay. */
void objective_answers(struct work *r, const struct objective_rows *rows);
/* Add the results of the rows to four sums: struct objective_sums or struct answer_sums. */
void objective_add(struct work *r, void *sums, const struct objective_rows *rows);

#endif
