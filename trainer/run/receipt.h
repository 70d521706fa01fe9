/* SPDX-License-Identifier: Apache-2.0
 *
 * receipt.h: what a run says of itself when it ends.
 */
#ifndef NOJIT_TRAINER_RECEIPT_H
#define NOJIT_TRAINER_RECEIPT_H

#include <jansson.h>

#include "run/run.h"

/* Write receipt.json in dir: every option as applied, device, versions, hashes and counters. */
int receipt_write(const char *dir, const struct command_info *c, const struct run *r,
                  int64_t steps_done);
/* Return the self-test that a device relies on, as JSON. */
json_t *receipt_self_test(const struct nj_device_info *d);

#endif
