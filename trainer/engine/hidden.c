/* SPDX-License-Identifier: Apache-2.0
 *
 * hidden.c: hidden states behind the last norm: runs the student forward, and copies the rows asked for, from which its
 * LM head would make logits. The host works on those of one batch while the next one runs.
 */
#include "engine/engine.h"

#include "net/forward.h"
#include "state/engine_struct.h"
#include "step/head.h"
#include "step/micro_batch.h"
#include "weights/weights.h"

enum nj_tensor_type engine_type(const struct engine *e)
{
    return weights_dtype(e);
}

int engine_hidden_begin(struct engine *e, const struct score_batch *b)
{
    const int chunks = stage_scored(e, b);
    if (chunks < 0)
        return chunks;
    struct work r = engine_work(e);
    OP(&r, send_batch(e, 0));
    e->mem.student.lora.key = NULL;
    net_forward(&r, &e->student, &e->mem.student, &e->mem.rows);
    head_gather(&r, e, chunks);
    return r.rc == 0 ? 0 : engine_fail(e, r.rc, "computing hidden states");
}

int engine_hidden_end(struct engine *e, int count, void *hidden)
{
    const size_t row_bytes = (size_t)e->student.c.hidden_size * dtype_bytes(e->student.T);
    struct work r = engine_work(e);
    if (count > 0)
        OP(&r, nj_copy(r.s, hidden, e->mem.hidden, (size_t)count * row_bytes));
    OP(&r, nj_stream_sync(r.s));
    return r.rc == 0 ? 0 : engine_fail(e, r.rc, "computing hidden states");
}
