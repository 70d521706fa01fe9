/* SPDX-License-Identifier: Apache-2.0
 *
 * emit_make.c: writes the lists: list.mk for make, and what pack and the runtime read as text.
 */
#include "emit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void put_keys(struct text *t, const struct gen *g)
{
    for (int i = 0; i < g->key_count; i++) {
        const struct key *k = &g->keys[i];
        if (k->id < 0)
            continue;
        put(t, "%s\t%s\t%d\t%" PRId64 "\t%s\t%d\t", k->key, k->entry, k->threads, k->max_shared,
            k->c->only ? k->c->only : keep_format("%d", LOWEST_SM), k->c->param_bytes);
        for (int p = 0; p < k->c->block_count; p++)
            put(t, "%s%d:%d", p ? "," : "", k->c->params[p].offset, k->c->params[p].bytes);
        put(t, k->c->when ? "\t%s\n" : "\n", k->c->when);
    }
}

static void put_archs(struct text *t, const struct gen *g)
{
    for (int i = 0; i < g->arch_count; i++) {
        const struct arch *a = &g->archs[i];
        put(t, "%s\t%d\t%c\t%" PRId64 "\t%d\t%d\n", a->name, a->sm, a->suffix ? a->suffix : '-',
            a->shared, a->f16, a->spare);
    }
}

/* Print a line per key and architecture that an excuse covers: key, arch, bytes. */
static void put_spills(struct text *t, const struct gen *g)
{
    for (int i = 0; i < g->key_count; i++) {
        const struct key *k = &g->keys[i];
        for (int a = 0; k->id >= 0 && a < g->arch_count; a++) {
            const int64_t most = arch_bytes_of(&k->c->spills, k, &g->archs[a]);
            if (most > 0 && key_on_arch(k, &g->archs[a]))
                put(t, "%s\t%s\t%" PRId64 "\n", k->key, g->archs[a].name, most);
        }
    }
}

int emit_lists(const struct gen *g, const char *out)
{
    struct text keys = {0}, archs = {0}, spills = {0};
    put_keys(&keys, g);
    put_archs(&archs, g);
    put(&spills, "%s", "");
    put_spills(&spills, g);
    int rc = put_file(out, "keys.txt", &keys, false);
    rc |= put_file(out, "archs.txt", &archs, false);
    rc |= put_file(out, "spills.txt", &spills, false);
    return rc;
}

int emit_make(const struct gen *g, const char *out)
{
    struct text t = {0}, all = {0}, sources = {0};
    put(&t, "# Written by gen. NJ_SHARED is the folder of cubins.\nNJ_ARCHS :=");
    for (int i = 0; i < g->arch_count; i++)
        put(&t, " %s", g->archs[i].name);
    put(&t, "\nNJ_SPARE_ARCHS :=");
    for (int i = 0; i < g->arch_count; i++)
        if (g->archs[i].spare)
            put(&t, " %s", g->archs[i].name);
    for (int i = 0; i < g->arch_count; i++)
        if (g->archs[i].ptxas != NULL)
            put(&t, "\nNJ_PTXAS_%s := %s", g->archs[i].name, g->archs[i].ptxas);
    put(&t, "\nNJ_OPS :=");
    put(&sources, "NJ_REFS :=");
    for (int i = 0; i < g->contract_count; i++) {
        const struct contract *c = g->contracts[i];
        if (op_selected(g, c))
            put(&t, " \\\n  %s", c->op);
        if (op_selected(g, c) || op_fills(g, c))
            put(&sources, " \\\n  %s/ref/%s.c", g->kernels_dir, c->op);
    }
    put(&t, "\nNJ_KEYS :=");
    for (int i = 0; i < g->key_count; i++)
        if (g->keys[i].id >= 0)
            put(&t, " \\\n  %s", g->keys[i].key);
    put(&t, "\nNJ_UNITS :=");
    for (int i = 0; i < g->key_count; i++)
        if (key_begins_unit(g, &g->keys[i]))
            put(&t, " \\\n  %s", g->keys[i].unit);
    put(&t, "\nNJ_SHADERS :=");
    for (int i = 0; i < g->key_count; i++)
        if (g->keys[i].id >= 0 && shader_source(g, &g->keys[i]) != NULL)
            put(&t, " \\\n  %s", g->keys[i].key);
    put(&all, "NJ_CUBINS :=");
    put(&sources, "\n");
    for (int i = 0; i < g->key_count; i++) {
        const struct key *k = &g->keys[i];
        if (k->id < 0)
            continue;
        put(&sources, "NJ_SRC_%s := %s\nNJ_UNIT_%s := %s\nNJ_FATBIN_%s_CUBINS :=", k->key,
            kernel_source(g, k->c), k->key, k->unit, k->key);
        for (int a = 0; a < g->arch_count; a++) {
            if (!key_on_arch(k, &g->archs[a]))
                continue;
            put(&all, " \\\n  $(NJ_SHARED)/cubin/%s.%s.cubin", k->key, g->archs[a].name);
            put(&sources, " \\\n  $(NJ_SHARED)/cubin/%s.%s.cubin", k->key, g->archs[a].name);
        }
        put(&sources, "\n");
    }
    put(&t, "\n%s\n%s", all.s, sources.s);
    free(all.s);
    free(sources.s);
    return put_file(out, "list.mk", &t, true);
}
