/* SPDX-License-Identifier: Apache-2.0
 *
 * metrics.h: metrics.jsonl, a row per optimizer step and per evaluation, and the same values as event files.
 */
#ifndef NOJIT_TRAINER_METRICS_H
#define NOJIT_TRAINER_METRICS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/engine.h"
#include "io/path.h"
#include "record/events.h"
#include "record/mfu.h"
#include "record/rows.h"

/* The lowest held-out loss so far. */
struct best {
    int64_t step, worse; /* step at which it was measured; number of measurements since */
    float loss;
    bool known;
};

/* Statistics of the answers that a student wrote for a step; all zero if there were none. */
struct rollout_stats {
    double seconds;
    /* truncated: number of answers that did not end by themselves */
    int64_t answers, tokens, truncated;
};

struct metrics {
    FILE *file; /* NULL: rows are not written, but the best is known */
    struct best best;
    char path[PATH_BYTES];
    bool echo;                  /* whether rows go to stdout too (--json) */
    struct ideal_seconds ideal; /* seconds of a step; NaN: MFU is null */
    uint64_t memory_bytes;      /* bytes of the plan */
    struct events events;       /* event file, opened by the caller, or all zero */
};

/* Open DIR/metrics.jsonl and keep its rows up to `resumed` (rows.h); they give the best loss so far. */
int metrics_open(struct metrics *m, const char *dir, int64_t resumed, struct rows_done *done);
/* Return whether `patience` measurements in a row brought no lower loss; never with a patience of 0. */
bool metrics_settled(const struct metrics *m, int64_t patience);
/* Close the event file, too. */
int metrics_close(struct metrics *m);
/* Write a row and flush it; NJ_E_IO names the file. answers: NULL without --on-policy. */
int metrics_step(struct metrics *m, int64_t step, const struct step_result *r,
                 const struct rollout_stats *answers);
int metrics_eval(struct metrics *m, int64_t step, const struct eval_result *r);

#endif
