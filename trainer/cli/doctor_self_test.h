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
    struct nj_device_info device; /* that was tried */
    struct self_test_row *rows;
    size_t count, room;
    int failed;      /* rows */
    bool no_memory;  /* some are not there */
    bool incomplete; /* an error ended it before all had been tried */
};

/* Appends a row: an nj_tried_fn of a struct self_test_report, zero at first. Of two devices the first counts. */
nj_tried_fn self_test_hear;
/* Prints the rows that did not simply pass, or with all of them, and what they come to. */
void self_test_print(const struct self_test_report *r, bool all);
/* Writes the report; 0, NJ_E_IO or NJ_E_NOMEM. */
int self_test_write(const struct self_test_report *r, const char *path);
void self_test_free(struct self_test_report *r);

/* Returns "640 ms", or "16m11s" where it took long. */
const char *took_text(float ms, char *buffer, size_t bytes);
/* Prints which self-test a device stands on. */
void self_test_print_state(const struct nj_device_info *d);

#endif
