/* SPDX-License-Identifier: Apache-2.0
 *
 * emit.c: how parameters are written in C and CUDA C; shared by the writers.
 */
#include "emit.h"

#include <string.h>

/* Element types by style and dtype (T, lp, f32, i32, f8, bf16, e5m2). STYLE_KERNEL resolves T first. */
static const char *const elements[][7] = {
    [STYLE_KERNEL] = {NULL, "lp", "float", "int32_t", "uint8_t", "__nv_bfloat16", "uint8_t"},
    [STYLE_LAUNCHER] = {"void", "void", "float", "int32_t", "void", "void", "void"},
    [STYLE_BLOCK] = {"void", "void", "void", "void", "void", "void", "void"},
    [STYLE_REF_F32] = {"float", "float", "float", "int32_t", "uint8_t", "uint16_t", "uint8_t"},
    [STYLE_REF_F64] = {"double", "double", "double", "int32_t", "double", "double", "double"},
};

/* The declaration of p, without what separates it from the next; k may be NULL except for
 * STYLE_KERNEL. */
static const char *param_declaration(const struct param *p, enum style style, const struct key *k)
{
    if (p->tiled != NULL)
        return style == STYLE_KERNEL ? keep_format("const __grid_constant__ nj_tiles %s", p->name)
                                     : keep_format("unsigned char %s[%d]", p->name, p->bytes);
    static const char *const values[] = {
        [DTYPE_F32] = "float", [DTYPE_I32] = "int32_t", [DTYPE_I64] = "int64_t"};
    if (p->arg == NULL)
        return keep_format("%s %s", values[p->dtype], p->name);
    enum dtype dtype = style == STYLE_KERNEL ? key_dtype(k, p->dtype) : p->dtype;
    return keep_format("%s%s *%s", p->arg->dir == DIR_IN ? "const " : "", elements[style][dtype],
                       p->name);
}

void put_declarations(struct text *t, int indent, const struct contract *c, enum style style,
                      const struct key *k)
{
    const int count = style == STYLE_KERNEL ? c->block_count : c->param_count;
    for (int i = 0; i < count; i++)
        put_word(t, indent,
                 keep_format("%s%s", param_declaration(&c->params[i], style, k),
                             i + 1 < count ? "," : ""));
}

void put_block(struct text *t, const struct contract *c)
{
    put(t, "struct %s_block {\n", c->op);
    int end = 0;
    for (int i = 0; i < c->block_count; i++) {
        const struct param *p = &c->params[i];
        if (p->tiled != NULL && p->offset > end) /* no alignment that C knows */
            put(t, "    unsigned char before_%s[%d];\n", p->name, p->offset - end);
        put(t, "    %s;\n", param_declaration(p, STYLE_BLOCK, NULL));
        end = p->offset + p->bytes;
    }
    put(t, "};\n");
}

void put_block_values(struct text *t, int indent, const struct contract *c, bool first)
{
    for (int i = 0; i < c->param_count; i++) {
        const char *comma = i + 1 < c->param_count ? "," : "";
        const char *word = keep_format("p->%s%s", c->params[i].name, comma);
        if (first && i == 0)
            put(t, "%s", word);
        else
            put_word(t, indent, word);
    }
}

void put_ref_prototype(struct text *t, const struct contract *c, enum style style)
{
    put(t, "void nj_ref_%s_%s(", c->op, style == STYLE_REF_F64 ? "f64" : "f32");
    for (int a = 1; a < c->axis_count; a++)
        put_word(t, 4, keep_format("int %s,", c->axes[a].name));
    put_declarations(t, 4, c, style, NULL);
    put(t, ");\n");
}

const char *shape_text(const struct arg *a)
{
    const char *s = "[";
    for (int i = 0; i < a->rank; i++)
        s = keep_format("%s%s%s", s, i ? ", " : "", a->shape[i]->source);
    return keep_format("%s]", s);
}

const char *dtype_text(enum dtype dtype)
{
    static const char *const names[] = {
        [DTYPE_T] = "T",   [DTYPE_LP] = "lp",     [DTYPE_F32] = "f32",   [DTYPE_I32] = "i32",
        [DTYPE_F8] = "f8", [DTYPE_BF16] = "bf16", [DTYPE_E5M2] = "e5m2", [DTYPE_I64] = "i64"};
    return names[dtype];
}

bool op_selected(const struct gen *g, const struct contract *c)
{
    for (int i = 0; i < g->key_count; i++)
        if (g->keys[i].c == c && g->keys[i].id >= 0)
            return true;
    return false;
}

const char *key_symbol(const struct key *k)
{
    return k->entry + strlen("nj_");
}

/* Whether c is the op, or the one whose derivative it is: that may make what it reads. */
static bool makes(const struct gen *g, const struct contract *c, const char *op)
{
    const struct contract *r = contract_find(g, op);
    return c == r || (r != NULL && r->backward_of && strcmp(r->backward_of, c->op) == 0);
}

bool op_fills(const struct gen *g, const struct contract *c)
{
    for (int i = 0; i < g->contract_count; i++) {
        const struct contract *d = g->contracts[i];
        for (int a = 0; a < d->arg_count && op_selected(g, d); a++)
            if (d->args[a].fill == FILL_REF && makes(g, c, d->args[a].fill_name))
                return true;
    }
    return false;
}

void put_scope(struct text *t, const struct contract *c, const struct key *k)
{
    put(t, "    const struct %s_block *p = params;\n", c->op);
    for (int i = 0; i < c->dim_count; i++)
        put(t, "    const int64_t %s = p->%s;\n", c->dims[i].name, c->dims[i].name);
    for (int a = 1; a < c->axis_count; a++)
        put(t, k ? "    const int64_t %s = %d;\n" : "    const int64_t %s = axes[%d];\n",
            c->axes[a].name, k ? c->axes[a].number[k->value[a]] : a - 1);
    for (int i = 0; i < c->scope.count; i++)
        put(t, "    (void)%s;\n", c->scope.names[i]);
}
