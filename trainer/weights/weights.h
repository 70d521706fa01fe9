/* SPDX-License-Identifier: Apache-2.0
 *
 * weights.h: weights between files and the arenas.
 */
#ifndef NOJIT_TRAINER_WEIGHTS_H
#define NOJIT_TRAINER_WEIGHTS_H

#include "formats/safetensors.h"
#include "state/engine_struct.h"
#include "weights/loading.h"

/* Read a model's weights: those of its arena go to `to`, the others (params.first -1) where `matrix` says, which
 * returns false for a tensor that is not kept here. hash: of all tensors (tensor_hash.h). */
typedef bool weights_matrix(const struct net *n, size_t spec, const struct tensor *t,
                            struct load_item *out);
int weights_load(struct engine *e, const char *dir, const struct net *n, struct updated to,
                 weights_matrix *matrix, uint64_t *hash);
/* Read an arena of T from opened files. Refuse missing and extra tensors. */
int weights_read(struct engine *e, const char *dir, const struct tensors *w, const struct params *p,
                 enum nj_dtype T, void *arena);
/* Return the type of T in files. */
enum nj_tensor_type weights_dtype(const struct engine *e);
/* Declare a tensor of a file, and all tensors of an arena. */
struct st_declared weights_declared(const struct tensor_spec *s, enum nj_tensor_type dtype);
void weights_declare(const struct params *p, enum nj_tensor_type dtype, struct st_declared *out);
/* Pass a device array to put(), in pieces. */
typedef int weights_put(void *file, const void *data, size_t bytes);
int weights_download(struct engine *e, const char *from, size_t bytes, weights_put *put,
                     void *file);
/* Round the master weights to the 16-bit weights; do nothing if they are the same. */
int weights_round(struct engine *e);
/* Set *name to the first tensor of an arena that holds a NaN or an infinity, or NULL. */
int weights_scan(struct engine *e, const struct params *p, enum nj_dtype T, const void *arena,
                 const char **name);

#endif
