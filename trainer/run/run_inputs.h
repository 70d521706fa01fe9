/* SPDX-License-Identifier: Apache-2.0
 *
 * run_inputs.h: what a run reads.
 */
#ifndef NOJIT_TRAINER_RUN_INPUTS_H
#define NOJIT_TRAINER_RUN_INPUTS_H

#include "run/run.h"

/* Opens the student's tokenizer; a teacher's must have the same tokens, but for added ones after
 * them. Sets r->vocab. */
int run_open_tokenizer(struct run *r);
/* Opens tokens for the engine's batch shape, and their batches, which close them; once: one pass, for evaluation, to
 * which --packing and --data-weights do not apply. */
int run_open_data(struct run *r, const struct path_list *paths, bool once, struct data **data,
                  struct batch_source **batches);
/* Finds the token that conversations of data and prompts teach the student to end its turns with: what it writes ends
 * there, and so does, later on, what the saved model writes. */
int run_find_turn_end(struct run *r);
/* Says what is worth a line where data is not one stream of documents one after the other. */
void run_say_data(struct run *r);
/* What the options say of rows. */
struct row_rules run_row_rules(const struct settings *s);
/* Refuses an --out in a folder of --data or --eval-data: what it holds would be read as data. */
int run_check_output(const struct settings *s);

#endif
