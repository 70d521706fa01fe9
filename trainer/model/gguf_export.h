/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_export.h: a model as a GGUF file that llama.cpp loads.
 */
#ifndef NOJIT_TRAINER_GGUF_EXPORT_H
#define NOJIT_TRAINER_GGUF_EXPORT_H

#include "model/config.h"
#include "model/gguf_ftype.h"
#include "text/tokenizer.h"

struct export_options {
    const struct gguf_ftype *ftype;
    const char *name; /* name of the model; general.name is its last part */
    enum tokenizer_choice tokenizer;
    /* callback after each piece of the weights */
    void (*written)(void *user, double bytes, double total);
    void *user;
};

/* Write the weights, tokenizer and chat template of the model at `from` (a folder or a GGUF file) to `to`. Weights that
 * have the wanted type already are copied. *bytes: size of the weights as written. */
int gguf_export(const char *from, const char *to, const struct export_options *o, double *bytes);

#endif
