/* SPDX-License-Identifier: Apache-2.0
 *
 * repetition.c: see repetition.h.
 */
#include "decode/repetition.h"

#include "base/float16.h"
#include "base/try.h"
#include "formats/tensors.h"
#include "io/error.h"
#include "state/engine_struct.h"

#include <stdlib.h>
#include <string.h>

static int no_memory(const struct repetition *r)
{
    return fail(NJ_E_NOMEM, "no host memory for the repetition penalty of %d sequences; free some",
                r->d->rows);
}

static size_t row_bytes(const struct decoder *d)
{
    return (size_t)d->ld * dtype_bytes(d->net->T);
}

int repetition_open(const struct decoder *d, float factor, struct repetition *out)
{
    *out = (struct repetition){.factor = factor, .d = d};
    if (factor == 0 || factor == 1)
        return 0;
    out->logits = malloc((size_t)d->rows * row_bytes(d));
    out->had = calloc((size_t)d->rows, sizeof *out->had);
    bool all = out->logits && out->had;
    for (int slot = 0; all && slot < d->rows; slot++) {
        out->had[slot].bit = calloc(((size_t)d->vocab + 7) / 8, 1);
        all = out->had[slot].bit != NULL;
    }
    return all ? 0 : no_memory(out);
}

void repetition_close(struct repetition *r)
{
    for (int slot = 0; r->had && slot < r->d->rows; slot++) {
        free(r->had[slot].bit);
        free(r->had[slot].id);
    }
    free(r->had);
    free(r->logits);
}

static int add_token(struct repetition *r, struct tokens_had *h, int32_t id)
{
    const unsigned char bit = (unsigned char)(1u << id % 8);
    if (h->bit[id / 8] & bit)
        return 0;
    if (h->count == h->capacity) {
        const int grown = 2 * h->capacity + 64;
        int32_t *more = realloc(h->id, (size_t)grown * sizeof *more);
        if (!more)
            return no_memory(r);
        h->id = more;
        h->capacity = grown;
    }
    h->bit[id / 8] |= bit;
    h->id[h->count++] = id;
    return 0;
}

int repetition_add(struct repetition *r, int slot, const int32_t *ids, int count)
{
    for (int i = 0; i < count; i++)
        TRY(add_token(r, &r->had[slot], ids[i]));
    return 0;
}

int repetition_begin(struct repetition *r, int slot, const int32_t *ids, int count)
{
    struct tokens_had *h = &r->had[slot];
    for (int i = 0; i < h->count; i++)
        h->bit[h->id[i] / 8] = 0;
    h->count = 0;
    return repetition_add(r, slot, ids, count);
}

static float penalized(float x, float factor)
{
    return x < 0 ? x * factor : x / factor;
}

static void penalize_row(const struct repetition *r, const struct tokens_had *h, bool is_f16,
                         char *row)
{
    for (int i = 0; i < h->count; i++) {
        if (r->d->net->T == NJ_F32) {
            float x;
            char *at = row + (size_t)h->id[i] * sizeof x;
            memcpy(&x, at, sizeof x);
            x = penalized(x, r->factor);
            memcpy(at, &x, sizeof x);
        } else {
            uint16_t bits;
            char *at = row + (size_t)h->id[i] * sizeof bits;
            memcpy(&bits, at, sizeof bits);
            const float x = penalized(is_f16 ? f32_from_f16(bits) : f32_from_bf16(bits), r->factor);
            bits = is_f16 ? f16_from_f32(x) : bf16_from_f32(x);
            memcpy(at, &bits, sizeof bits);
        }
    }
}

int repetition_apply(struct repetition *r, struct engine *e, const int32_t *slot, int rows)
{
    const bool is_f16 = nj_context_device(e->ctx)->lp_is_f16;
    const size_t each = row_bytes(r->d), bytes = (size_t)rows * each;
    TRY(nj_copy(e->stream, r->logits, r->d->logits, bytes));
    TRY(nj_stream_sync(e->stream));
    for (int row = 0; row < rows; row++)
        if (slot[row] >= 0)
            penalize_row(r, &r->had[slot[row]], is_f16, r->logits + (size_t)row * each);
    return nj_copy(e->stream, r->d->logits, r->logits, bytes);
}
