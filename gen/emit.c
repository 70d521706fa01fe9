/* SPDX-License-Identifier: Apache-2.0
 *
 * emit.c: how parameters are written in C and CUDA C; shared by the writers.
 */
#include "emit.h"

#include <string.h>

/* Element types by style and dtype (T, lp, f32, i32, f8, bf16, e5m2). STYLE_KERNEL resolves T first. */
static const char *const elements[][7] = {
    [STYLE_KERNEL] = {NULL, "lp", "float", "int32_t", "uint8_t", "__nv_bfloat16", "uint8_t"},
    [STYLE_STRUCT] = {"void", "void", "float", "int32_t", "void", "void", "void"},
    [STYLE_REF_F32] = {"float", "float", "float", "int32_t", "uint8_t", "uint16_t", "uint8_t"},
    [STYLE_REF_F64] = {"double", "double", "double", "int32_t", "double", "double", "double"},
};

/* Return the declaration of p, without a separator; k may be NULL except for STYLE_KERNEL. */
static const char *param_declaration(const struct param *p, enum style style, const struct key *k)
{
    if (p->tiled != NULL)
        return keep_format("const __grid_constant__ nj_tiles %s", p->name);
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

/* Print the comment before a field: "in T [N, C], aligned to 16 bytes: rows". */
static void put_field_comment(struct text *t, const struct param *p)
{
    static const char *const dirs[] = {"in", "out", "inout"};
    const struct arg *a = p->arg;
    const char *s = p->doc;
    if (a != NULL) {
        s = keep_format("%s %s %s%s", dirs[a->dir], dtype_text(a->dtype), shape_text(a),
                        a->optional ? " or NULL" : "");
        if (a->align > 0)
            s = keep_format("%s, aligned to %d bytes", s, a->align);
        s = keep_format("%s: %s", s, p->doc);
    }
    put(t, "    /* ");
    put_paragraph(t, 4, 1, s);
    t->length--; /* drop the newline */
    put(t, " */\n");
}

void put_struct(struct text *t, const struct contract *c)
{
    put(t, "struct nj_%s {\n", c->op);
    for (int i = 0; i < c->param_count; i++) {
        put_field_comment(t, &c->params[i]);
        put(t, "    %s;\n", param_declaration(&c->params[i], STYLE_STRUCT, NULL));
    }
    put(t, "};\n");
}

void put_signature(struct text *t, const struct contract *c)
{
    put(t, "int nj_%s(nj_stream *stream, enum nj_dtype T,", c->op);
    for (int a = 1; a < c->axis_count; a++)
        put_word(t, 4, keep_format("int %s,", c->axes[a].name));
    put_word(t, 4, keep_format("const struct nj_%s *args)", c->op));
}

bool has_maps(const struct contract *c)
{
    return c->block_count > c->param_count;
}

const char *block_type(const struct contract *c)
{
    return has_maps(c) ? keep_format("%s_block", c->op) : keep_format("nj_%s", c->op);
}

void put_block(struct text *t, const struct contract *c)
{
    if (!has_maps(c))
        return;
    const struct param *last = &c->params[c->param_count - 1];
    int end = (last->offset + last->bytes + 7) / 8 * 8; /* the struct of arguments has pointers */
    put(t, "struct %s_block {\n    struct nj_%s args;\n", c->op, c->op);
    for (int i = c->param_count; i < c->block_count; i++) {
        const struct param *p = &c->params[i];
        if (p->offset > end) /* this alignment is not one of C */
            put(t, "    unsigned char before_%s[%d];\n", p->name, p->offset - end);
        put(t, "    unsigned char %s[%d];\n", p->name, p->bytes);
        end = p->offset + p->bytes;
    }
    put(t, "};\n");
}

/* Return the cast from a field's type to the reference's parameter type, or "". */
static const char *ref_cast(const struct param *p, enum style style)
{
    if (p->arg == NULL || style == STYLE_REF_F32 || p->dtype != DTYPE_F32)
        return "";
    return p->arg->dir == DIR_IN ? "(const void *)" : "(void *)";
}

void put_ref_call(struct text *t, const struct contract *c, enum style style, const struct key *k)
{
    put(t, "    const struct nj_%s *args = params;\n    nj_ref_%s_%s(", c->op, c->op,
        style == STYLE_REF_F64 ? "f64" : "f32");
    for (int a = 1; a < c->axis_count; a++)
        put_word(t, 8,
                 k ? keep_format("%d,", c->axes[a].number[k->value[a]])
                   : keep_format("axes[%d],", a - 1));
    for (int i = 0; i < c->param_count; i++)
        put_word(t, 8,
                 keep_format("%sargs->%s%s", ref_cast(&c->params[i], style), c->params[i].name,
                             i + 1 < c->param_count ? "," : ");\n"));
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

/* Return whether a fill by the reference of `op` may call that of c: c is the op, or the op of which it is the
 * derivative, which can compute its inputs. */
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

struct scope scope_in_code(const struct contract *c, const struct key *k)
{
    struct scope s = {.count = c->scope.count};
    for (int i = 0; i < c->dim_count; i++)
        s.names[i] = keep_format("args->%s", c->dims[i].name);
    for (int a = 1; a < c->axis_count; a++)
        s.names[c->dim_count + a - 1] =
            k ? keep_format("%d", c->axes[a].number[k->value[a]]) : keep_format("axes[%d]", a - 1);
    return s;
}

void put_scope(struct text *t, const struct contract *c, const struct key *k)
{
    put(t, "    const enum nj_dtype T = %s;\n    const struct nj_%s *args = params;\n",
        k && key_dtype(k, DTYPE_T) == DTYPE_LP ? "NJ_LP" : "NJ_F32", c->op);
    put(t, "    (void)T;\n    (void)args;\n");
}
