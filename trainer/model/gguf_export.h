/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_export.h: a model as a GGUF file that llama.cpp loads.
 */
#ifndef NOJIT_TRAINER_GGUF_EXPORT_H
#define NOJIT_TRAINER_GGUF_EXPORT_H

#include "model/config.h"
#include "model/gguf_ftype.h"

struct export_options {
    const struct mixture *mixture;
    const char *name;                                        /* general.name is its last part */
    void (*written)(void *user, double bytes, double total); /* after each piece of the weights */
    void *user;
};

/* Refuses a model that a GGUF file would say wrongly. where: for the message. */
int gguf_check_model(const struct model_config *c, const char *where);
/* Writes the weights, tokenizer and chat template of the model at `from` (a folder or a GGUF file) to `to`. Weights
 * that have the wanted type already are copied. *bytes: of the weights as they are written. */
int gguf_export(const char *from, const char *to, const struct export_options *o, double *bytes);

#endif
