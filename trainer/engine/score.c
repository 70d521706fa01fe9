/* SPDX-License-Identifier: Apache-2.0
 *
 * score.c: log-probabilities of given tokens behind given texts: runs the student forward, and computes
 * cross-entropies of the rows asked for. No teacher runs.
 */
#include "engine/engine.h"

#include "io/error.h"
#include "net/forward.h"
#include "state/engine_struct.h"
#include "step/head.h"
#include "step/micro_batch.h"

#include <string.h>

/* Refuse a batch whose scores do not fit into the pinned buffer: they are copied from the device in one piece. */
static int check_room(const struct engine *e)
{
    const int padded = e->shape.padded;
    return (size_t)padded * sizeof(float) <= e->mem.transfer_bytes
               ? 0
               : fail(NJ_E_ARG,
                      "the scores of a batch of %d rows exceed the pinned buffer; take fewer "
                      "sequences at a time",
                      padded);
}

int engine_score(struct engine *e, const struct score_batch *b, float *ce)
{
    float *host = (float *)(void *)e->mem.transfer;
    const int rc = check_room(e);
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
