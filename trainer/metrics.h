/* SPDX-License-Identifier: Apache-2.0
 *
 * metrics.h: metrics.jsonl, a row per optimiser step and per evaluation, and the same as event files.
 */
#ifndef NOJIT_TRAINER_METRICS_H
#define NOJIT_TRAINER_METRICS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "engine.h"
#include "events.h"

/* The lowest held-out loss so far. */
struct best {
    int64_t step, worse; /* where it was measured; measurements since */
    float loss;
    bool known;
};

struct metrics {
    FILE *file;
    struct best best;
    char path[4096];
    bool echo;             /* rows go to stdout too (--json) */
    double peak_flops;     /* of the device in the run's dtype; 0: unknown, then MFU is null */
    uint64_t memory_bytes; /* of the plan */
    struct events events;  /* opened by the caller, or all zero */
};

/* Cuts a file of rows {"step": N, ...} off at the first row of a step after `resumed` (from a run
 * that went further; -1: all go), or that is not whole. kept, if not NULL, sees the rows that stay.
 * No file is as good as an empty one. */
int rows_keep(const char *path, int64_t resumed, void (*kept)(void *user, const char *row),
              void *user);

/* Opens DIR/metrics.jsonl and keeps its rows up to `resumed`; they say what is best so far. */
int metrics_open(struct metrics *m, const char *dir, int64_t resumed);
/* Closes the event file, too. */
int metrics_close(struct metrics *m);
/* Each row is flushed; NJ_E_IO names the file. flops: of one step, student and teacher apart. */
int metrics_step(struct metrics *m, int64_t step, const struct step_result *r, double student_flops,
                 double teacher_flops);
int metrics_eval(struct metrics *m, int64_t step, const struct eval_result *r);

/* Dense 16-bit tensor throughput of a GPU by name in FLOP/s, from the vendors' data sheets; 0:
 * unknown. */
double peak_flops(const struct nj_device_info *d, enum nj_dtype dtype);

#endif
