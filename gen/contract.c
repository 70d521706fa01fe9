/* SPDX-License-Identifier: Apache-2.0
 *
 * contract.c: reads a contract: its top-level fields, names and the layout of its parameters.
 * Fields are read in the order of the table, which puts names before the expressions that use them.
 */
#include "contract.h"

#include "base/features.h"

#include <string.h>

static void read_op(void *into, const struct node *n)
{
    /* Names for which nj_<op> would be a function of the runtime. */
    static const char *const taken[] = {
        "alloc",     "free",        "copy",     "zero", "launch",           "refuse",
        "no_kernel", "kernel_find", "gemm_run", "gemm", "kernel_available", "tile_map"};
    struct contract *c = into;
    c->op_line = n->line;
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (strcmp(n->text, taken[i]) == 0)
            problem(c->file, n->line, "nj_%s is a function of the runtime; choose another name",
                    n->text);
    read_name(c->file, n, &c->op);
}

static void read_summary(void *into, const struct node *n)
{
    ((struct contract *)into)->summary = n->text;
}

static void read_source(void *into, const struct node *n)
{
    ((struct contract *)into)->source = n->text;
}

static void read_backward(void *into, const struct node *n)
{
    struct contract *c = into;
    c->backward_of = n->text;
    c->backward_line = n->line;
}

static bool fits(const struct contract *c, const struct node *n, const char *what, int limit)
{
    if (n->count <= limit)
        return true;
    problem(c->file, n->line, "%d %s; at most %d are possible", n->count, what, limit);
    return false;
}

static void read_equations(void *into, const struct node *n)
{
    struct contract *c = into;
    if (!fits(c, n, "equations", MAX_LINES))
        return;
    for (int i = 0; i < n->count; i++) {
        if (n->items[i]->kind != NODE_SCALAR)
            problem(c->file, n->items[i]->line,
                    "an equation must be a single value; put it in quotes");
        else
            c->equations[c->equation_count++] = n->items[i]->text;
    }
}

static void read_axis_value(struct contract *c, struct axis *a, const struct node *n)
{
    static const char *const types[] = {"lp", "f32"};
    static const enum dtype dtypes[] = {DTYPE_LP, DTYPE_F32};
    int64_t number = 0;
    if (a == c->axes) {
        int which;
        if (!read_word(c->file, n, "value of T", types, 2, &which))
            return;
        number = dtypes[which];
    } else if (!node_int(n, &number) || number < 0 || number > INT32_MAX) {
        problem(c->file, n->line, "axis '%s': values must be whole numbers", a->name);
        return;
    }
    for (int i = 0; i < a->count; i++) {
        if (a->number[i] == number) {
            problem(c->file, n->line, "duplicate key: axis '%s' has the value %s twice", a->name,
                    n->text);
            return;
        }
    }
    a->number[a->count] = (int)number;
    a->text[a->count++] = n->text;
}

static void read_axes(void *into, const struct node *n)
{
    struct contract *c = into;
    if (!fits(c, n, "axes", MAX_AXES))
        return;
    if (n->count == 0 || strcmp(n->keys[0]->text, "T") != 0) {
        problem(c->file, n->line, "the first axis must be T, the element type");
        return;
    }
    for (int i = 0; i < n->count; i++) {
        const struct node *values = n->items[i];
        struct axis *a = &c->axes[c->axis_count];
        a->line = n->keys[i]->line;
        if (!read_name(c->file, n->keys[i], &a->name))
            continue;
        if (values->kind != NODE_LIST || values->count == 0) {
            problem(c->file, a->line, "axis '%s' has no values; expected a list such as [64, 128]",
                    a->name);
            continue;
        }
        if (!fits(c, values, "values", MAX_VALUES))
            continue;
        for (int v = 0; v < values->count; v++)
            read_axis_value(c, a, values->items[v]);
        c->axis_count += a->count > 0;
    }
}

static void add_name(struct scope *s, const char *name)
{
    if (s->count < MAX_SYMBOLS)
        s->names[s->count++] = name;
}

/* Make the scopes. This is not a field's reader: it runs when dims and axes are known, and expressions can be read
 * from here on. */
static void make_scopes(struct contract *c)
{
    for (int i = 0; i < c->dim_count; i++)
        add_name(&c->scope, c->dims[i].name);
    for (int i = 1; i < c->axis_count; i++) {
        add_name(&c->scope, c->axes[i].name);
        add_name(&c->axis_scope, c->axes[i].name);
    }
}

static void read_dims_then_scopes(void *into, const struct node *n)
{
    read_dims(into, n);
    make_scopes(into);
}

static void read_require(void *into, const struct node *n)
{
    struct contract *c = into;
    if (!fits(c, n, "requirements", MAX_LINES))
        return;
    for (int i = 0; i < n->count; i++) {
        const struct node *item = n->items[i];
        if (item->kind != NODE_SCALAR) {
            problem(c->file, item->line, "a requirement must be a condition; put it in quotes");
            continue;
        }
        const struct expr *e = expr_parse(&c->scope, item->line, item->text, true);
        if (e != NULL)
            c->require[c->require_count++] = e;
    }
}

static void read_tolerance(void *into, const struct node *n)
{
    struct contract *c = into;
    const struct axis *T = &c->axes[0];
    c->tolerance_line = n->line;
    for (int v = 0; v < T->count; v++)
        c->tolerance[v] = -1;
    for (int i = 0; i < n->count; i++) {
        int which;
        if (!read_word(c->file, n->keys[i], "value of T", T->text, T->count, &which))
            continue;
        if (!node_double(n->items[i], &c->tolerance[which]) || c->tolerance[which] < 0) {
            problem(c->file, n->items[i]->line, "tolerance must be a number, 0 or more");
            c->tolerance[which] = 0;
        }
    }
    for (int v = 0; v < T->count; v++)
        if (c->tolerance[v] < 0)
            problem(c->file, n->line, "tolerance is missing for T = %s", T->text[v]);
}

static void read_flops(void *into, const struct node *n)
{
    struct contract *c = into;
    c->flops = expr_parse(&c->scope, n->line, n->text, false);
}

static void read_bytes(void *into, const struct node *n)
{
    struct contract *c = into;
    c->bytes = expr_parse(&c->scope, n->line, n->text, false);
}

static void read_cost(void *into, const struct node *n)
{
    static const struct field fields[] = {
        {"flops", true, NODE_SCALAR, read_flops},
        {"bytes", true, NODE_SCALAR, read_bytes},
    };
    struct contract *c = into;
    node_fields(c->file, n, "cost", fields, 2, c);
}

static void read_only(void *into, const struct node *n)
{
    struct contract *c = into;
    c->only = n->text;
    c->only_line = n->line;
}

/* Read `when`, which is "FEATURE" or "not FEATURE". */
static void read_when(void *into, const struct node *n)
{
    struct contract *c = into;
    const bool negated = strncmp(n->text, "not ", 4) == 0;
    const struct node word = {
        .kind = NODE_SCALAR, .line = n->line, .text = n->text + (negated ? 4 : 0)};
    int feature;
    if (read_word(c->file, &word, "feature", feature_names, FEATURES, &feature) != NULL)
        c->when = n->text;
}

static const struct field contract_fields[] = {
    {"op", true, NODE_SCALAR, read_op},
    {"summary", true, NODE_SCALAR, read_summary},
    {"source", true, NODE_SCALAR, read_source},
    {"backward_of", false, NODE_SCALAR, read_backward},
    {"equations", true, NODE_LIST, read_equations},
    {"axes", true, NODE_MAP, read_axes},
    {"dims", true, NODE_MAP, read_dims_then_scopes},
    {"args", true, NODE_LIST, read_args},
    {"scalars", false, NODE_LIST, read_scalars},
    {"require", false, NODE_LIST, read_require},
    {"launch", true, NODE_MAP, read_launch},
    {"tolerance", true, NODE_MAP, read_tolerance},
    {"tests", true, NODE_LIST, read_tests},
    {"bench", false, NODE_MAP, read_bench},
    {"cost", true, NODE_MAP, read_cost},
    {"only", false, NODE_SCALAR, read_only},
    {"when", false, NODE_SCALAR, read_when},
    {"allow_spill", false, NODE_MAP, read_spills},
    {"arch_smem", false, NODE_MAP, read_arch_smem},
    {"falsifiers", false, NODE_LIST, read_falsifiers},
};

/* Add a parameter. align: alignment of its place in the kernel's constant bank, where parameters begin at `base`. */
static void add_param(struct contract *c, struct param p, int align, int base)
{
    p.offset = (base + c->param_bytes + align - 1) / align * align - base;
    c->param_bytes = p.offset + p.bytes;
    c->params[c->block_count++] = p;
}

static void add_value(struct contract *c, struct param p)
{
    static const int bytes[] = {[DTYPE_F32] = 4, [DTYPE_I32] = 4, [DTYPE_I64] = 8};
    p.bytes = p.arg ? 8 : bytes[p.dtype];
    add_param(c, p, p.bytes, 0);
    c->param_count++;
}

static void make_params(struct contract *c)
{
    for (int i = 0; i < c->arg_count; i++)
        add_value(c, (struct param){.name = c->args[i].name,
                                    .doc = c->args[i].doc,
                                    .arg = &c->args[i],
                                    .dtype = c->args[i].dtype});
    for (int i = 0; i < c->dim_count; i++)
        add_value(c, (struct param){.name = c->dims[i].name,
                                    .doc = c->dims[i].doc,
                                    .dtype = c->dims[i].wide ? DTYPE_I64 : DTYPE_I32});
    for (int i = 0; i < c->scalar_count; i++)
        add_value(c, (struct param){.name = c->scalars[i].name,
                                    .doc = c->scalars[i].doc,
                                    .dtype = c->scalars[i].dtype});
}

void contract_add_maps(struct contract *c, int base)
{
    for (int i = 0; i < c->arg_count; i++)
        if (c->args[i].tile_rows > 0)
            add_param(c,
                      (struct param){.name = keep_format("%s_tiles", c->args[i].name),
                                     .tiled = &c->args[i],
                                     .bytes = MAP_BYTES},
                      MAP_ALIGN, base);
}

struct contract *contract_read(const char *path)
{
    int before = problem_count();
    struct node *root = yaml_load(path);
    if (root == NULL)
        return NULL;
    struct contract *c = keep(sizeof *c);
    c->file = path;
    c->scope.file = c->axis_scope.file = path;
    c->cluster = 1;
    node_fields(path, root, "a contract", contract_fields,
                sizeof contract_fields / sizeof *contract_fields, c);
    if (c->op == NULL || c->axis_count == 0) {
        if (problem_count() == before)
            problem(path, root->line, "a contract needs an op and its axes");
        return NULL;
    }
    make_params(c);
    c->sound = problem_count() == before;
    return c;
}
