/* SPDX-License-Identifier: Apache-2.0
 *
 * batch_fit.h: batches that fit into memory.
 */
#ifndef NOJIT_TRAINER_BATCH_FIT_H
#define NOJIT_TRAINER_BATCH_FIT_H

#include "run/run.h"

/* Choose the batch size for --batch-size auto: that of the checkpoint that the run continues from, else the largest
 * that fits and has no more rows than an epoch of r->data. It is printed, and stored in r->options and r->batches. */
int run_fit_batch(struct run *r);
/* Choose the batch size for a budget in bytes and at most `most` rows. */
int fit_batch(struct run *r, const struct model_config *student, const struct model_config *teacher,
              size_t budget, int most);
/* Choose options.decode_rows: the largest number of sequences of options.decode_positions, up to `most`, for which a
 * decoder has memory, next to training or alone. */
int run_fit_decoder(struct run *r, bool train, int most);
/* Choose the same for a budget in bytes. */
int fit_decoder(struct run *r, const struct model_config *student,
                const struct model_config *teacher, size_t budget, bool train, int most);
/* Return the part of a budget, that of a GPU or of a machine's memory, that an automatic batch size may fill. */
size_t fit_part(size_t budget, bool gpu);
/* Print a line for each change to the options that takes fewer bytes than `now`, and whether it fits. */
int fit_advise(struct run *r, const struct model_config *student,
               const struct model_config *teacher, size_t now, size_t budget);

#endif
