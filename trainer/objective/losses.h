/* SPDX-License-Identifier: Apache-2.0
 *
 * losses.h: what is summed over the tokens of a step or an evaluation. One list gives the fields of the sums on the
 * device, of the means in a result, and of the metrics.
 */
#ifndef NOJIT_TRAINER_LOSSES_H
#define NOJIT_TRAINER_LOSSES_H

/* Sums over the valid tokens, in the order in which loss_reduce adds up what an objective's kernel gives a row:
 * divergence from the teacher (in the objective's unit), cross-entropy (nats), entropy of the teacher (nats), tokens
 * that both rank first. */
#define OBJECTIVE_SUMS(SUM) SUM(kd_loss) SUM(ce_loss) SUM(teacher_entropy) SUM(agreement)
/* Sums over the tokens of answers, in the order of what kl_rows gives a row: nats. */
#define ANSWER_SUMS(SUM) SUM(forward_kl) SUM(reverse_kl) SUM(student_entropy)

#define FLOAT_SUM(name) float name;
#define MEAN_FIELD(name) double name;

struct objective_sums {
    OBJECTIVE_SUMS(FLOAT_SUM)
};

struct answer_sums {
    ANSWER_SUMS(FLOAT_SUM)
    float tokens;
};

/* Ranks add these up as LOSS_SUMS floats. */
struct losses {
    struct objective_sums objective;
    union {
        float stopping; /* of a step: the number of ranks that are to stop */
        /* Of an evaluation that measures acceptance: kd_loss is the total variation distance at temperature 1. */
        struct objective_sums distance;
    };
    struct answer_sums answers;
};
enum { LOSS_SUMS = sizeof(struct losses) / sizeof(float) };

#endif
