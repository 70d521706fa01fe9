/* SPDX-License-Identifier: Apache-2.0
 *
 * trend.h: detection of divergence: a loss that has risen for good.
 */
#ifndef NOJIT_TRAINER_TREND_H
#define NOJIT_TRAINER_TREND_H

#include <stdbool.h>
#include <stdint.h>

enum { TREND_STRETCHES = 100, TREND_STEPS_LEAST = 5 };

/* Losses of a run, divided into stretches of equally many steps. */
struct trend {
    int64_t width; /* number of steps of a stretch */
    double first;  /* first loss */
    struct stretch_of_losses {
        int64_t count;
        double sum, squares;
    } stretch[TREND_STRETCHES + 1];
    int64_t steps;      /* number of steps added so far */
    double lowest, end; /* means that trend_diverged() has compared */
};

/* Begin a run of that many steps. */
void trend_begin(struct trend *t, int64_t steps);
/* Add the loss of the next step, in nats; a loss that is not finite, as when there was none, is ignored. */
void trend_add(struct trend *t, double loss);
/* Compare the end, a twentieth of the steps, with what was before it. Returns true if it is worse than equal odds
 * for every token and than 1.5 times the first loss, or so far above the best stretch that the noise of batches does
 * not explain it: 1.5 times as high, by a nat and by five standard errors. */
bool trend_diverged(struct trend *t, int vocab);

#endif
