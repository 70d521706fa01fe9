/* SPDX-License-Identifier: Apache-2.0
 *
 * shape.c: see shape.h.
 */
#include "state/shape.h"

#include "base/checked.h"
#include "base/integers.h"
#include "batch/batch.h"
#include "net/fp8.h"
#include "net/student_fp8.h"

enum { HEAD_CHUNK_ROWS = 2048 };

/* Return the size of equal chunks: 3,000 rows are two of 1,504 if 2,048 is the most, not one of 2,048 and a rest.
 * It is a multiple of 8, and of the multiple that FP8 GEMMs take. */
static int equal_chunks(int rows, int most, bool f8)
{
    const int multiple = f8 ? FP8_MULTIPLE : 8;
    return int_ceil_div(int_ceil_div(rows, int_ceil_div(rows, most)), multiple) * multiple;
}

int shape_ranks(const struct train_options *o)
{
    return o->steps > 0 && o->ranks > 1 ? o->ranks : 1;
}

bool shape_ranks_are_processes(const struct train_options *o)
{
    return shape_ranks(o) > 1 && o->rank != RANKS_VIRTUAL;
}

int shape_micro(const struct train_options *o)
{
    return o->steps > 0 ? o->grad_accum / shape_ranks(o) : 1;
}

size_t shape_idle_gradients(const struct net *student, const struct train_options *o)
{
    if (o->steps == 0 || shape_micro(o) != 1 || student->trained->layers == 0)
        return 0;
    return size_mul((size_t)params_matrices(student->trained), sizeof(float));
}

void plan_shape(const struct net *student, const struct model_config *teacher,
                const struct train_options *o, struct shape *out)
{
    const int rows = o->batch_size * o->seq_len;
    int vocab = config_common_vocab(&student->c, teacher), chunk = o->head_chunk;
    if (o->vocab > 0 && o->vocab < vocab)
        vocab = o->vocab;
    const int ld =
        o->teacher_fp8 || student_fp8_head(student) ? fp8_logits(vocab) : int_round_up(vocab, 8);
    const size_t idle_rows =
        shape_idle_gradients(student, o) / ((size_t)ld * dtype_bytes(student->T));
    if (chunk <= 0) { /* twice as many if the student's logits take no memory of their own */
        chunk = equal_chunks(rows, 2 * HEAD_CHUNK_ROWS, student_fp8_head(student));
        if ((size_t)chunk > idle_rows)
            chunk = equal_chunks(rows, HEAD_CHUNK_ROWS, student_fp8_head(student));
    } else if (chunk > rows)
        chunk = rows;
    const int chunks = int_ceil_div(rows, chunk);
    *out = (struct shape){
        .rows = rows,
        .chunk = chunk,
        .chunks = chunks,
        .padded = chunks * chunk,
        .vocab = vocab,
        .ld = ld,
        .train = o->steps > 0,
        .ranks = shape_ranks(o),
        .micro = shape_micro(o),
        .rank = shape_ranks_are_processes(o) ? o->rank : RANKS_VIRTUAL,
        .slots = shape_micro(o) * (shape_ranks_are_processes(o) ? 1 : shape_ranks(o)),
        .arrays = USE_FORWARD | USE_STEP | (teacher && o->teacher_has_context ? USE_TEACHER : 0U) |
                  (teacher && o->steps > 0 && o->answers ? USE_ANSWERS : 0U) |
                  (o->steps > 0 && student->balance > 0 ? USE_BALANCE : 0U),
    };
    pieces_cut(student->trained, student->trained->layers, out->ranks, &out->pieces);
    out->overlapped = shape_ranks_are_processes(o) && out->pieces.groups > 0;
}
