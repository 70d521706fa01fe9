/* SPDX-License-Identifier: Apache-2.0
 *
 * emit_cases.c: writes cases.c: every test and bench case of every key with its numbers worked out,
 * how to launch it, its double-precision reference, and the references that fills call.
 */
#include "emit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *number(double x, enum dtype dtype)
{
    if (dtype != DTYPE_F32)
        return keep_format("%.0f", x);
    const char *s = keep_format("%.9g", x);
    return keep_format("%s%sf", s, strpbrk(s, ".e") ? "" : ".0");
}

/* ---- parts that all cases of a key share ---- */

static void put_launch(struct text *t, const struct key *k)
{
    const struct contract *c = k->c;
    put(t, "static int %s_launch(nj_stream *s, const void *params)\n{\n", key_symbol(k));
    put(t, "    return nj_%s(s, %s,", c->op,
        key_dtype(k, DTYPE_T) == DTYPE_LP ? "NJ_LP" : "NJ_F32");
    for (int a = 1; a < c->axis_count; a++)
        put(t, " %d,", c->axes[a].number[k->value[a]]);
    put(t, " params);\n}\n");
}

static void put_oracle(struct text *t, const struct key *k)
{
    put(t, "static void %s_oracle(const void *params)\n{\n", key_symbol(k));
    put_ref_call(t, k->c, STYLE_REF_F64, k);
    put(t, "}\n");
}

static void put_elements(struct text *t, const struct arg *a, int arg, const char *to,
                         const struct scope *names)
{
    put(t, "    %s[%d] = 1;\n", to, arg);
    for (int s = 0; s < a->rank; s++) {
        put(t, "    %s[%d] = i64_mul(%s[%d], ", to, arg, to, arg);
        expr_print(t, a->shape[s], names);
        put(t, ");\n");
    }
}

/* Print the expressions whose values a case has, for any dims: kbench times shapes that no case has. */
static void put_sizes(struct text *t, const struct key *k)
{
    const struct contract *c = k->c;
    const struct scope names = scope_in_code(c, k);
    put(t, "static void %s_sizes(const void *params, struct case_sizes *out)\n{\n", key_symbol(k));
    put_scope(t, c, k);
    for (int i = 0; i < c->arg_count; i++) {
        const struct arg *a = &c->args[i];
        put_elements(t, a, i, "out->elements", &names);
        put(t, "    out->fill_value[%d] = ", i);
        if (a->fill_value != NULL)
            expr_print(t, a->fill_value, &names);
        put(t, a->fill_value != NULL ? ";\n" : "0;\n");
    }
    put(t, "    out->flops = (double)");
    expr_print(t, c->flops, &names);
    put(t, ";\n    out->bytes = (double)");
    expr_print(t, c->bytes, &names);
    put(t, ";\n}\n");
}

/* ---- one case ---- */

static const char *label(const struct contract *c, const struct test *test)
{
    const char *s = "";
    for (int i = 0; i < c->dim_count; i++)
        s = keep_format("%s%s%s=%" PRId64, s, *s ? " " : "", c->dims[i].name, test->dims[i]);
    for (int i = 0; i < c->scalar_count; i++)
        if (test->scalar_given[i])
            s = keep_format("%s%s%s=%.9g", s, *s ? " " : "", c->scalars[i].name, test->scalars[i]);
    for (int i = 0; i < c->arg_count; i++) {
        if (test->null[i])
            s = keep_format("%s%s%s=null", s, *s ? " " : "", c->args[i].name);
        if (test->first[i] > 0)
            s = keep_format("%s%s%s=%" PRId64, s, *s ? " " : "", c->args[i].name, test->first[i]);
    }
    return s;
}

static int64_t evaluate(const struct expr *e, const struct values *v)
{
    int64_t n = 0;
    expr_eval(e, v, &n); /* check.c has made sure that there is a value */
    return n;
}

static void put_arg(struct text *t, const struct key *k, const struct test *test, int i,
                    const struct values *v)
{
    static const char *const dirs[] = {"CASE_IN", "CASE_OUT", "CASE_INOUT"};
    static const char *const types[] = {
        [DTYPE_LP] = "CASE_LP", [DTYPE_F32] = "CASE_F32",   [DTYPE_I32] = "CASE_I32",
        [DTYPE_F8] = "CASE_F8", [DTYPE_BF16] = "CASE_BF16", [DTYPE_E5M2] = "CASE_E5M2"};
    static const char *const compares[] = {"CASE_COMPARE_ALL", "CASE_COMPARE_SUM",
                                           "CASE_COMPARE_NONE", "CASE_COMPARE_MOST",
                                           "CASE_COMPARE_EXACT"};
    static const char *const fills[] = {
        [FILL_NORMAL] = "CASE_FILL_NORMAL",
        [FILL_UNIFORM] = "CASE_FILL_UNIFORM",
        [FILL_POSITIVE] = "CASE_FILL_POSITIVE",
        [FILL_ZERO] = "CASE_FILL_ZERO",
        [FILL_ID] = "CASE_FILL_ID",
        [FILL_ID_OR_IGNORED] = "CASE_FILL_ID_OR_IGNORED",
        [FILL_ROW_OR_NONE] = "CASE_FILL_ROW_OR_NONE",
        [FILL_SEQUENCE] = "CASE_FILL_SEQUENCE",
        [FILL_POSITION] = "CASE_FILL_POSITION",
        [FILL_DOC_START] = "CASE_FILL_DOC_START",
        [FILL_ORDER] = "CASE_FILL_ORDER",
        [FILL_RUNS] = "CASE_FILL_RUNS",
        [FILL_STATE] = "CASE_FILL_STATE",
        [FILL_INV_FREQ] = "CASE_FILL_INV_FREQ",
        [FILL_HALVES] = "CASE_FILL_HALVES",
        [FILL_WHOLE] = "CASE_FILL_WHOLE",
        [FILL_STARTS] = "CASE_FILL_STARTS",
        [FILL_LOW_BYTES] = "CASE_FILL_LOW_BYTES",
        [FILL_REF] = "CASE_FILL_REF",
    };
    const struct arg *a = &k->c->args[i];
    enum dtype dtype = key_dtype(k, a->dtype);
    int64_t n = 1;
    for (int s = 0; s < a->rank; s++)
        n *= evaluate(a->shape[s], v);
    put(t, "    {\"%s\", %s, %s, %d, INT64_C(%" PRId64 "), %d, %s, %" PRId64 ", ", a->name,
        dirs[a->dir], types[dtype], test->null[i], n, a->align ? a->align : dtype_bytes(dtype),
        fills[a->dir == DIR_OUT ? FILL_ZERO : a->fill],
        a->fill_value ? evaluate(a->fill_value, v) : 0);
    put(t, a->fill_name ? "\"%s\"" : "NULL", a->fill_name);
    put(t, ", %.9g, %.9g, %s, %" PRId64 ", %d},\n", a->scale, a->tolerance, compares[a->compare],
        test->first[i], test->bench);
}

static void put_case_data(struct text *t, const struct key *k, const struct test *test, int n)
{
    const struct contract *c = k->c;
    const struct values v = key_values(k, test);
    put(t, "static const struct case_arg args_%d[] = {\n", n);
    for (int i = 0; i < c->arg_count; i++)
        put_arg(t, k, test, i, &v);
    put(t, "};\nstatic const struct %s block_%d = {%s", block_type(c), n,
        has_maps(c) ? ".args = {" : "");
    for (int i = 0; i < c->dim_count; i++)
        put_word(t, 4,
                 keep_format(c->dims[i].wide ? ".%s = INT64_C(%" PRId64 ")," : ".%s = %" PRId64 ",",
                             c->dims[i].name, test->dims[i]));
    for (int i = 0; i < c->scalar_count; i++)
        put_word(t, 4,
                 keep_format(".%s = %s,", c->scalars[i].name,
                             number(test->scalars[i], c->scalars[i].dtype)));
    if (c->dim_count + c->scalar_count == 0)
        put(t, "0");
    put(t, has_maps(c) ? "}};\n" : "};\n");
}

static void put_case(struct text *t, const struct key *k, const struct test *test, int n)
{
    const struct contract *c = k->c;
    const struct values v = key_values(k, test);
    put(t, "    {%d, \"%s\", %d, args_%d, %d, (const unsigned char *)&block_%d, %.9g,", k->id,
        label(c, test), test->bench, n, c->arg_count, n, c->tolerance[k->value[0]]);
    put(t, " %" PRId64 ".0, %" PRId64 ".0,\n", evaluate(c->flops, &v), evaluate(c->bytes, &v));
    put(t, "     %s_launch, %s_oracle, %s_sizes},\n", key_symbol(k), key_symbol(k), key_symbol(k));
}

/* ---- references that fills name ---- */

static void put_op_names(struct text *t, const struct contract *c)
{
    put(t, "static const char *const %s_names[] = {", c->op);
    for (int i = 0; i < c->block_count; i++)
        put_word(t, 4, keep_format("\"%s\",", c->params[i].name));
    for (int a = 1; a < c->axis_count; a++)
        put_word(t, 4, keep_format("\"%s\",", c->axes[a].name));
    put(t, "};\n");
}

static void put_oracle_op(struct text *t, const struct contract *c)
{
    const struct scope names = scope_in_code(c, NULL);
    put(t, "static const struct nj_param %s_params[] = {", c->op);
    for (int i = 0; i < c->block_count; i++)
        put_word(t, 4, keep_format("{%d, %d},", c->params[i].offset, c->params[i].bytes));
    put(t, "};\nstatic void %s_call(const void *params, const int *axes)\n{\n", c->op);
    put(t, c->axis_count == 1 ? "    (void)axes;\n" : "");
    put_ref_call(t, c, STYLE_REF_F64, NULL);
    put(t, "}\nstatic void %s_outputs(const void *params, const int *axes, int64_t *out)\n{\n",
        c->op);
    put(t, "    (void)axes;\n");
    put_scope(t, c, NULL);
    for (int i = 0; i < c->arg_count; i++)
        if (c->args[i].dir == DIR_OUT)
            put_elements(t, &c->args[i], i, "out", &names);
    put(t, "}\n");
}

static void put_oracle_ops(struct text *t, const struct gen *g)
{
    int count = 0;
    put(t, "const struct oracle_op nj_oracle_ops[] = {\n");
    for (int i = 0; i < g->contract_count; i++) {
        const struct contract *c = g->contracts[i];
        if (!op_fills(g, c))
            continue;
        put(t, "    {\"%s\", %d, %d, %d, %s_params, %s_names, %d, %s_call, %s_outputs, ", c->op,
            c->param_bytes, c->block_count, c->arg_count, c->op, c->op, c->axis_count - 1, c->op,
            c->op);
        put(t, c->backward_of ? "\"%s\"},\n" : "NULL},\n", c->backward_of);
        count++;
    }
    if (count == 0)
        put(t, "    {.op = NULL},\n");
    put(t, "};\nconst uint32_t nj_oracle_op_count = %d;\n\n", count);
}

/* ---- names ---- */

static void put_axes(struct text *t, const struct key *k)
{
    if (k->c->axis_count == 1)
        return;
    put(t, "static const int %s_axes[] = {", key_symbol(k));
    for (int a = 1; a < k->c->axis_count; a++)
        put(t, "%s%d", a > 1 ? ", " : "", k->c->axes[a].number[k->value[a]]);
    put(t, "};\n");
}

static void put_case_names(struct text *t, const struct gen *g)
{
    put(t, "const struct case_names nj_case_names[] = {\n");
    for (int i = 0; i < g->key_count; i++) {
        const struct key *k = &g->keys[i];
        const struct contract *c = k->c;
        if (k->id < 0)
            continue;
        put(t, "    {%s_names, %d, %d, ", c->op, c->dim_count, c->axis_count - 1);
        if (c->axis_count > 1)
            put(t, "%s_names + %d, %s_axes},\n", c->op, c->block_count, key_symbol(k));
        else
            put(t, "NULL, NULL},\n");
    }
    put(t, "};\n");
}

static void put_op(struct text *t, const struct gen *g, const struct contract *c)
{
    put(t, "/* ---- %s ---- */\n\n", c->op);
    put_block(t, c);
    put_op_names(t, c);
    put_ref_prototype(t, c, STYLE_REF_F64);
    if (op_fills(g, c))
        put_oracle_op(t, c);
    put(t, "\n");
}

int emit_cases(const struct gen *g, const char *out)
{
    struct text t = {0}, body = {0}, table = {0};
    int n = 0;
    for (int i = 0; i < g->contract_count; i++)
        if (op_selected(g, g->contracts[i]) || op_fills(g, g->contracts[i]))
            put_op(&body, g, g->contracts[i]);
    for (int i = 0; i < g->key_count; i++) {
        const struct key *k = &g->keys[i];
        if (k->id < 0)
            continue;
        put_launch(&body, k);
        put_oracle(&body, k);
        put_sizes(&body, k);
        put_axes(&body, k);
        for (int j = 0; j < k->c->test_count; j++, n++) {
            put_case_data(&body, k, &k->c->tests[j], n);
            put_case(&table, k, &k->c->tests[j], n);
        }
        put(&body, "\n");
    }
    put(&body, "const struct kernel_case nj_cases[] = {\n%s};\n", table.s);
    put(&body, "const uint32_t nj_case_count = %d;\n\n", n);
    free(table.s);
    put_oracle_ops(&body, g);
    put_case_names(&body, g);
    put(&t, "/* SPDX-License-Identifier: Apache-2.0\n *\n"
            " * Written by gen from the kernel contracts. Do not edit.\n */\n");
    put(&t, "#include \"kernel_case.h\"\n#include \"launcher.h\"\n#include \"%s\"\n\n", g->header);
    put(&t, "%s", body.s);
    free(body.s);
    return put_file(out, "cases.c", &t, false);
}
