/* SPDX-License-Identifier: Apache-2.0
 *
 * losses.h: sums over the tokens of a step or an evaluation. One list gives the fields of the sums on the device, of
 * the means in a result, and of the metrics.
 */
#ifndef NOJIT_TRAINER_LOSSES_H
#define NOJIT_TRAINER_LOSSES_H

/* Sums over the valid tokens, in the order in which loss_reduce adds up the outputs of an objective's kernel for a
 * row: divergence from the teacher (in the objective's unit), cross-entropy (nats), entropy of the teacher (nats),
 * tokens that both models rank first. */
#define OBJECTIVE_SUMS(SUM) SUM(kd_loss) SUM(ce_loss) SUM(teacher_entropy) SUM(agreement)
/* Sums over the tokens of answers, in nats, in the order of the outputs of kl_rows for a row. */
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

/* Losses of a step or an evaluation, which ranks add up as LOSS_SUMS floats. */
struct losses {
    struct objective_sums objective;
    union {
        /* In a step: number of ranks that are to stop; sum of the losses that balance experts. */
        struct {
            float stopping, balance;
        };
        /* Sums of an evaluation that measures acceptance: kd_loss is the total variation distance at temperature
         * 1. */
        struct objective_sums distance;
    };
    struct answer_sums answers;
};
enum { LOSS_SUMS = sizeof(struct losses) / sizeof(float) };

#endif
