/* SPDX-License-Identifier: Apache-2.0
 *
 * run_inputs.h: what a run reads.
 */
#ifndef NOJIT_TRAINER_RUN_INPUTS_H
#define NOJIT_TRAINER_RUN_INPUTS_H

#include "run/run.h"

/* Open the student's tokenizer; a teacher's must have the same tokens, except for added ones after them. Sets
 * r->vocab. */
int run_open_tokenizer(struct run *r);
/* Open tokens for the engine's batch shape, and their batches, which close them. once: one pass, for evaluation, to
 * which --packing and --data-weights do not apply. */
int run_open_data(struct run *r, const struct path_list *paths, bool once, struct data **data,
                  struct batch_source **batches);
/* Find the token that conversations in data and prompts teach the student to end its turns with: its texts end
 * there, and so do, later on, those of the saved model. */
int run_find_turn_end(struct run *r);
/* Print notes about data that is not one stream of consecutive documents. */
void run_say_data(struct run *r);
/* Return the rules for rows that the options give. */
struct row_rules run_row_rules(const struct settings *s);
/* Refuse an --out inside a folder of --data or --eval-data: its contents would be read as data. */
int run_check_output(const struct settings *s);

#endif
