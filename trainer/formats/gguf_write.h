/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_write.h: writes a GGUF file, version 3. Metadata come first, then the tensors are
 * declared, then their data are streamed in the same order. The file appears under its name only
 * after gguf_write_end() has flushed it, read it back, and opened it.
 */
#ifndef NOJIT_TRAINER_GGUF_WRITE_H
#define NOJIT_TRAINER_GGUF_WRITE_H

#include "formats/gguf.h"
#include "formats/safetensors.h"

struct gguf_writer;

int gguf_write_begin(const char *path, struct gguf_writer **out);
/* Add metadata, each key once. gguf_write_tensors() reports failures. */
void gguf_put_u32(struct gguf_writer *w, const char *key, uint32_t x);
void gguf_put_f32(struct gguf_writer *w, const char *key, float x);
void gguf_put_bool(struct gguf_writer *w, const char *key, bool x);
void gguf_put_text(struct gguf_writer *w, const char *key, struct gguf_text x);
void gguf_put_string(struct gguf_writer *w, const char *key, const char *x);
void gguf_put_strings(struct gguf_writer *w, const char *key, const struct gguf_text *x,
                      size_t count);
void gguf_put_i32s(struct gguf_writer *w, const char *key, const int32_t *x, size_t count);
void gguf_put_bools(struct gguf_writer *w, const char *key, const bool *x, size_t count);
/* Declare the tensors; no metadata may follow. Names are GGUF's; shapes have rows first.
 * `tensors` must stay valid until the end. */
int gguf_write_tensors(struct gguf_writer *w, const struct st_declared *tensors, size_t count);
/* Append data of the tensors; it may be split anywhere. */
int gguf_write_data(struct gguf_writer *w, const void *data, size_t bytes);
/* Finish the file and free w, also on failure. After a failure any file that had the name is
 * unchanged, except that if only the new name cannot be flushed, the new file is there, whole. */
int gguf_write_end(struct gguf_writer *w);
void gguf_write_abort(struct gguf_writer *w); /* w may be NULL */

#endif
