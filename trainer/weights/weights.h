/* SPDX-License-Identifier: Apache-2.0
 *
 * weights.h: weights between files and the arenas.
 */
#ifndef NOJIT_TRAINER_WEIGHTS_H
#define NOJIT_TRAINER_WEIGHTS_H

#include "formats/safetensors.h"
#include "state/engine_struct.h"
#include "weights/loading.h"

/* Reads a model's weights: its arena goes to `to`, and what is not in it (params.first -1) where `matrix` says, which
 * returns false for what is not kept here; NULL: nowhere. hash: of all tensors (tensor_hash.h). */
typedef bool weights_matrix(struct engine *e, size_t spec, const struct tensor *t,
                            struct load_item *out);
int weights_load(struct engine *e, const char *dir, const struct net *n, struct updated to,
                 weights_matrix *matrix, uint64_t *hash);
/* An arena of T from opened files, with nothing missing and nothing left over. */
int weights_read(struct engine *e, const char *dir, const struct tensors *w, const struct params *p,
                 enum nj_dtype T, void *arena);
/* T in files. */
enum nj_tensor_type weights_dtype(const struct engine *e);
void weights_declare(const struct params *p, enum nj_tensor_type dtype, struct st_declared *out);
/* Hands a device array to put(), in pieces. */
typedef int weights_put(void *file, const void *data, size_t bytes);
int weights_download(struct engine *e, const char *from, size_t bytes, weights_put *put,
                     void *file);
/* 16-bit weights from the master; nothing to do where they are one. */
int weights_round(struct engine *e);
/* *name: first tensor of an arena that holds a NaN or an infinity, or NULL. */
int weights_scan(struct engine *e, const struct params *p, enum nj_dtype T, const void *arena,
                 const char **name);

#endif
