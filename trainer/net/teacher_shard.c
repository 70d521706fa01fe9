/* SPDX-License-Identifier: Apache-2.0
 *
 * teacher_shard.c: see teacher_shard.h. Gathers run on the communicator's own stream. That of layer l + 1 begins when
 * layer l may run, so the slot that it overwrites, which held layer l - 1, is free; layer l + 1 waits for it. During
 * the last layer the first one is gathered for the next pass, so that a pass can start while the weights of the
 * student, which are sent before it, are still in transfer.
 */
#include "net/teacher_shard.h"

#include "base/checked.h"
#include "io/error.h"

#include <stdlib.h>

struct teacher_shard {
    nj_comm *comm;
    int rank, ranks;
    size_t
        *first; /* [layers + 1]: beginnings of the slices of the layers, and end of the last one */
    char *kept; /* this rank's slices, one after another, on the device */
    char *slot[2];
    int turn;   /* slot of the layer that is running */
    bool begun; /* layer 0 has been brought once */
};

int teacher_shard_layout(struct net *n, int rank, int ranks)
{
    n->shard = calloc(1, sizeof *n->shard);
    if (n->shard)
        n->shard->first = calloc((size_t)n->c.layers + 1, sizeof *n->shard->first);
    if (!n->shard || !n->shard->first)
        return fail(NJ_E_NOMEM, "no host memory for the layers of the teacher; free some");
    n->shard->rank = rank;
    n->shard->ranks = ranks;
    return 0;
}

void teacher_shard_free(struct net *n)
{
    if (n->shard)
        free(n->shard->first);
    free(n->shard);
    n->shard = NULL;
}

/* ---- where layers lie ---- */

/* Set the address of a layer. Return its bytes. */
static size_t place_layer(const struct net *n, int layer, char *at)
{
    struct carve c = {.base = at};
    net_carve_layer(n, layer, &c);
    return c.used;
}

static size_t slice_bytes(const struct teacher_shard *s, int layer)
{
    return s->first[layer + 1] - s->first[layer];
}

/* Return the bytes of a slice: the same for each rank, and aligned for any access. */
static size_t slice_of(size_t layer_bytes, size_t ranks)
{
    return size_up(size_up(layer_bytes, ranks) / ranks, CARVE_ALIGN);
}

static void cut_layers(const struct net *n)
{
    const struct teacher_shard *s = n->shard;
    for (int l = 0; l < n->c.layers; l++)
        s->first[l + 1] =
            size_add(s->first[l], slice_of(place_layer(n, l, NULL), (size_t)s->ranks));
}

size_t teacher_shard_carve_layers(const struct net *n, struct carve *m)
{
    const size_t from = m->used;
    if (n->shard) {
        cut_layers(n);
        n->shard->kept = carve_take(m, n->shard->first[n->c.layers]);
        return 0;
    }
    for (int l = 0; l < n->c.layers; l++)
        net_carve_layer(n, l, m);
    return size_sub(m->used, from);
}

size_t teacher_shard_slot_bytes(const struct net *n)
{
    size_t most = 0;
    if (!n->shard)
        return 0;
    for (int l = 0; l < n->c.layers; l++)
        if (slice_bytes(n->shard, l) > most)
            most = slice_bytes(n->shard, l);
    return size_mul(most, (size_t)n->shard->ranks);
}

void teacher_shard_carve_slots(const struct net *n, struct carve *m)
{
    const size_t bytes = teacher_shard_slot_bytes(n);
    for (int i = 0; i < 2; i++)
        n->shard->slot[i] = carve_take(m, bytes);
    for (int l = 0; l < n->c.layers; l++)
        place_layer(n, l, n->shard->slot[0]);
}

bool teacher_shard_here(const struct net *n, int layer)
{
    return !n->shard || layer < 0;
}

char *teacher_shard_loaded(const struct net *n, int layer, size_t *bytes)
{
    if (teacher_shard_here(n, layer))
        return NULL;
    *bytes = place_layer(n, layer, n->shard->slot[0]);
    return n->shard->slot[0];
}

void teacher_shard_keep(struct work *r, const struct net *n, int layer)
{
    const struct teacher_shard *s = n->shard;
    const size_t bytes = slice_bytes(s, layer);
    OP(r, nj_copy(r->s, s->kept + s->first[layer], s->slot[0] + (size_t)s->rank * bytes, bytes));
}

void teacher_shard_connect(struct net *n, nj_comm *comm)
{
    if (n->shard)
        n->shard->comm = comm;
}

/* ---- a pass ---- */

bool teacher_shard_collective(const struct net *n)
{
    return n->shard != NULL;
}

static void bring(struct work *r, const struct net *n, int layer)
{
    const struct teacher_shard *s = n->shard;
    char *slot = s->slot[!s->turn];
    place_layer(n, layer, slot);
    OP(r,
       nj_all_gather_aside(s->comm, r->s, slot, s->kept + s->first[layer], slice_bytes(s, layer)));
}

void teacher_shard_begin(struct work *r, const struct net *n)
{
    if (!n->shard || n->shard->begun || r->prepare)
        return;
    n->shard->begun = true;
    bring(r, n, 0);
    teacher_shard_arrive(r, n);
}

/* A layer that is the only one stays. */
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
