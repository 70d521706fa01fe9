/* SPDX-License-Identifier: Apache-2.0
 *
 * emit_inst.c: writes inst/<unit>.cu, the translation unit of an op's keys that have the same number of
 * threads: most of nvcc's time for one key is the CUDA headers. Pointers are not restrict: contracts
 * allow outputs that equal inputs.
 */
#include "emit.h"

#include <string.h>

static const char *key_type(const struct key *k)
{
    return key_dtype(k, DTYPE_T) == DTYPE_LP ? "lp" : "float";
}

static void put_unit_head(struct text *t, const struct key *k)
{
    const struct contract *c = k->c;
    put(t, "// SPDX-License-Identifier: Apache-2.0\n");
    put(t, "// Written by gen from the contract %s.yaml. Do not edit.\n", c->op);
    put(t, "#define NJ_THREADS %d\n#include \"begin.cuh\"\n", k->threads);
    if (k->min_blocks > 0) /* a macro that the source for one arch may redefine */
        put(t, "#define NJ_MIN_BLOCKS NJ_KEY_MIN_BLOCKS\n");
    if (c->block_count > c->param_count)
        put(t, "#include \"tiles.cuh\"\n");
    put(t, "#include \"%s.cu\"\n", c->op);
}

/* Write a line for each axis that a redefinition of NJ_MIN_BLOCKS may depend on. */
static void put_axes(struct text *t, const struct key *k, bool defined)
{
    for (int a = 1; a < k->c->axis_count && k->min_blocks > 0; a++) {
        const struct axis *axis = &k->c->axes[a];
        if (defined)
            put(t, "#define NJ_%s %d\n", axis->name, axis->number[k->value[a]]);
        else
            put(t, "#undef NJ_%s\n", axis->name);
    }
}

static void put_kernel(struct text *t, const struct key *k)
{
    const struct contract *c = k->c;
    put(t, "\n#define NJ_T %s\n", key_type(k));
    if (k->min_blocks > 0)
        put(t, "#define NJ_KEY_MIN_BLOCKS %d\n", k->min_blocks);
    put_axes(t, k, true);
    put(t, "extern \"C\" __global__ void ");
    if (c->cluster > 1)
        put(t, "__cluster_dims__(%d, 1, 1) ", c->cluster);
    put(t, "__launch_bounds__(%d%s)\n    %s(", k->threads,
        k->min_blocks > 0 ? ", NJ_MIN_BLOCKS" : "", k->entry);
    put_declarations(t, 8, c, STYLE_KERNEL, k);
    put(t, ")\n{\n    NJ_BEGIN();\n    %s<%s", c->op, key_type(k));
    for (int a = 1; a < c->axis_count; a++)
        put(t, ", %d", c->axes[a].number[k->value[a]]);
    put(t, ">(");
    for (int i = 0; i < c->block_count; i++)
        put_word(t, 8, keep_format("%s%s", c->params[i].name, i + 1 < c->block_count ? "," : ""));
    put(t, ");\n}\n#undef NJ_T\n%s", k->min_blocks > 0 ? "#undef NJ_KEY_MIN_BLOCKS\n" : "");
    put_axes(t, k, false);
}

int emit_instances(const struct gen *g, const char *out)
{
    const char *dir = keep_format("%s/inst", out);
    if (make_folder(dir) != 0)
        return -1;
    for (int i = 0; i < g->key_count; i++) {
        const struct key *first = &g->keys[i];
        struct text t = {0};
        if (!key_begins_unit(g, first))
            continue;
        put_unit_head(&t, first);
        for (const struct key *k = first; k < g->keys + g->key_count; k++)
            if (k->id >= 0 && strcmp(k->unit, first->unit) == 0)
                put_kernel(&t, k);
        if (put_file(dir, keep_format("%s.cu", first->unit), &t, false) != 0)
            return -1;
    }
    return 0;
}
