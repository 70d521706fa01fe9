/* SPDX-License-Identifier: Apache-2.0
 *
 * emit_ops.c: writes ops.c: a typed launcher for every op, which checks what the contract requires
 * and fills the parameter block, and the table nj_kernels.
 */
#include "emit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char helper_code[] =
    "struct variant {\n"
    "    enum nj_dtype T;\n"
    "    int axes[%d];\n"
    "    int id; /* index of nj_kernels, or -1: not in this build */\n"
    "};\n"
    "\n"
    "static int find_variant(const struct variant *list, size_t count, enum nj_dtype T,\n"
    "                        const int *axes)\n"
    "{\n"
    "    for (size_t i = 0; i < count; i++)\n"
    "        if (list[i].T == T && memcmp(list[i].axes, axes, sizeof list[i].axes) == 0)\n"
    "            return list[i].id;\n"
    "    return -1;\n"
    "}\n"
    "\n"
    "static const char *dtype_name(enum nj_dtype T)\n"
    "{\n"
    "    return T == NJ_LP ? \"lp\" : T == NJ_F32 ? \"f32\" : \"unknown\";\n"
    "}\n"
    "\n"
    "static int misaligned(const void *p, uintptr_t bytes)\n"
    "{\n"
    "    return (uintptr_t)p %% bytes != 0;\n"
    "}\n"
    "\n"
    "static int grid_fits(const int64_t blocks[3])\n"
    "{\n"
    "    return blocks[0] >= 0 && blocks[0] <= INT32_MAX && blocks[1] >= 0 && blocks[1] <= 65535 "
    "&&\n"
    "           blocks[2] >= 0 && blocks[2] <= 65535;\n"
    "}\n"
    "\n"
    "static int launch(nj_stream *stream, int id, const int64_t blocks[3], int64_t shared,\n"
    "                  const void *block)\n"
    "{\n"
    "    const uint32_t grid[3] = {(uint32_t)blocks[0], (uint32_t)blocks[1], "
    "(uint32_t)blocks[2]};\n"
    "    return nj_launch(stream, (uint32_t)id, grid, (uint32_t)shared, block);\n"
    "}\n\n";

static void put_layout(struct text *t, const struct contract *c, bool selected)
{
    put_block(t, c);
    for (int i = 0; i < c->block_count; i++)
        put(t, "_Static_assert(offsetof(struct %s_block, %s) == %d, \"layout\");\n", c->op,
            c->params[i].name, c->params[i].offset);
    if (!selected)
        return;
    put(t, "static const struct nj_param %s_params[] = {", c->op);
    for (int i = 0; i < c->block_count; i++)
        put_word(t, 4,
                 keep_format("{%d, %d}%s", c->params[i].offset, c->params[i].bytes,
                             i + 1 < c->block_count ? "," : "};\n"));
}

/* The float reference of an f32 key; none where an argument is 16-bit regardless of T. */
static bool has_cpu(const struct key *k)
{
    for (int i = 0; i < k->c->arg_count; i++)
        if (key_dtype(k, k->c->args[i].dtype) == DTYPE_LP)
            return false;
    return key_dtype(k, DTYPE_T) == DTYPE_F32;
}

static void put_cpu(struct text *t, const struct gen *g, const struct contract *c)
{
    bool declared = false;
    for (int i = 0; i < g->key_count; i++) {
        const struct key *k = &g->keys[i];
        if (k->c != c || k->id < 0 || !has_cpu(k))
            continue;
        if (!declared)
            put_ref_prototype(t, c, STYLE_REF_F32);
        declared = true;
        put(t, "static void %s_cpu(const void *params)\n{\n", key_symbol(k));
        put(t, "    const struct %s_block *p = params;\n    nj_ref_%s_f32(", c->op, c->op);
        for (int a = 1; a < c->axis_count; a++)
            put_word(t, 8, keep_format("%d,", c->axes[a].number[k->value[a]]));
        put_block_values(t, 8, c, c->axis_count == 1);
        put(t, ");\n}\n");
    }
}

static void put_signature(struct text *t, const struct contract *c)
{
    put(t, "int nj_%s(nj_stream *stream, enum nj_dtype T,", c->op);
    for (int a = 1; a < c->axis_count; a++)
        put_word(t, 4, keep_format("int %s,", c->axes[a].name));
    put_declarations(t, 4, c, STYLE_LAUNCHER, NULL);
    put(t, ")");
}

static void put_variants(struct text *t, const struct gen *g, const struct contract *c)
{
    put(t, "    static const struct variant variants[] = {\n");
    for (int i = 0; i < g->key_count; i++) {
        const struct key *k = &g->keys[i];
        if (k->c != c)
            continue;
        put(t, "        {%s, {", key_dtype(k, DTYPE_T) == DTYPE_LP ? "NJ_LP" : "NJ_F32");
        for (int a = 1; a < c->axis_count; a++)
            put(t, "%s%d", a > 1 ? ", " : "", c->axes[a].number[k->value[a]]);
        put(t, "%s}, %d},\n", c->axis_count > 1 ? "" : "0", k->id);
    }
    put(t, "    };\n");
}

/* One expression of a list of choices as C: "D == 64 ? a : b". */
static void put_choice(struct text *t, const struct contract *c, const struct choices *list,
                       int index, uint32_t *used)
{
    for (int i = 0; i < list->count; i++) {
        const struct choice *x = &list->of[i];
        if (i + 1 < list->count) {
            const struct axis *a = &c->axes[x->axis];
            if (x->axis == 0)
                put(t, "T == %s ? ", a->number[x->value] == DTYPE_LP ? "NJ_LP" : "NJ_F32");
            else
                put(t, "%s == %d ? ", a->name, a->number[x->value]);
        }
        if (index < x->count)
            expr_print(t, x->e[index], &c->scope, used);
        else
            put(t, "1");
        put(t, i + 1 < list->count ? " : " : "");
    }
}

struct checks {
    struct text *t;
    const struct contract *c;
    uint32_t *used;
    bool any;
    const char *seen[MAX_LINES]; /* divisors checked already */
    int seen_count;
};

/* Starts "if (" or "else if (". */
static void put_if(struct checks *k)
{
    put(k->t, "    %sif (", k->any ? "else " : "");
    k->any = true;
}

static void put_then(struct checks *k, const char *condition)
{
    put(k->t, ")\n        broken = \"");
    put_quoted(k->t, condition);
    put(k->t, "\";\n");
}

static void check_divisor(void *user, const struct expr *divisor)
{
    struct checks *k = user;
    struct text code = {0};
    expr_print(&code, divisor, &k->c->scope, k->used);
    const char *s = keep_format("%s != 0", code.s);
    free(code.s);
    for (int i = 0; i < k->seen_count; i++)
        if (strcmp(k->seen[i], s) == 0)
            return;
    if (k->seen_count < MAX_LINES)
        k->seen[k->seen_count++] = s;
    put_if(k);
    put(k->t, "!(%s)", s);
    put_then(k, s);
}

static void check_choice_divisors(struct checks *k, const struct choices *list)
{
    for (int i = 0; i < list->count; i++)
        for (int j = 0; j < list->of[i].count; j++)
            expr_divisors(list->of[i].e[j], check_divisor, k);
}

/* The expression for shared memory if it depends on dims, else NULL. */
static const char *shared_by_dims(const struct contract *c)
{
    for (int i = 0; i < c->smem.count; i++)
        if (expr_uses(c->smem.of[i].e[0], c->dim_count))
            return c->smem.of[i].e[0]->source;
    return NULL;
}

static void put_checks(struct checks *k)
{
    const struct contract *c = k->c;
    for (int i = 0; i < c->require_count; i++) {
        expr_divisors(c->require[i], check_divisor, k);
        put_if(k);
        put(k->t, "!(");
        expr_print(k->t, c->require[i], &c->scope, k->used);
        put(k->t, ")");
        put_then(k, c->require[i]->source);
    }
    check_choice_divisors(k, &c->grid);
    check_choice_divisors(k, &c->smem);
    for (int i = 0; i < c->arg_count; i++) {
        const struct arg *a = &c->args[i];
        if (!a->optional) {
            put_if(k);
            put(k->t, "%s == NULL", a->name);
            put_then(k, keep_format("%s is not NULL", a->name));
        }
        put_if(k);
        if (a->align > 0) {
            put(k->t, "misaligned(%s, %d)", a->name, a->align);
            put_then(k, keep_format("%s is aligned to %d bytes", a->name, a->align));
            continue;
        }
        put(k->t, "misaligned(%s, %s)", a->name,
            a->dtype == DTYPE_T ? "i64_size(T)" : keep_format("%d", dtype_bytes(a->dtype)));
        *k->used |= a->dtype == DTYPE_T ? 1u << EXPR_SIZE : 0;
        put_then(k, keep_format("%s is aligned to its element", a->name));
    }
    put_if(k);
    put(k->t, "!grid_fits(blocks)");
    put_then(k, "the grid fits the device: at most 2147483647, 65535, 65535 blocks");
    if (c->cluster > 1) {
        put_if(k);
        put(k->t, "blocks[0] %% %d != 0", c->cluster);
        put_then(k, keep_format("the grid is a multiple of the cluster of %d blocks", c->cluster));
    }
    const char *shared = shared_by_dims(c);
    if (shared != NULL) {
        put_if(k);
        put(k->t, "shared < 0 || shared > nj_kernels[id].max_shared_bytes");
        put_then(k, keep_format("%s bytes of shared memory, at most as in the largest tested case",
                                shared));
    }
}

static void put_refusal(struct text *t, const struct contract *c)
{
    put(t, "    if (broken != NULL) {\n        char values[%d];\n",
        64 + 64 * (c->param_count - c->arg_count));
    put(t, "        snprintf(values, sizeof values, \"T=%%s");
    for (int a = 1; a < c->axis_count; a++)
        put(t, ", %s=%%d", c->axes[a].name);
    for (int i = c->arg_count; i < c->param_count; i++) {
        const struct param *p = &c->params[i];
        put(t, ", %s=%%%s", p->name, p->dtype == DTYPE_F32 ? "g" : "lld");
    }
    put(t, "\",\n                ");
    put_word(t, 17, "dtype_name(T)");
    for (int a = 1; a < c->axis_count; a++) {
        put(t, ",");
        put_word(t, 17, c->axes[a].name);
    }
    for (int i = c->arg_count; i < c->param_count; i++) {
        const struct param *p = &c->params[i];
        put(t, ",");
        put_word(t, 17,
                 keep_format("%s%s", p->dtype == DTYPE_F32 ? "(double)" : "(long long)", p->name));
    }
    put(t, ");\n        return nj_refuse(stream, \"%s\", broken, values);\n    }\n", c->op);
}

static void put_missing(struct text *t, const struct contract *c)
{
    put(t, "    if (id < 0) {\n        char wanted[128];\n");
    put(t, "        snprintf(wanted, sizeof wanted, \"%s.%%s", c->op);
    for (int a = 1; a < c->axis_count; a++) {
        put(t, ".");
        for (const char *s = c->axes[a].name; *s; s++)
            put(t, "%c", *s >= 'A' && *s <= 'Z' ? *s - 'A' + 'a' : *s);
        put(t, "%%d");
    }
    put(t, "\", dtype_name(T)");
    for (int a = 1; a < c->axis_count; a++)
        put(t, ", %s", c->axes[a].name);
    put(t, ");\n        return nj_no_kernel(stream, wanted);\n    }\n");
}

static void put_find(struct text *t, const struct contract *c)
{
    put(t, "    const int axes[] = {");
    for (int a = 1; a < c->axis_count; a++)
        put(t, "%s%s", a > 1 ? ", " : "", c->axes[a].name);
    put(t, "%s};\n", c->axis_count > 1 ? "" : "0");
    put(t, "    const int id = find_variant(variants, sizeof variants / sizeof *variants, T, "
           "axes);\n");
}

static void put_tile_maps(struct text *t, const struct contract *c, uint32_t *used)
{
    put(t, "    int rc = 0;\n");
    for (int i = c->param_count; i < c->block_count; i++) {
        const struct arg *a = c->params[i].tiled;
        put(t, "    if (rc == 0)\n        rc = nj_tile_map(stream, (uint32_t)id, block.%s,\n",
            c->params[i].name);
        put(t, "            &(struct nj_tiling){.name = \"%s\", .array = %s, .tile_rows = %d,\n",
            a->name, a->name, a->tile_rows);
        put(t, "                .rows = ");
        expr_print(t, a->shape[0], &c->scope, used);
        put(t, ", .columns = ");
        expr_print(t, a->shape[1], &c->scope, used);
        put(t, "});\n");
    }
    put(t, "    if (rc != 0)\n        return rc;\n");
}

static void put_launcher(struct text *t, const struct gen *g, const struct contract *c,
                         uint32_t *used)
{
    struct checks checks = {.t = t, .c = c, .used = used};
    put_signature(t, c);
    put(t, "\n{\n");
    put_variants(t, g, c);
    const bool tiled = c->block_count > c->param_count;
    put(t, "    %sstruct %s_block block = {", tiled ? "" : "const ", c->op);
    for (int i = 0; i < c->param_count; i++)
        put_word(t, 8,
                 keep_format(".%s = %s%s", c->params[i].name, c->params[i].name,
                             i + 1 < c->param_count ? "," : "};\n"));
    put(t, "    const int64_t blocks[3] = {");
    for (int i = 0; i < 3; i++) {
        put_choice(t, c, &c->grid, i, used);
        put(t, i < 2 ? ", " : "};\n");
    }
    put(t, "    const int64_t shared = ");
    put_choice(t, c, &c->smem, 0, used);
    put(t, ";\n");
    put_find(t, c);
    put(t, "    const char *broken = NULL;\n\n");
    put_missing(t, c);
    put_checks(&checks);
    put_refusal(t, c);
    if (tiled)
        put_tile_maps(t, c, used);
    put(t, "    return launch(stream, id, blocks, shared, &block);\n}\n\n");
}

static void put_available(struct text *t, const struct gen *g, const struct contract *c)
{
    put(t, "int nj_%s_available(const nj_context *ctx, enum nj_dtype T", c->op);
    for (int a = 1; a < c->axis_count; a++)
        put(t, ", int %s", c->axes[a].name);
    put(t, ")\n{\n");
    put_variants(t, g, c);
    put_find(t, c);
    put(t, "\n    return nj_kernel_available(ctx, id);\n}\n\n");
}

static void put_arch_shared(struct text *t, const struct gen *g, const struct key *k)
{
    int count = 0;
    for (int i = 0; i < g->arch_count; i++) {
        const struct arch *a = &g->archs[i];
        const int64_t bytes = arch_bytes_of(&k->c->arch_smem, k, a);
        if (bytes == 0 || !key_on_arch(k, a))
            continue;
        put(t, count++ ? ", " : "     .arch_shared = (const struct nj_arch_shared[]){");
        put(t, "{\"%s\", %" PRId64 "}", a->name, bytes);
    }
    put(t, count ? ", {NULL, 0}},\n" : "");
}

/* Operations and bytes of a launch, of keys that have a shader: how long it may take. */
static void put_work(struct text *t, const struct gen *g, uint32_t *used)
{
    for (int i = 0; i < g->key_count; i++) {
        const struct key *k = &g->keys[i];
        if (k->id < 0 || shader_source(g, k) == NULL)
            continue;
        put(t, "static void %s_work(const void *params, double *flops, double *bytes)\n{\n",
            key_symbol(k));
        put(t, "    const enum nj_dtype T = %s;\n    (void)T;\n",
            key_dtype(k, DTYPE_T) == DTYPE_LP ? "NJ_LP" : "NJ_F32");
        put_scope(t, k->c, k);
        put(t, "    *flops = (double)");
        expr_print(t, k->c->flops, &k->c->scope, used);
        put(t, ";\n    *bytes = (double)");
        expr_print(t, k->c->bytes, &k->c->scope, used);
        put(t, ";\n}\n");
    }
}

static void put_table(struct text *t, const struct gen *g)
{
    put(t, "const struct nj_kernel nj_kernels[] = {\n");
    for (int i = 0; i < g->key_count; i++) {
        const struct key *k = &g->keys[i];
        const struct contract *c = k->c;
        if (k->id < 0)
            continue;
        put(t, "    {.key = \"%s\",\n     .op = \"%s\",\n     .entry = \"%s\",\n", k->key, c->op,
            k->entry);
        put(t, "     .threads = %d,\n     .max_shared_bytes = %" PRId64 ",\n", k->threads,
            k->max_shared);
        put(t, "     .param_bytes = %d,\n     .param_count = %d,\n", c->param_bytes,
            c->block_count);
        put(t, c->only ? "     .only = \"%s\",\n" : "     .only = NULL,\n", c->only);
        put_arch_shared(t, g, k);
        put(t, "     .params = %s_params,\n", c->op);
        put(t, shader_source(g, k) ? "     .work = %s_work,\n" : "     .work = NULL,\n",
            key_symbol(k));
        put(t, has_cpu(k) ? "     .cpu = %s_cpu},\n" : "     .cpu = NULL},\n", key_symbol(k));
    }
    put(t, "};\nconst uint32_t nj_kernel_count = %d;\n", g->selected_count);
}

int emit_ops(const struct gen *g, const char *out)
{
    struct text body = {0}, t = {0};
    uint32_t used = 0;
    int most_axes = 1;
    for (int i = 0; i < g->contract_count; i++) {
        const struct contract *c = g->contracts[i];
        most_axes = c->axis_count - 1 > most_axes ? c->axis_count - 1 : most_axes;
        put(&body, "/* ---- %s ---- */\n\n", c->op);
        put_layout(&body, c, op_selected(g, c));
        put(&body, "\n");
        put_cpu(&body, g, c);
        put(&body, "\n");
        put_launcher(&body, g, c, &used);
        if (c->only)
            put_available(&body, g, c);
    }
    put_work(&body, g, &used);
    put(&t, "/* SPDX-License-Identifier: Apache-2.0\n *\n"
            " * Written by gen from the kernel contracts. Do not edit.\n */\n");
    put(&t, "#include \"%s\"\n\n#include <stdio.h>\n#include <string.h>\n\n", g->header);
    put(&t, helper_code, most_axes);
    expr_helpers(&t, used);
    put(&t, "%s", body.s);
    free(body.s);
    put_table(&t, g);
    return put_file(out, "ops.c", &t, false);
}
