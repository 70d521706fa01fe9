/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor_self_test.h: `nojit doctor --self-test`: what was found of each kernel and GEMM, as text and as a report for
 * an issue. It names program, GPU, driver and library, and no user, host or folder.
 */
#ifndef NOJIT_TRAINER_DOCTOR_SELF_TEST_H
#define NOJIT_TRAINER_DOCTOR_SELF_TEST_H

#include <stdbool.h>

#include "nojit.h"

struct self_test_row;
struct self_test_report {
    struct nj_device_info device; /* device that was tested */
    struct self_test_row *rows;
    size_t count, room;
    int failed;      /* number of rows that failed */
    bool no_memory;  /* whether rows are missing for lack of memory */
    bool incomplete; /* whether an error ended the test before everything was tested */
};

/* Append a row: an nj_tried_fn of a struct self_test_report that starts out as zero. Of two devices the first
 * counts. */
nj_tried_fn self_test_hear;
/* Print the rows that did not simply pass, or all of them, and a summary. */
void self_test_print(const struct self_test_report *r, bool all);
/* Write the report. Returns 0, NJ_E_IO or NJ_E_NOMEM. */
int self_test_write(const struct self_test_report *r, const char *path);
void self_test_free(struct self_test_report *r);

/* Return "640 ms", or "16m11s" for a long time. */
const char *took_text(float ms, char *buffer, size_t bytes);
/* Print the self-test that a device relies on. */
void self_test_print_state(const struct nj_device_info *d);

#endif
