/* SPDX-License-Identifier: Apache-2.0
 *
 * progress.h: what a person sees during a run: a line that is rewritten on a terminal, at most ten times a second,
 * otherwise a line every few steps.
 */
#ifndef NOJIT_TRAINER_PROGRESS_H
#define NOJIT_TRAINER_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "data/file_rules.h"
#include "engine/engine.h"
#include "record/metrics.h"
#include "text/tokenizer.h"

struct progress {
    FILE *log; /* copy of the lines, or NULL */
    const char *log_path;
    bool log_new;       /* whether this run made the log */
    char columns[1280]; /* last line about columns that are not read */
    int log_error;      /* errno of the first line that could not be written to --log, or 0 */
    int line_error;     /* the same for the stream that people read */
    bool terminal;      /* whether people read a terminal, which can rewrite a line */
    bool aside;         /* whether stdout carries results, so that people read stderr */
    bool teacher;       /* whether the divergence is shown */
    const struct rollout_stats *answers; /* answers of the step; NULL: without --on-policy */
    bool open_line;                      /* whether the cursor is on the rewritten line */
    int64_t first_step, steps;
    int64_t every; /* number of steps between lines where there is no terminal, and in the log */
    int64_t measure_every;   /* number of steps between evaluations; 0: only after the last step */
    double measure_seconds;  /* duration of the last evaluation */
    double measured_seconds; /* duration of all evaluations since `started` */
    double started;          /* start time in seconds, monotonic */
    double shown;            /* time at which a line was last rewritten */
    double rows_started;     /* start time of an evaluation */
    /* seconds after which the evaluation has a line where there is no terminal */
    double rows_due;
    double ideal_seconds; /* seconds of a step at the device's peak, for MFU; NaN: unknown */
    double memory_bytes;  /* bytes of the plan */
};

int progress_open(struct progress *p, const char *log_path, bool aside);
/* Return an error if --log or the stream that people read lacks a line. */
int progress_check(const struct progress *p);
void progress_close(struct progress *p);
/* Write a line that stays. */
void progress_say(struct progress *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Show how many rows of held-out text are measured, of `total`: a line on a terminal; elsewhere a line after ten
 * seconds, and whenever twice the time has passed. */
void progress_rows(void *progress, int64_t rows, int64_t total);
/* Show the same for choices of tasks. */
void progress_choices(void *progress, int64_t choices, int64_t total);
/* Note that the evaluation after this step took `seconds`; the ETA includes those that are still to come. */
void progress_measured(struct progress *p, int64_t step, double seconds);
/* Remove the line that is rewritten. */
void progress_clear(struct progress *p);
/* Write a line about the files in folders that are not data, if there are any. */
void progress_passed_over(struct progress *p, const struct passed_over *passed);
/* Write the same line, and the notes about rows. */
void progress_data(struct progress *p, const struct passed_over *passed,
                   const struct row_notes *notes);
/* Show a step. Columns that do not fit the width of a terminal are left out there, but not in the log. */
void progress_step(struct progress *p, int64_t step, const struct step_result *r);
/* Show how many bytes of text are read, of `total`: a line on a terminal. */
void progress_bytes(struct progress *p, double done, double total);
/* Show how many texts were written since p->started, of `total`, and their tokens so far: a line on a terminal. */
void progress_texts(struct progress *p, int64_t done, int64_t total, int64_t tokens);
/* Write a duration: "1h02m", "3m20s", "12 s". */
const char *duration_text(double seconds, char *buffer, size_t bytes);
/* Write a size: "1.5 GiB". */
const char *bytes_text(double bytes_count, char *buffer, size_t bytes);

#endif
