/* SPDX-License-Identifier: Apache-2.0
 *
 * pieces.c: see pieces.h.
 */
#include "state/pieces.h"

#include "base/check.h"

/* Multiple of the elements of a shard, so that each begins where any access may. */
enum { SHARD_ELEMENTS = 64 };

int64_t pieces_shard(int64_t count, int ranks)
{
    const int64_t each = (count + ranks - 1) / ranks;
    return (each + SHARD_ELEMENTS - 1) / SHARD_ELEMENTS * SHARD_ELEMENTS;
}

int64_t pieces_shards(int64_t count, int ranks)
{
    return ranks * pieces_shard(count, ranks);
}

static int64_t between(int64_t x, int64_t most)
{
    return x < 0 ? 0 : x < most ? x : most;
}

/* Return the first layer of a group. The first group is one layer: behind its exchange only the embedding is left
 * to compute. */
static int group_begin(int g, int groups, int layers)
{
    return g < 2 ? g : 1 + (g - 1) * (layers - 1) / (groups - 1);
}

/* Cut the layers into groups; the piece behind them is finished after all of them. */
static void cut_layers(const struct params *p, int layers, struct pieces *out)
{
    const int64_t end = params_layer(p, layers);
    const int64_t last = end - end % (SHARD_ELEMENTS * out->ranks);
    for (int g = 0; g <= out->groups; g++) {
        const int layer = group_begin(g, out->groups, layers);
        out->layer[g] = layer;
        out->first[1 + g] = between(pieces_shards(params_layer(p, layer), out->ranks), last);
        CHECK(out->first[1 + g] >= out->first[g]);
    }
}

void pieces_cut(const struct params *p, int layers, int ranks, struct pieces *out)
{
    const int groups = ranks == 1 ? 0 : (int)between(layers, PIECE_GROUPS);
    *out = (struct pieces){.ranks = ranks, .groups = groups, .count = groups > 0 ? groups + 2 : 1};
    if (groups > 0)
        cut_layers(p, layers, out);
    out->first[out->count] = pieces_shards(p->count, ranks);
}

int64_t pieces_elements(const struct pieces *s, int piece)
{
    return s->first[piece + 1] - s->first[piece];
}

int64_t pieces_largest_group(const struct pieces *s)
{
    int64_t most = 0;
    for (int i = 1; i <= s->groups; i++)
        most = pieces_elements(s, i) > most ? pieces_elements(s, i) : most;
    return most;
}

bool pieces_overlapped(const struct pieces *s, int piece)
{
    return piece > 0 &&
           (piece <= s->groups || pieces_elements(s, piece) <= pieces_largest_group(s));
}

int64_t pieces_largest_other(const struct pieces *s)
{
    const int64_t first = pieces_elements(s, 0), last = pieces_elements(s, s->count - 1);
    return first > last ? first : last;
}

int pieces_updated(const struct pieces *s, int i)
{
    return i > 0 ? i - 1 : s->count - 1;
}

int pieces_sumsq(const struct pieces *s)
{
    return s->count * SUMSQ_PARTS;
}

size_t pieces_received(const struct pieces *s, size_t wire, size_t weight)
{
    const size_t shards = (size_t)(s->first[s->count] / s->ranks);
    const size_t each = shards * (wire + weight) + (size_t)pieces_sumsq(s) * sizeof(float);
    return (size_t)(s->ranks - 1) * each;
}

struct shard pieces_held(const struct pieces *s, const struct params *p, int piece, int rank)
{
    CHECK(rank < s->ranks && pieces_elements(s, piece) % s->ranks == 0);
    const int64_t each = pieces_elements(s, piece) / s->ranks;
    struct shard out = {
        .first = s->first[piece] + rank * each, .kept = s->first[piece] / s->ranks, .each = each};
    out.count = between(p->count - out.first, each);
    out.decayed = between(p->decayed - out.first, out.count);
    return out;
}
