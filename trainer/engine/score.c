/* SPDX-License-Identifier: Apache-2.0
 *
 * score.c: log-probabilities of given tokens behind given texts: the student forward, and cross-entropies of the rows
 * asked for. No teacher runs.
 */
#include "engine/engine_struct.h"
#include "engine/forward.h"
#include "engine/head.h"
#include "engine/micro_batch.h"
#include "io/error.h"

#include <string.h>

static int check(const struct engine *e, const struct score_batch *b)
{
    const int rows = e->shape.rows;
    const size_t bytes = (size_t)e->shape.padded * sizeof(float);
    bool inside = b->count >= 0 && b->count <= rows && bytes <= e->mem.transfer_bytes;
    for (int i = 0; inside && i < b->count; i++)
        inside = b->at[i] >= 0 && b->at[i] < rows;
    return inside ? 0
                  : fail(NJ_E_ARG,
                         "%d tokens are to be scored, and a batch has %d rows; give fewer "
                         "at a time",
                         b->count, rows);
}

int engine_score(struct engine *e, const struct score_batch *b, float *ce)
{
    float *host = (float *)(void *)e->mem.transfer;
    int rc = check(e, b);
    const int chunks = rc == 0 ? stage_scored(e, b) : rc;
    if (chunks < 0)
        return chunks;
    struct work r = engine_work(e);
    OP(&r, send_batch(e, 0));
    e->mem.student.lora.key = NULL;
    net_forward(&r, &e->student, &e->mem.student, &e->mem.rows);
    head_scores(&r, e, chunks, host);
    OP(&r, nj_stream_sync(r.s));
    if (r.rc != 0)
        return engine_fail(e, r.rc, "scoring");
    memcpy(ce, host, (size_t)b->count * sizeof *ce);
    return 0;
}
