/* SPDX-License-Identifier: Apache-2.0
 *
 * progress.h: what a person sees while a run goes on: a line that is rewritten on a terminal, ten
 * times a second at most, else a line every few steps.
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
    bool log_new;                        /* made by this run */
    char columns[1280];                  /* last line about columns that are not read */
    int log_error;                       /* errno of the first line that --log lacks, or 0 */
    int line_error;                      /* the same of what people read */
    bool terminal;                       /* people read one, that can rewrite a line */
    bool aside;                          /* stdout carries results: people read stderr */
    bool teacher;                        /* a divergence is worth a column */
    const struct rollout_stats *answers; /* of the step; NULL: without --on-policy */
    bool open_line;                      /* the cursor stands on the rewritten line */
    int64_t first_step, steps;
    int64_t every;           /* steps between lines where there is no terminal, and in the log */
    int64_t measure_every;   /* steps between evaluations; 0: the last step alone has one */
    double measure_seconds;  /* that the last evaluation took */
    double measured_seconds; /* that all took since `started` */
    double started;          /* seconds, monotonic */
    double shown;            /* when a line was last rewritten */
    double rows_started;     /* an evaluation */
    double rows_due;         /* seconds after which it has a line where there is no terminal */
    double ideal_seconds;    /* of a step at the device's peak, for MFU; NaN: unknown */
    double memory_bytes;     /* of the plan */
};

double seconds_now(void); /* monotonic */
int progress_open(struct progress *p, const char *log_path, bool aside);
/* Refuses where --log or what people read lacks a line. */
int progress_check(const struct progress *p);
void progress_close(struct progress *p);
/* A lasting line. */
void progress_say(struct progress *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Rows of held-out text that are measured, of all: a line on a terminal; elsewhere one after ten seconds,
 * and whenever twice the time has passed. */
void progress_rows(void *progress, int64_t rows, int64_t total);
/* The same of choices of tasks. */
void progress_choices(void *progress, int64_t choices, int64_t total);
/* The evaluation after this step took so long; the ETA counts those that are still to come. */
void progress_measured(struct progress *p, int64_t step, double seconds);
/* Takes a line that is rewritten away. */
void progress_clear(struct progress *p);
/* A line about the files of folders that are no data, if there are any. */
void progress_passed_over(struct progress *p, const struct passed_over *passed);
/* The same, and what is to be said of rows. */
void progress_data(struct progress *p, const struct passed_over *passed,
                   const struct row_notes *notes);
/* What has no room in the width of a terminal is left out there, but not in the log. */
void progress_step(struct progress *p, int64_t step, const struct step_result *r);
/* Bytes of text that are read, of all: a line on a terminal. */
void progress_bytes(struct progress *p, double done, double total);
/* Texts that are written since p->started, of all, and their tokens so far: a line on a terminal. */
void progress_texts(struct progress *p, int64_t done, int64_t total, int64_t tokens);
/* "1h02m", "3m20s", "12 s" */
const char *duration_text(double seconds, char *buffer, size_t bytes);
/* "1.5 GiB" */
const char *bytes_text(double bytes_count, char *buffer, size_t bytes);

#endif
