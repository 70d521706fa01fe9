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

/* Forms in which a teacher gives the distributions of a chunk of rows; bits. */
enum teacher_form {
    TEACHER_NONE = 0,       /* no teacher */
    TEACHER_LOGITS = 1 << 0 /* logits of all tokens */
};

/* Table of objectives, a row for each:
 *
 *     ROW(ID, word, TAKES, BETA, E5M2, unit, help)
 *
 * ID: its number is OBJECTIVE_ID. word: of --objective; its functions are word_losses(), the launch of its kernel, and
 * word_text(), D as a formula (objective.c). TAKES: the forms of a teacher's distributions that its kernel reads (enum
 * teacher_form). BETA: TAKES_BETA or NO_BETA, whether --beta selects among its divergences. E5M2: HAS_E5M2 or NO_E5M2,
 * whether it can write the gradient of the logits as E5M2, for a student whose LM head is FP8. unit: that of D, whose
 * sum is kd_loss (losses.h; the other sums are the same for all objectives); "": none. help: D in words. */
#define OBJECTIVES(ROW)                                                                            \
    ROW(KL, kl, TEACHER_LOGITS, TAKES_BETA, HAS_E5M2, "nats",                                      \
        "the divergence that --beta selects")                                                      \
    ROW(TVD, tvd, TEACHER_LOGITS, NO_BETA, NO_E5M2, "",                                            \
        "total variation distance, 1 minus the acceptance rate of speculative decoding with the "  \
        "student as draft model")

#define OBJECTIVE_ID(ID, word, TAKES, BETA, E5M2, unit, help) OBJECTIVE_##ID,
/* The options that name objectives: the words of --objective, and help. */
#define OBJECTIVE_CHOICE(ID, word, TAKES, BETA, E5M2, unit, help) "|" #word
#define OBJECTIVE_HELP(ID, word, TAKES, BETA, E5M2, unit, help) "; " #word ": " help
#define OBJECTIVE_BETA(ID, word, TAKES, BETA, E5M2, unit, help) OBJECTIVE_##BETA(word)
#define OBJECTIVE_TAKES_BETA(word) " --objective " #word
#define OBJECTIVE_NO_BETA(word)
#define OBJECTIVE_PLAIN(ID, word, TAKES, BETA, E5M2, unit, help) OBJECTIVE_##E5M2(word)
#define OBJECTIVE_HAS_E5M2(word)
#define OBJECTIVE_NO_E5M2(word) ", with --objective " #word

/* The objectives: the rows of the table, and cross-entropy alone, that of a run without a teacher. */
enum objective { OBJECTIVES(OBJECTIVE_ID) OBJECTIVE_CE };

/* The numbers of an objective that the user chooses. */
struct objective_terms {
    float temperature, kd_ratio;
    float beta; /* the divergence, if it takes --beta: 0 forward, 1 reverse, between: mixed */
};

/* A chunk of rows of logits, and the places of the results. */
struct objective_rows {
    enum nj_dtype T;
    /* Number of rows, of columns read, of elements from one row to the next. */
    int count, vocab, ld;
    void *logits;  /* logits of the student, replaced by their gradient */
    void *teacher; /* logits of the teacher; NULL: there is no teacher, and the loss is CE */
    float cap;     /* bound of the student's logits, which the gradient passes; 0: none */
    const int32_t *target;
    const float *state;               /* step state (step_state.h) */
    float *kd, *ce, *entropy, *agree; /* [count] parts of struct objective_sums for each row */
    struct objective_terms terms;
    struct {
        void *at; /* place of the gradient as E5M2; NULL: it replaces the logits */
        float *scale;
        const int32_t *key; /* random key of its stochastic rounding */
        int ld, first; /* elements from one row to the next; the first row's place in the batch */
    } e5m2;
};

/* A row of the table, as the code reads it. */
struct objective_row {
    const char *word, *unit;
    unsigned takes; /* bits of enum teacher_form; 0: the objective needs no teacher */
    bool takes_beta, has_e5m2;
    /* Computes the loss of each row, and the gradient. */
    void (*losses)(struct work *r, const struct objective_rows *rows);
    /* Returns D as a formula, "KL(teacher || student)"; it may be written into the buffer. */
    const char *(*text)(const struct objective_terms *terms, char *buffer, size_t bytes);
};
extern const struct objective_row objectives[];

/* Return the objective of a run whose teacher gives this form: cross-entropy alone, if there is no teacher. */
enum objective objective_with(enum objective which, enum teacher_form form);
/* Return what is minimized, from the means of D and of the cross-entropy. */
double objective_value(enum objective which, const struct objective_terms *terms, double kd,
                       double ce);

/* Compute total variation distances at temperature 1; the logits stay as they are. */
void objective_distances(struct work *r, const struct objective_rows *rows);
/* Compute both Kullback-Leibler divergences and the student's entropy of rows of answers; the logits stay. */
void objective_answers(struct work *r, const struct objective_rows *rows);
/* Add the results of the rows to four sums: struct objective_sums or struct answer_sums. */
void objective_add(struct work *r, void *sums, const struct objective_rows *rows);

#endif
