/* SPDX-License-Identifier: Apache-2.0
 *
 * emit_ops.c: writes ops.c: for every op a table and a typed launcher, which checks what the contract
 * requires (the parts that all share are in runtime/launcher.h), and the table nj_kernels.
 */
#include "emit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void put_layout(struct text *t, const struct contract *c, bool selected)
{
    put_block(t, c);
    for (int i = 0; i < c->block_count; i++)
        put(t, "_Static_assert(offsetof(struct %s, %s) == %d, \"layout\");\n",
            i < c->param_count ? keep_format("nj_%s", c->op) : block_type(c), c->params[i].name,
            c->params[i].offset);
    if (!selected)
        return;
    put(t, "static const struct nj_param %s_params[] = {", c->op);
    for (int i = 0; i < c->block_count; i++)
        put_word(t, 4,
                 keep_format("{%d, %d}%s", c->params[i].offset, c->params[i].bytes,
                             i + 1 < c->block_count ? "," : "};\n"));
}

static void put_variants(struct text *t, const struct gen *g, const struct contract *c)
{
    put(t, "static const struct nj_variant %s_variants[] = {\n", c->op);
    for (int i = 0; i < g->key_count; i++) {
        const struct key *k = &g->keys[i];
        if (k->c != c)
            continue;
        put(t, "    {%s, {", key_dtype(k, DTYPE_T) == DTYPE_LP ? "NJ_LP" : "NJ_F32");
        for (int a = 1; a < c->axis_count; a++)
            put(t, "%s%d", a > 1 ? ", " : "", c->axes[a].number[k->value[a]]);
        put(t, "%s}, %d},\n", c->axis_count > 1 ? "" : "0", k->id);
    }
    put(t, "};\n");
}

static void put_pointers(struct text *t, const struct contract *c)
{
    put(t, "static const struct nj_pointer %s_pointers[] = {\n", c->op);
    for (int i = 0; i < c->arg_count; i++) {
        const struct arg *a = &c->args[i];
        const int align = a->align > 0 ? a->align : a->dtype == DTYPE_T ? 0 : dtype_bytes(a->dtype);
        put(t, "    {%d, %d, ", c->params[i].offset, align);
        put(t, a->optional ? "NULL" : "\"%s is not NULL\"", a->name);
        put(t, ", \"%s is aligned to %s\"},\n", a->name,
            a->align > 0 ? keep_format("%d bytes", a->align) : "its element");
    }
    put(t, "};\n");
}

static void put_numbers(struct text *t, const struct contract *c)
{
    static const char *const types[] = {[DTYPE_I32] = "NJ_NUMBER_I32",
                                        [DTYPE_I64] = "NJ_NUMBER_I64",
                                        [DTYPE_F32] = "NJ_NUMBER_F32"};
    put(t, "static const struct nj_number %s_numbers[] = {\n", c->op);
    for (int i = c->arg_count; i < c->param_count; i++) {
        const struct param *p = &c->params[i];
        put(t, "    {\"%s\", %d, %s},\n", p->name, p->offset, types[p->dtype]);
    }
    put(t, "};\n");
}

static void put_op(struct text *t, const struct gen *g, const struct contract *c)
{
    put_variants(t, g, c);
    put_pointers(t, c);
    put_numbers(t, c);
    put(t, "static const struct nj_op %s_op = {\n    .name = \"%s\", .axes = {", c->op, c->op);
    for (int a = 1; a < c->axis_count; a++)
        put(t, "\"%s\", ", c->axes[a].name);
    put(t,
        "NULL},\n    .variants = %s_variants, .variant_count = sizeof %s_variants / sizeof "
        "*%s_variants,\n",
        c->op, c->op, c->op);
    put(t, "    .pointers = %s_pointers, .pointer_count = %d,\n", c->op, c->arg_count);
    put(t, "    .numbers = %s_numbers, .number_count = %d,\n", c->op,
        c->param_count - c->arg_count);
    put(t, "    .cluster = %d", c->cluster);
    if (c->cluster > 1)
        put(t, ", .whole_clusters = \"the grid is a multiple of the cluster of %d blocks\"",
            c->cluster);
    put(t, "};\n");
}

/* Return whether a key has a float reference: an f32 key has one unless an argument is 16-bit regardless of T. */
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
        put_ref_call(t, c, STYLE_REF_F32, k);
        put(t, "}\n");
    }
}

/* Print one expression of a list of choices as C: "axes[0] == 64 ? a : b". */
static void put_choice(struct text *t, const struct contract *c, const struct choices *list,
                       int index)
{
    const struct scope names = scope_in_code(c, NULL);
    for (int i = 0; i < list->count; i++) {
        const struct choice *x = &list->of[i];
        if (i + 1 < list->count) {
            const struct axis *a = &c->axes[x->axis];
            if (x->axis == 0)
                put(t, "T == %s ? ", a->number[x->value] == DTYPE_LP ? "NJ_LP" : "NJ_F32");
            else
                put(t, "axes[%d] == %d ? ", x->axis - 1, a->number[x->value]);
        }
        if (index < x->count)
            expr_print(t, x->e[index], &names);
        else
            put(t, "1");
        put(t, i + 1 < list->count ? " : " : "");
    }
}

/* Conditions of a contract, printed as one chain of ifs. */
struct checks {
    struct text *t;
    const struct contract *c;
    struct scope names;
    bool any;
    const char *seen[MAX_LINES]; /* divisors that are checked already */
    int seen_count;
};

static void put_check(struct checks *k, const char *code, const char *condition)
{
    put(k->t, "    %sif (!(%s))\n        broken = \"", k->any ? "else " : "", code);
    put_quoted(k->t, condition);
    put(k->t, "\";\n");
    k->any = true;
}

static const char *code_of(const struct expr *e, const struct scope *names)
{
    struct text t = {0};
    expr_print(&t, e, names);
    const char *s = keep_format("%s", t.s);
    free(t.s);
    return s;
}

static void check_divisor(void *user, const struct expr *divisor)
{
    struct checks *k = user;
    const char *s = keep_format("%s != 0", code_of(divisor, &k->c->scope));
    for (int i = 0; i < k->seen_count; i++)
        if (strcmp(k->seen[i], s) == 0)
            return;
    if (k->seen_count < MAX_LINES)
        k->seen[k->seen_count++] = s;
    put_check(k, keep_format("%s != 0", code_of(divisor, &k->names)), s);
}

static void check_choice_divisors(struct checks *k, const struct choices *list)
{
    for (int i = 0; i < list->count; i++)
        for (int j = 0; j < list->of[i].count; j++)
            expr_divisors(list->of[i].e[j], check_divisor, k);
}

static void put_checks(struct text *t, const struct contract *c)
{
    struct checks k = {.t = t, .c = c, .names = scope_in_code(c, NULL)};
    for (int i = 0; i < c->require_count; i++) {
        expr_divisors(c->require[i], check_divisor, &k);
        put_check(&k, code_of(c->require[i], &k.names), c->require[i]->source);
    }
    check_choice_divisors(&k, &c->grid);
    check_choice_divisors(&k, &c->smem);
    put(t, "    if (broken == NULL)\n        broken = nj_pointers_broken(&call);\n");
    put(t, "    if (broken == NULL)\n        broken = nj_grid_broken(call.op, blocks);\n");
}

/* Return the expression for shared memory if it depends on dims, else NULL. */
static const char *shared_by_dims(const struct contract *c)
{
    for (int i = 0; i < c->smem.count; i++)
        if (expr_uses(c->smem.of[i].e[0], c->dim_count))
            return c->smem.of[i].e[0]->source;
    return NULL;
}

static void put_shared_check(struct text *t, const struct contract *c)
{
    const char *shared = shared_by_dims(c);
    if (shared == NULL)
        return;
    put(t, "    if (broken == NULL && (shared < 0 || shared > nj_kernels[id].max_shared_bytes))\n");
    put(t, "        broken = \"");
    put_quoted(
        t, keep_format("%s bytes of shared memory, at most as in the largest tested case", shared));
    put(t, "\";\n");
}

static void put_axes(struct text *t, const struct contract *c)
{
    put(t, "    const int axes[NJ_AXES_MAX] = {");
    for (int a = 1; a < c->axis_count; a++)
        put(t, "%s%s", a > 1 ? ", " : "", c->axes[a].name);
    put(t, "%s};\n", c->axis_count > 1 ? "" : "0");
}

static void put_tile_maps(struct text *t, const struct contract *c)
{
    const struct scope names = scope_in_code(c, NULL);
    put(t, "    struct %s block = {.args = *args};\n    int rc = 0;\n", block_type(c));
    for (int i = c->param_count; i < c->block_count; i++) {
        const struct arg *a = c->params[i].tiled;
        put(t, "    if (rc == 0)\n        rc = nj_tile_map(stream, (uint32_t)id, block.%s,\n",
            c->params[i].name);
        put(t,
            "            &(struct nj_tiling){.name = \"%s\", .array = args->%s, .tile_rows = %d,\n",
            a->name, a->name, a->tile_rows);
        put(t, "                .rows = ");
        expr_print(t, a->shape[0], &names);
        put(t, ", .columns = ");
        expr_print(t, a->shape[1], &names);
        put(t, "});\n");
    }
    put(t, "    if (rc != 0)\n        return rc;\n");
}

static void put_launcher(struct text *t, const struct contract *c)
{
    put_signature(t, c);
    put(t, "\n{\n");
    put_axes(t, c);
    put(t, "    const struct nj_call call = {stream, &%s_op, T, axes, args};\n", c->op);
    put(t, "    const int id = nj_variant_find(call.op, T, axes);\n");
    put(t, "    if (id < 0)\n        return nj_call_no_kernel(&call);\n");
    put(t, "    if (args == NULL)\n        return nj_call_refuse(&call, \"args is not NULL\");\n");
    put(t, "    const int64_t blocks[3] = {");
    for (int i = 0; i < 3; i++) {
        put_choice(t, c, &c->grid, i);
        put(t, i < 2 ? ", " : "};\n");
    }
    put(t, "    const int64_t shared = ");
    put_choice(t, c, &c->smem, 0);
    put(t, ";\n    const char *broken = NULL;\n");
    put_checks(t, c);
    put_shared_check(t, c);
    put(t, "    if (broken != NULL)\n        return nj_call_refuse(&call, broken);\n");
    if (has_maps(c))
        put_tile_maps(t, c);
    put(t, "    return nj_launch_blocks(stream, id, blocks, shared, %s);\n}\n\n",
        has_maps(c) ? "&block" : "args");
}

static void put_available(struct text *t, const struct contract *c)
{
    put(t, "int nj_%s_available(const nj_context *ctx, enum nj_dtype T", c->op);
    for (int a = 1; a < c->axis_count; a++)
        put(t, ", int %s", c->axes[a].name);
    put(t, ")\n{\n");
    put_axes(t, c);
    put(t, "    return nj_kernel_available(ctx, nj_variant_find(&%s_op, T, axes));\n}\n\n", c->op);
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

/* Print the operations and bytes of a launch, from which its time is estimated, for keys that have a shader. */
static void put_work(struct text *t, const struct gen *g)
{
    for (int i = 0; i < g->key_count; i++) {
        const struct key *k = &g->keys[i];
        if (k->id < 0 || shader_source(g, k) == NULL)
            continue;
        put(t, "static void %s_work(const void *params, double *flops, double *bytes)\n{\n",
            key_symbol(k));
        const struct scope names = scope_in_code(k->c, k);
        put_scope(t, k->c, k);
        put(t, "    *flops = (double)");
        expr_print(t, k->c->flops, &names);
        put(t, ";\n    *bytes = (double)");
        expr_print(t, k->c->bytes, &names);
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
    struct text t = {0};
    put(&t, "/* SPDX-License-Identifier: Apache-2.0\n *\n"
            " * Written by gen from the kernel contracts. Do not edit.\n */\n");
    put(&t, "#include \"%s\"\n#include \"launcher.h\"\n\n", g->header);
    for (int i = 0; i < g->contract_count; i++) {
        const struct contract *c = g->contracts[i];
        put(&t, "/* ---- %s ---- */\n\n", c->op);
        put_layout(&t, c, op_selected(g, c));
        put_op(&t, g, c);
        put(&t, "\n");
        put_cpu(&t, g, c);
        put(&t, "\n");
        put_launcher(&t, c);
        if (c->only)
            put_available(&t, c);
    }
    put_work(&t, g);
    put_table(&t, g);
    return put_file(out, "ops.c", &t, false);
}
