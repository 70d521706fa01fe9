/* SPDX-License-Identifier: Apache-2.0
 *
 * file_rows.h: tensors of a model whose rows folders have in another order than kernels, or in one tensor with those of
 * others: the rows of queries and gates of Qwen3.5 alternate from head to head, and in Qwen3-Next so do those of the
 * gated delta rule. Such a tensor has the name of the first tensor of the model in it.
 */
#ifndef NOJIT_TRAINER_FILE_ROWS_H
#define NOJIT_TRAINER_FILE_ROWS_H

#include "base/head_rows.h"
#include "formats/tensors.h"
#include "model/tensor_names.h"

/* Return the order in which files have the rows of a tensor. */
struct head_order file_order(const struct model_config *c, const struct tensor_spec *s);
/* Take tensors of a folder apart, and note the order of their rows. Return 0, NJ_E_FORMAT or NJ_E_NOMEM. */
int file_rows_split(const char *dir, const struct model_config *c, struct tensors *w);
/* Do so with tensors of adapters, `specs` of them. */
int file_rows_of(const char *dir, const struct model_config *c, const struct tensor_spec *spec,
                 size_t specs, struct tensors *w);

/* A tensor of a folder, which consists of one tensor of the model, or of several. */
enum { FILE_PARTS_MOST = 4 };
struct file_tensor {
    struct tensor_spec spec;
    int parts;
    size_t part[FILE_PARTS_MOST]; /* numbers of tensors of the model */
};
/* List the tensors of a folder from those of the model; free() the list. Return 0 or NJ_E_NOMEM. */
int file_tensors(const struct model_config *c, const struct tensor_spec *spec, size_t specs,
                 struct file_tensor **out, size_t *count);

/* Rows of a tensor of the model that follow each other in a file, too. */
struct file_run {
    size_t spec;
    int64_t row, count;
};
/* Return the run that a file's tensor has from a row on. spec: all tensors of the model. */
struct file_run file_run(const struct model_config *c, const struct file_tensor *f,
                         const struct tensor_spec *spec, int64_t row);
/* Return the number of elements of a row. */
int64_t file_columns(const struct tensor_spec *s);

#endif
