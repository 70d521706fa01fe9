/* SPDX-License-Identifier: Apache-2.0
 *
 * teacher_shard.c: see teacher_shard.h. Broadcasts run on the communicator's own stream. That of layer l + 1 begins
 * when layer l may, so the slot that it overwrites, where layer l - 1 was read, is free; layer l + 1 waits for it.
 * Beside the last layer the first one is brought for the next pass, so that a pass can start while the weights of the
 * student, which are sent before it, are still under way.
 */
#include "engine/teacher_shard.h"

#include "checked.h"
#include "engine/f8.h"
#include "engine/quant.h"
#include "io/error.h"

#include <stdlib.h>

struct teacher_shard {
    nj_comm *comm;
    int rank, ranks;
    char *kept; /* device: the layers of this rank, one after another */
    char *slot[2];
    int turn;   /* slot of the layer that runs */
    bool begun; /* layer 0 has come, once */
};

int teacher_shard_layout(struct net *n, int rank, int ranks)
{
    n->shard = calloc(1, sizeof *n->shard);
    if (!n->shard)
        return fail(NJ_E_NOMEM, "no host memory for the layers of the teacher; free some");
    n->shard->rank = rank;
    n->shard->ranks = ranks;
    return 0;
}

void teacher_shard_free(struct net *n)
{
    free(n->shard);
    n->shard = NULL;
}

static int owner_of(const struct teacher_shard *s, int layer)
{
    return layer % s->ranks;
}

bool teacher_shard_keeps(const struct net *n, int matrix)
{
    return !n->shard || matrix >= net_head(n) ||
           owner_of(n->shard, matrix / PRODUCTS) == n->shard->rank;
}

/* ---- where layers lie ---- */

static void carve_layer(const struct net *n, int layer, struct carve *m)
{
    f8_carve_layer(n, layer, m);
    quant_carve_layer(n, layer, m);
}

/* Says that a layer lies at `at`; returns its bytes. */
static size_t place_layer(const struct net *n, int layer, char *at)
{
    struct carve c = {.base = at};
    carve_layer(n, layer, &c);
    return c.used;
}

static char *place_of(const struct net *n, int layer)
{
    return n->f8 ? n->f8[layer * PRODUCTS].q : n->quant[layer * PRODUCTS].part[0].data;
}

char *teacher_shard_layer(const struct net *n, int layer, size_t *bytes)
{
    char *at = place_of(n, layer);
    *bytes = place_layer(n, layer, at);
    return at;
}

static size_t kept_bytes(const struct net *n, int rank)
{
    size_t bytes = 0;
    for (int l = rank; l < n->c.layers; l += n->shard->ranks)
        bytes = size_add(bytes, place_layer(n, l, NULL));
    return bytes;
}

static size_t slot_bytes(const struct net *n)
{
    size_t most = 0;
    for (int l = 0; l < n->c.layers; l++) {
        const size_t bytes = place_layer(n, l, NULL);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static void place_kept(const struct net *n)
{
    char *at = n->shard->kept;
    for (int l = n->shard->rank; at && l < n->c.layers; l += n->shard->ranks)
        at += place_layer(n, l, at);
}

void teacher_shard_carve_layers(const struct net *n, struct carve *m)
{
    size_t most = 0;
    for (int l = 0; !n->shard && l < n->c.layers; l++)
        carve_layer(n, l, m);
    for (int rank = 0; n->shard && rank < n->shard->ranks; rank++) {
        const size_t bytes = kept_bytes(n, rank);
        most = bytes > most ? bytes : most;
    }
    if (n->shard)
        n->shard->kept = carve_take(m, most);
}

void teacher_shard_carve_slots(const struct net *n, struct carve *m)
{
    const size_t bytes = slot_bytes(n);
    for (int i = 0; i < 2; i++)
        n->shard->slot[i] = carve_take(m, bytes);
    for (int l = 0; l < n->c.layers; l++)
        place_layer(n, l, n->shard->slot[0]);
    place_kept(n);
}

void teacher_shard_connect(struct net *n, nj_comm *comm)
{
    if (n->shard)
        n->shard->comm = comm;
}

/* ---- a pass ---- */

static void bring(struct work *r, const struct net *n, int layer)
{
    const struct teacher_shard *s = n->shard;
    const bool kept = owner_of(s, layer) == s->rank;
    char *at = kept ? place_of(n, layer) : s->slot[!s->turn];
    const size_t bytes = place_layer(n, layer, at);
    OP(r, nj_broadcast_aside(s->comm, r->s, at, bytes, owner_of(s, layer)));
}

void teacher_shard_begin(struct work *r, const struct net *n)
{
    if (!n->shard || n->shard->begun || r->prepare)
        return;
    n->shard->begun = true;
    bring(r, n, 0);
    teacher_shard_arrive(r, n);
}

/* An only layer stays. */
void teacher_shard_ahead(struct work *r, const struct net *n, int layer)
{
    if (n->shard && n->c.layers > 1)
        bring(r, n, (layer + 1) % n->c.layers);
}

void teacher_shard_arrive(struct work *r, const struct net *n)
{
    if (!n->shard)
        return;
    OP(r, nj_comm_join(n->shard->comm, r->s));
    n->shard->turn = !n->shard->turn;
}

void teacher_shard_attend(struct work *r, const struct net *n)
{
    teacher_shard_begin(r, n);
    for (int l = 0; n->shard && l < n->c.layers; l++) {
        teacher_shard_ahead(r, n, l);
        teacher_shard_arrive(r, n);
    }
}
