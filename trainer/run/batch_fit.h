/* SPDX-License-Identifier: Apache-2.0
 *
 * batch_fit.h: batches that fit into memory.
 */
#ifndef NOJIT_TRAINER_BATCH_FIT_H
#define NOJIT_TRAINER_BATCH_FIT_H

#include "run/run.h"

/* --batch-size auto: the batch of the checkpoint that the run goes on from, else the largest that
 * fits and has no more rows than an epoch of r->data; said, and put into r->options and r->batches. */
int run_fit_batch(struct run *r);
/* The same, for a budget in bytes and at most so many rows. */
int fit_batch(struct run *r, const struct model_config *student, const struct model_config *teacher,
              size_t budget, int most);
/* The most sequences of options.decode_positions at a time, `most` at most, that a decoder has room for, beside
 * training or alone: options.decode_rows. */
int run_fit_decoder(struct run *r, bool train, int most);
/* The same, for a budget in bytes. */
int fit_decoder(struct run *r, const struct model_config *student,
                const struct model_config *teacher, size_t budget, bool train, int most);
/* Of what a GPU, or the memory of a machine, can give, the part that such a batch may fill. */
size_t fit_part(size_t budget, bool gpu);
/* A line for each change to the options that takes fewer bytes than `now`, and whether it fits. */
int fit_advise(struct run *r, const struct model_config *student,
               const struct model_config *teacher, size_t now, size_t budget);

#endif
