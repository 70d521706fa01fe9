/* SPDX-License-Identifier: Apache-2.0
 *
 * metrics.h: metrics.jsonl, a row per optimiser step and per evaluation, and the same as event files.
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
    int64_t step, worse; /* where it was measured; measurements since */
    float loss;
    bool known;
};

/* Of answers that a student wrote for a step; all zero where none were. */
struct rollout_stats {
    double seconds;
    int64_t answers, tokens, truncated; /* truncated: answers that did not end by themselves */
};

struct metrics {
    FILE *file; /* NULL: rows go nowhere, but what is best is known */
    struct best best;
    char path[PATH_BYTES];
    bool echo;                  /* rows go to stdout too (--json) */
    struct ideal_seconds ideal; /* of a step; NaN: MFU is null */
    uint64_t memory_bytes;      /* of the plan */
    struct events events;       /* opened by the caller, or all zero */
};

/* Opens DIR/metrics.jsonl and keeps its rows up to `resumed` (rows.h); they say what is best so far. */
int metrics_open(struct metrics *m, const char *dir, int64_t resumed, struct rows_done *done);
/* Whether so many measurements in a row brought no lower loss; never with a patience of 0. */
bool metrics_settled(const struct metrics *m, int64_t patience);
/* Closes the event file, too. */
int metrics_close(struct metrics *m);
/* Each row is flushed; NJ_E_IO names the file. answers: NULL without --on-policy. */
int metrics_step(struct metrics *m, int64_t step, const struct step_result *r,
                 const struct rollout_stats *answers);
int metrics_eval(struct metrics *m, int64_t step, const struct eval_result *r);

#endif
