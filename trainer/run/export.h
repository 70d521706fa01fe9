/* SPDX-License-Identifier: Apache-2.0
 *
 * export.h: models as GGUF files, for `nojit export` and at the end of a run.
 */
#ifndef NOJIT_TRAINER_EXPORT_H
#define NOJIT_TRAINER_EXPORT_H

#include "io/model_folder.h"
#include "model/gguf_ftype.h"
#include "record/progress.h"
#include "text/tokenizer.h"

#include <stdbool.h>

/* Source of an export: a model, or one with adapters merged into it, which then lies in a temporary folder until
 * export_close(). */
struct export_source {
    char from[4096];
    const char *name; /* name of the model for people; general.name is its last part */
    enum tokenizer_choice tokenizer; /* set by the caller; TOKENIZER_AUTO: the model's own */
    struct folder merged;
    bool is_merged;
};

/* Open a source. adapter NULL: none. beside: folder after whose name the temporary folder of the merged model is
 * named. */
int export_open(struct export_source *x, const char *model, const char *name, const char *adapter,
                const char *beside);
/* Write the GGUF file `to`, replacing an earlier one, and print a line about it. */
int export_file(const struct export_source *x, struct progress *p, const struct gguf_ftype *m,
                const char *to);
void export_close(struct export_source *x);

#endif
