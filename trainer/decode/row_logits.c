/* SPDX-License-Identifier: Apache-2.0
 *
 * row_logits.c: logits of student or teacher behind given positions, on the host. They are copied from the device in
 * pieces that fit into the pinned buffer for weights.
 */
#include "decode/row_logits.h"

#include "base/float16.h"
#include "formats/tensors.h"
#include "io/error.h"
#include "net/forward.h"
#include "nojit_ops.h"
#include "step/head.h"
#include "step/micro_batch.h"

#include <string.h>

static size_t row_bytes(const struct engine *e)
{
    return (size_t)e->shape.vocab * dtype_bytes(e->student.T);
}

static int check(const struct engine *e, const struct logits_batch *b)
{
    if (row_bytes(e) > e->mem.transfer_bytes)
        return fail(NJ_E_ARG,
                    "the logits of a position, of %d tokens, exceed the pinned buffer; use models "
                    "with a smaller vocabulary",
                    e->shape.vocab);
    if (b->teacher && (!e->teacher.ops || (e->shape.arrays & USE_TEACHER)))
        return fail(NJ_E_ARG, "logits of a teacher need an engine whose teacher reads the same");
    return 0;
}

/* Compute the rows behind which logits are wanted, of the student in e->mem.hidden. */
static void forward(struct work *r, struct engine *e, bool teacher, int chunks)
{
    struct memory *m = &e->mem;
    if (teacher) {
        send_to_teacher(r, e, 0, 1);
        teacher_forward(r, &e->teacher, &m->rows, 1);
        teacher_keep(r, &e->teacher, &m->rows);
        return;
    }
    m->student.lora.key = NULL; /* no dropout */
    net_forward(r, &e->student, &m->student, &m->rows);
    head_gather(r, e, chunks);
}

/* Compute the logits of the chunk that begins with row `first`. Return their place on the device. */
static const char *chunk_logits(struct work *r, struct engine *e, bool teacher, int first)
{
    if (teacher)
        return teacher_logits(r, &e->teacher, first);
    head_logits(r, e, first);
    return e->mem.logits;
}

static void expand(const struct engine *e, const char *from, float *to)
{
    const bool is_f16 = nj_context_device(e->ctx)->lp_is_f16;
    if (e->student.T == NJ_F32) {
        memcpy(to, from, row_bytes(e));
        return;
    }
    for (int v = 0; v < e->shape.vocab; v++) {
        uint16_t bits;
        memcpy(&bits, from + (size_t)v * sizeof bits, sizeof bits);
        to[v] = is_f16 ? f32_from_f16(bits) : f32_from_bf16(bits);
    }
}

void logits_to_host(struct work *r, const struct engine *e, const char *logits, int count,
                    float *const *to)
{
    const size_t bytes = row_bytes(e), stride = (size_t)e->shape.ld * dtype_bytes(e->student.T);
    const int most = (int)(e->mem.transfer_bytes / bytes);
    for (int i = 0; i < count; i += most) {
        const int piece = count - i < most ? count - i : most;
        for (int k = 0; k < piece; k++)
            OP(r, nj_copy(r->s, e->mem.transfer + (size_t)k * bytes,
                          logits + (size_t)(i + k) * stride, bytes));
        OP(r, nj_stream_sync(r->s));
        for (int k = 0; k < piece && r->rc == 0; k++)
            expand(e, e->mem.transfer + (size_t)k * bytes, to[i + k]);
    }
}

int engine_logits(struct engine *e, const struct logits_batch *b)
{
    const struct score_batch staged = {
        .ids = b->ids, .pos = b->pos, .doc_start = b->doc_start, .at = b->at, .count = b->count};
    const int rc = check(e, b), chunk = e->shape.chunk;
    const int chunks = rc == 0 ? stage_scored(e, &staged) : rc;
    if (chunks < 0)
        return chunks;
    struct work r = engine_work(e);
    OP(&r, send_batch(e, 0));
    forward(&r, e, b->teacher, chunks);
    for (int first = 0; first < b->count; first += chunk) {
        const char *logits = chunk_logits(&r, e, b->teacher, first);
        logits_to_host(&r, e, logits, b->count - first < chunk ? b->count - first : chunk,
                       b->to + first);
    }
    return r.rc == 0 ? 0 : engine_fail(e, r.rc, "computing logits");
}
