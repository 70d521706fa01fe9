/* SPDX-License-Identifier: Apache-2.0
 *
 * acts.c: the memory that one pass through a transformer needs.
 */
#include "net/acts.h"

#include "base/checked.h"
#include "base/integers.h"
#include "net/block.h"
#include "net/experts.h"
#include "net/fp8.h"

/* ---- arrays that are kept ---- */

/* Return whether each layer has arrays of its own for blocks of the kind. */
static bool is_kept(const struct net *n, enum acts_mode mode, enum block_kind kind)
{
    return mode == ACTS_TRAIN && n->recompute < block_ops[kind]->dropped;
}

/* Return whether the inputs of blocks inside of layers are kept. */
static bool keeps_inner(const struct net *n)
{
    return n->recompute != RECOMPUTE_BLOCK;
}

/* Return the number of inputs inside of layers. */
static size_t inner_count(const struct net *n)
{
    int most = 0;
    for (int l = 0; l < n->c.layers; l++)
        most = int_max(most, n->layer[l + 1].inner - n->layer[l].inner);
    return (size_t)(keeps_inner(n) ? n->layer[n->c.layers].inner : most);
}

/* Return the number of outputs that a norm reads; if they are recomputed, of a layer. */
static size_t output_count(const struct net *n)
{
    int most = 0;
    for (int l = 0; l < n->c.layers; l++)
        most = int_max(most, n->layer[l + 1].normed_after - n->layer[l].normed_after);
    return (size_t)(keeps_inner(n) ? n->layer[n->c.layers].normed_after : most);
}

static void carve_stream(const struct net *n, size_t N, struct carve *m, struct acts *a)
{
    const size_t stream = size_product(N, (size_t)n->c.hidden_size, dtype_bytes(n->T));
    const size_t rstd = size_mul(N, sizeof(float));
    const bool train = a->mode == ACTS_TRAIN;
    const size_t inputs = train ? size_add((size_t)n->c.layers, 1) : 1;
    carve_take_series(m, inputs, stream, &a->input);
    carve_take_series(m, inputs, rstd, &a->input_rstd);
    /* If nothing is kept, one buffer is the residual stream of the whole pass. */
    a->inner = a->input;
    a->inner_rstd = a->input_rstd;
    if (train) {
        carve_take_series(m, inner_count(n), stream, &a->inner);
        carve_take_series(m, inner_count(n), rstd, &a->inner_rstd);
        carve_take_series(m, output_count(n), stream, &a->output);
        carve_take_series(m, output_count(n), rstd, &a->output_rstd);
    }
}

/* Carve one array of the blocks of a kind: for each layer, or the largest of any. */
static void carve_array(const struct net *n, size_t N, enum block_kind kind, int array,
                        struct carve *m, struct acts *a)
{
    struct carve_series *to = a->kept[kind][array];
    size_t most = 0, each[LAYER_KINDS_MOST] = {0}, count[LAYER_KINDS_MOST] = {0};
    for (int l = 0; l < n->c.layers; l++) {
        const struct block *b = arch_block(&n->c.arch, l, kind);
        const int k = n->c.arch.kind_of[l];
        if (!b)
            continue;
        count[k]++;
        each[k] = block_ops[kind]->array_bytes(n, b, N, a->mode, array);
        most = each[k] > most ? each[k] : most;
    }
    if (!is_kept(n, a->mode, kind)) {
        if (most > 0)
            carve_take_series(m, 1, most, &to[0]);
        return;
    }
    for (int k = 0; k < LAYER_KINDS_MOST; k++)
        if (each[k] > 0)
            carve_take_series(m, count[k], each[k], &to[k]);
}

void acts_carve_kept(const struct net *n, int B, int S, enum acts_mode mode, struct carve *m,
                     struct acts *out)
{
    const size_t N = size_mul((size_t)B, (size_t)S);
    *out = (struct acts){.mode = mode, .B = B, .S = S};
    carve_stream(n, N, m, out);
    experts_carve_shares(n, m, out);
    for (int kind = 0; kind < BLOCK_KINDS; kind++)
        for (int i = 0; i < block_ops[kind]->arrays; i++)
            carve_array(n, N, (enum block_kind)kind, i, m, out);
}

/* ---- scratch ---- */

/* Return the number of gains, biases or taps of a block whose gradients are summed at a time. */
static int64_t summed(const struct block *b)
{
    if (b->taps > 0)
        return (int64_t)block_channels(b) * b->taps;
    return block_has(b, FEATURE_MLP_BIAS) ? 2 * (int64_t)b->ffn_size : block_qkv_size(b);
}

static size_t part_bytes(const struct net *n, int rows)
{
    const int64_t most = arch_most(&n->c.arch, n->c.layers, summed);
    const int64_t widest = most > n->c.hidden_size ? most : n->c.hidden_size;
    return size_product((size_t)partial_sums(rows), (size_t)widest, sizeof(float));
}

static void carve_backward(const struct net *n, size_t N, struct carve *m, struct acts *a)
{
    a->dx = carve_take(m, size_product(N, (size_t)n->c.hidden_size, dtype_bytes(n->T)));
    for (int kind = BLOCK_KINDS; kind-- > 0;)
        if (block_ops[kind]->carve_backward)
            block_ops[kind]->carve_backward(n, N, m, a);
    /* The sums of the gains of queries and of keys lie one after the other: 2 D is at most (H + 2K) D. */
    a->part = carve_take(m, part_bytes(n, (int)N));
}

void acts_carve_scratch(const struct net *n, struct carve *m, struct acts *out)
{
    const bool train = out->mode == ACTS_TRAIN;
    const size_t N = size_mul((size_t)out->B, (size_t)out->S);
    const size_t stream = size_product(N, (size_t)n->c.hidden_size, dtype_bytes(n->T));
    out->y = carve_take(m, stream);
    out->branch = carve_take(m, stream);
    if (fp8_any(n))
        out->x = fp8_rows(n->f8_scales, (int)N, net_widest_input(n), m);
    for (int kind = 0; kind < BLOCK_KINDS; kind++)
        if (block_ops[kind]->carve)
            block_ops[kind]->carve(n, N, m, out);
    if (train)
        carve_backward(n, N, m, out);
    lora_carve(n, (int)N, train, m, &out->lora);
}

void acts_carve(const struct net *n, int B, int S, enum acts_mode mode, struct carve *m,
                struct acts *out)
{
    acts_carve_kept(n, B, S, mode, m, out);
    acts_carve_scratch(n, m, out);
}

/* ---- arrays of one block ---- */

/* Return the input of a block, and 1 / root mean square of its rows; block layer->blocks is the next layer's first. */
static void *input_of(const struct net *n, const struct acts *a, int layer, int block, float **rstd)
{
    const bool inside = block > 0 && block < arch_layer(&n->c.arch, layer)->blocks;
    const bool train = a->mode == ACTS_TRAIN;
    const int before = keeps_inner(n) ? n->layer[layer].inner : 0;
    const size_t item = !train ? 0 : (size_t)(inside ? before + block - 1 : layer + (block > 0));
    *rstd = carve_item(inside ? &a->inner_rstd : &a->input_rstd, item);
    return carve_item(inside ? &a->inner : &a->input, item);
}

/* Set where a block writes its output, and the norm after it 1 / root mean square. If nothing is kept, that norm reads
 * it from the normed rows of the input, and the stream's own norm overwrites its results. */
static void place_output(const struct net *n, const struct acts *a, int layer, int block,
                         struct block_acts *v)
{
    const struct block *b = arch_layer(&n->c.arch, layer)->block;
    size_t item = keeps_inner(n) ? (size_t)n->layer[layer].normed_after : 0;
    for (int i = 0; i < block; i++)
        item += block_has(&b[i], FEATURE_NORM_AFTER);
    v->output = a->branch;
    v->output_rstd = v->rstd;
    if (!block_has(&b[block], FEATURE_NORM_AFTER))
        return;
    v->output = a->mode == ACTS_TRAIN ? carve_item(&a->output, item) : a->y;
    if (a->mode == ACTS_TRAIN)
        v->output_rstd = carve_item(&a->output_rstd, item);
}

struct block_acts acts_block(const struct net *n, const struct acts *a, int layer, int block)
{
    const enum block_kind kind = arch_layer(&n->c.arch, layer)->block[block].kind;
    const bool kept = is_kept(n, a->mode, kind);
    const size_t item = kept ? (size_t)n->layer[layer].same_kind : 0;
    struct block_acts v;
    v.x = input_of(n, a, layer, block, &v.rstd);
    v.next = input_of(n, a, layer, block + 1, &v.next_rstd);
    place_output(n, a, layer, block, &v);
    for (int i = 0; i < BLOCK_ARRAYS_MOST; i++) {
        const struct carve_series *from = &a->kept[kind][i][kept ? n->c.arch.kind_of[layer] : 0];
        v.kept[i] = from->each > 0 ? carve_item(from, item) : NULL;
    }
    return v;
}
