/* SPDX-License-Identifier: Apache-2.0
 *
 * launch.c: kernels by number, and what a launcher says when it has to refuse.
 */
#include <stdio.h>
#include <string.h>

#include "internal.h"

#include "base/edit_distance.h"

enum { KEY_MAX = 95, NEAREST = 3 };

int nj_kernel_find(const char *key)
{
    uint32_t low = 0, high = nj_kernel_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = strcmp(nj_kernels[middle].key, key);

        if (order == 0)
            return (int)middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

int nj_kernel_available(const nj_context *ctx, int id)
{
    return ctx && ctx->backend && id >= 0 && (uint32_t)id < nj_kernel_count &&
           ctx->backend->has_kernel(ctx, (uint32_t)id);
}

int nj_spare_load(nj_context *ctx, uint32_t id)
{
    return ctx->backend->load_spare ? ctx->backend->load_spare(ctx, id) : NJ_E_NO_CODE;
}

int nj_tile_map(nj_stream *s, uint32_t id, void *map, const struct nj_tiling *of)
{
    const struct nj_backend *backend;

    if (!s || !map || !of)
        return NJ_E_ARG;
    backend = s->ctx->backend;
    memset(map, 0, NJ_TILE_MAP_BYTES);
    if (!backend->tile_map || id >= nj_kernel_count || !backend->has_kernel(s->ctx, id) ||
        !of->array || of->rows == 0 || of->columns == 0)
        return 0;
    return backend->tile_map(s, id, map, of);
}

int nj_launch(nj_stream *s, uint32_t id, const uint32_t grid[3], uint32_t shared_bytes,
              const void *params)
{
    const struct nj_kernel *kernel;

    if (!s)
        return NJ_E_ARG;
    if (id >= nj_kernel_count)
        return nj_fail(s->ctx, NJ_E_NO_KERNEL, "kernel number %u: there are %u", id,
                       nj_kernel_count);
    kernel = &nj_kernels[id];
    if (!grid || (!params && kernel->param_bytes > 0))
        return nj_fail(s->ctx, NJ_E_ARG, "%s: NULL grid or parameters", kernel->key);
    if (shared_bytes > kernel->max_shared_bytes)
        return nj_fail(s->ctx, NJ_E_ARG, "%s: %u bytes of shared memory asked for, declared are %u",
                       kernel->key, shared_bytes, kernel->max_shared_bytes);
    if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0)
        return 0;
    s->ctx->last_key = kernel->key;
    return s->ctx->backend->launch(s, id, grid, shared_bytes, params);
}

int nj_refuse(nj_stream *s, const char *op, const char *condition, const char *values)
{
    if (!s)
        return NJ_E_ARG;
    return nj_fail(s->ctx, NJ_E_ARG, "%s: %s does not hold (%s)", op, condition, values);
}

/* Find the numbers of the nearest kernels, best first; variants of the same op come before all others. */
static int find_nearest(const char *key, uint32_t nearest[NEAREST])
{
    size_t op_bytes = strcspn(key, ".");
    int n = 0, score[NEAREST];

    for (uint32_t id = 0; id < nj_kernel_count; id++) {
        const struct nj_kernel *k = &nj_kernels[id];
        int same_op = strlen(k->op) == op_bytes && memcmp(k->op, key, op_bytes) == 0;
        int d = edit_distance(key, k->key) + (same_op ? 0 : 2 * EDIT_WORD_MAX);
        int at = n < NEAREST ? n++ : NEAREST;

        while (at > 0 && d < score[at - 1]) {
            if (at < NEAREST) {
                score[at] = score[at - 1];
                nearest[at] = nearest[at - 1];
            }
            at--;
        }
        if (at < NEAREST) {
            score[at] = d;
            nearest[at] = id;
        }
    }
    return n;
}

int nj_no_kernel(nj_stream *s, const char *wanted_key)
{
    uint32_t nearest[NEAREST];
    char list[NEAREST * (KEY_MAX + 3)] = "";
    size_t used = 0;
    int n, op_bytes;

    if (!s || !wanted_key)
        return NJ_E_ARG;
    n = find_nearest(wanted_key, nearest);
    for (int i = 0; i < n; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%.*s", i ? ", " : "", KEY_MAX,
                                 nj_kernels[nearest[i]].key);
    op_bytes = (int)strcspn(wanted_key, ".");
    return nj_fail(s->ctx, NJ_E_NO_KERNEL,
                   "no kernel %.200s (op %.*s, variant %.100s); nearest: %s", wanted_key, op_bytes,
                   wanted_key, wanted_key[op_bytes] ? wanted_key + op_bytes + 1 : "none",
                   n ? list : "none");
}
