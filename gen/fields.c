/* SPDX-License-Identifier: Apache-2.0
 *
 * fields.c: reads the fields of a contract that have fields of their own: arguments, dims, scalars,
 * launch, tests, spill excuses and falsifiers.
 */
#include "contract.h"

#include <ctype.h>
#include <string.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

/* Argument of an item's readers: the contract and the item under construction. */
struct item {
    struct contract *c;
    void *of;
};

bool read_name(const char *file, const struct node *n, const char **out)
{
    /* Names that generated code or expressions use themselves, and plausible names that are C or C++ keywords. */
    static const char *const taken[] = {
        "args",    "stream",  "block",     "blocks",    "shared",   "broken",   "rc",
        "values",  "variant", "variants",  "axes",      "id",       "wanted",   "size",
        "min",     "max",     "ceil_div",  "row_bytes", "lp",       "half",     "NULL",
        "alignas", "and",     "asm",       "auto",      "bool",     "break",    "case",
        "catch",   "char",    "class",     "const",     "continue", "default",  "delete",
        "do",      "double",  "else",      "enum",      "explicit", "export",   "extern",
        "false",   "float",   "for",       "friend",    "goto",     "if",       "inline",
        "int",     "long",    "mutable",   "namespace", "new",      "not",      "operator",
        "or",      "private", "protected", "public",    "register", "return",   "short",
        "signed",  "sizeof",  "static",    "struct",    "switch",   "template", "this",
        "throw",   "true",    "try",       "typedef",   "typename", "union",    "unsigned",
        "using",   "virtual", "void",      "volatile",  "while",    "xor",
    };
    const char *s = n->text;
    if (n->kind != NODE_SCALAR || !isalpha((unsigned char)s[0])) {
        problem(file, n->line, "a name must start with a letter");
        return false;
    }
    for (const char *p = s; *p; p++) {
        if (!isalnum((unsigned char)*p) && *p != '_') {
            problem(file, n->line, "'%s' is not a name: only letters, digits and _ are allowed", s);
            return false;
        }
    }
    for (int i = 0; i < COUNT(taken); i++) {
        if (strcmp(s, taken[i]) == 0 || strncmp(s, "nj_", 3) == 0 || strncmp(s, "i64_", 4) == 0) {
            problem(file, n->line, "the name '%s' is taken; choose another", s);
            return false;
        }
    }
    *out = s;
    return true;
}

const char *read_word(const char *file, const struct node *n, const char *what,
                      const char *const *words, int count, int *out)
{
    const char *list = "";
    if (n->kind == NODE_SCALAR) {
        for (int i = 0; i < count; i++) {
            if (strcmp(n->text, words[i]) == 0) {
                *out = i;
                return words[i];
            }
        }
    }
    for (int i = 0; i < count; i++)
        list = keep_format("%s%s%s", list, i ? ", " : "", words[i]);
    problem(file, n->line, "unknown %s '%s'; expected one of: %s", what,
            n->kind == NODE_SCALAR ? n->text : "", list);
    return NULL;
}

static bool name_is_new(struct contract *c, const struct node *n)
{
    const char *s = n->text;
    if (arg_find(c, s) < 0 && dim_find(c, s) < 0 && scalar_find(c, s) < 0 && axis_find(c, s) < 0 &&
        strcmp(c->op ? c->op : "", s) != 0)
        return true;
    problem(c->file, n->line, "the name '%s' is used twice in this contract", s);
    return false;
}

static bool read_flag(const char *file, const struct node *n)
{
    static const char *const words[] = {"false", "true"};
    int which = 0;
    read_word(file, n, "value", words, 2, &which);
    return which;
}

/* ---- arguments ---- */

static void arg_name(void *into, const struct node *n)
{
    struct item *it = into;
    struct arg *a = it->of;
    if (read_name(it->c->file, n, &a->name) && !name_is_new(it->c, n))
        a->name = NULL;
}

static void arg_doc(void *into, const struct node *n)
{
    ((struct arg *)((struct item *)into)->of)->doc = n->text;
}

static void arg_dir(void *into, const struct node *n)
{
    static const char *const words[] = {"in", "out", "inout"};
    struct item *it = into;
    int which = 0;
    read_word(it->c->file, n, "dir", words, 3, &which);
    ((struct arg *)it->of)->dir = (enum dir)which;
}

static void arg_dtype(void *into, const struct node *n)
{
    static const char *const words[] = {"T", "lp", "f32", "i32", "f8", "bf16", "e5m2"};
    struct item *it = into;
    int which = 0;
    read_word(it->c->file, n, "dtype", words, COUNT(words), &which);
    ((struct arg *)it->of)->dtype = (enum dtype)which;
}

static void arg_shape(void *into, const struct node *n)
{
    struct item *it = into;
    struct arg *a = it->of;
    if (n->count == 0 || n->count > MAX_RANK) {
        problem(it->c->file, n->line, "a shape has 1 to %d sizes", MAX_RANK);
        return;
    }
    for (int i = 0; i < n->count; i++) {
        const struct node *size = n->items[i];
        if (size->kind != NODE_SCALAR) {
            problem(it->c->file, size->line, "a size in a shape must be an expression");
            continue;
        }
        const struct expr *e = expr_parse(&it->c->scope, size->line, size->text, false);
        if (e != NULL)
            a->shape[a->rank++] = e;
    }
}

static void arg_align(void *into, const struct node *n)
{
    struct item *it = into;
    int64_t bytes;
    if (!node_int(n, &bytes) || bytes < 1 || bytes > 256 || (bytes & (bytes - 1)) != 0)
        problem(it->c->file, n->line, "align must be a power of two up to 256, not '%s'", n->text);
    else
        ((struct arg *)it->of)->align = (int)bytes;
}

static void arg_tile(void *into, const struct node *n)
{
    struct item *it = into;
    struct arg *a = it->of;
    int64_t rows;
    a->tile_line = n->line;
    if (!node_int(n, &rows) || rows < 1 || rows > 256)
        problem(it->c->file, n->line, "tile must be a number of rows, 1 to 256, not '%s'", n->text);
    else
        a->tile_rows = (int)rows;
}

static void arg_optional(void *into, const struct node *n)
{
    struct item *it = into;
    ((struct arg *)it->of)->optional = read_flag(it->c->file, n);
}

static void arg_scale(void *into, const struct node *n)
{
    struct item *it = into;
    if (!node_double(n, &((struct arg *)it->of)->scale))
        problem(it->c->file, n->line, "scale must be a number, not '%s'", n->text);
}

static void arg_compare(void *into, const struct node *n)
{
    static const char *const words[] = {"true", "sum", "false", "most", "exact"};
    struct item *it = into;
    int which = 0;
    read_word(it->c->file, n, "compare", words, COUNT(words), &which);
    ((struct arg *)it->of)->compare = (enum compare)which;
}

static void arg_tolerance(void *into, const struct node *n)
{
    struct item *it = into;
    double *tolerance = &((struct arg *)it->of)->tolerance;
    if (!node_double(n, tolerance) || !(*tolerance > 0))
        problem(it->c->file, n->line, "an argument's tolerance must be a number above 0, not '%s'",
                n->text);
}

enum takes { TAKES_NOTHING, TAKES_EXPR, TAKES_NAME };
enum wants { WANTS_ANY, WANTS_FLOAT, WANTS_I32 };
static const char *const fill_names[] = {
    [FILL_NORMAL] = "normal",
    [FILL_UNIFORM] = "uniform",
    [FILL_POSITIVE] = "positive",
    [FILL_ZERO] = "zero",
    [FILL_ID] = "id",
    [FILL_ID_OR_IGNORED] = "id_or_ignored",
    [FILL_ROW_OR_NONE] = "row_or_none",
    [FILL_SEQUENCE] = "sequence",
    [FILL_POSITION] = "position",
    [FILL_DOC_START] = "doc_start",
    [FILL_ORDER] = "order",
    [FILL_RUNS] = "runs",
    [FILL_STATE] = "state",
    [FILL_INV_FREQ] = "inv_freq",
    [FILL_HALVES] = "halves",
    [FILL_WHOLE] = "whole",
    [FILL_STARTS] = "starts",
    [FILL_LOW_BYTES] = "low_bytes",
    [FILL_REF] = "ref",
};
static const struct fill_rule {
    enum takes takes;
    enum wants wants;
} fill_rules[] = {
    [FILL_NORMAL] = {TAKES_NOTHING, WANTS_FLOAT},
    [FILL_UNIFORM] = {TAKES_NOTHING, WANTS_FLOAT},
    [FILL_POSITIVE] = {TAKES_NOTHING, WANTS_FLOAT},
    [FILL_ZERO] = {TAKES_NOTHING, WANTS_ANY},
    [FILL_ID] = {TAKES_EXPR, WANTS_I32},
    [FILL_ID_OR_IGNORED] = {TAKES_EXPR, WANTS_I32},
    [FILL_ROW_OR_NONE] = {TAKES_EXPR, WANTS_I32},
    [FILL_SEQUENCE] = {TAKES_EXPR, WANTS_I32},
    [FILL_POSITION] = {TAKES_EXPR, WANTS_I32},
    [FILL_DOC_START] = {TAKES_EXPR, WANTS_I32},
    [FILL_ORDER] = {TAKES_NAME, WANTS_I32},
    [FILL_RUNS] = {TAKES_NAME, WANTS_I32},
    [FILL_STATE] = {TAKES_NOTHING, WANTS_FLOAT},
    [FILL_INV_FREQ] = {TAKES_NOTHING, WANTS_FLOAT},
    [FILL_HALVES] = {TAKES_NOTHING, WANTS_I32},
    [FILL_WHOLE] = {TAKES_EXPR, WANTS_FLOAT},
    [FILL_STARTS] = {TAKES_EXPR, WANTS_I32},
    [FILL_LOW_BYTES] = {TAKES_NOTHING, WANTS_I32},
    [FILL_REF] = {TAKES_NAME, WANTS_ANY},
};

static void arg_fill(void *into, const struct node *n)
{
    struct item *it = into;
    struct arg *a = it->of;
    size_t length = strcspn(n->text, " ");
    const char *rest = n->text + length + strspn(n->text + length, " ");
    struct node word = {.kind = NODE_SCALAR, .line = n->line, .text = keep_text(n->text, length)};
    int which;
    a->fill_line = n->line;
    if (!read_word(it->c->file, &word, "fill", fill_names, COUNT(fill_names), &which))
        return;
    a->fill = (enum fill_kind)which;
    a->fill_given = true;
    const struct fill_rule *rule = &fill_rules[which];
    if (rule->takes == TAKES_NOTHING && *rest)
        problem(it->c->file, n->line, "fill '%s' takes nothing after it", word.text);
    else if (rule->takes != TAKES_NOTHING && !*rest)
        problem(it->c->file, n->line, "fill '%s' needs %s after it", word.text,
                rule->takes == TAKES_EXPR ? "a number or an expression" : "a name");
    else if (rule->takes == TAKES_EXPR)
        a->fill_value = expr_parse(&it->c->scope, n->line, rest, false);
    else if (rule->takes == TAKES_NAME)
        a->fill_name = rest;
    if (rule->wants != WANTS_ANY && (rule->wants == WANTS_I32) != (a->dtype == DTYPE_I32))
        problem(it->c->file, n->line, "fill '%s' is for %s arguments", word.text,
                rule->wants == WANTS_I32 ? "i32" : "floating-point");
}

static const struct field arg_fields[] = {
    {"name", true, NODE_SCALAR, arg_name},        {"dir", true, NODE_SCALAR, arg_dir},
    {"dtype", true, NODE_SCALAR, arg_dtype},      {"shape", true, NODE_LIST, arg_shape},
    {"align", false, NODE_SCALAR, arg_align},     {"optional", false, NODE_SCALAR, arg_optional},
    {"fill", false, NODE_SCALAR, arg_fill},       {"scale", false, NODE_SCALAR, arg_scale},
    {"compare", false, NODE_SCALAR, arg_compare}, {"tolerance", false, NODE_SCALAR, arg_tolerance},
    {"tile", false, NODE_SCALAR, arg_tile},       {"doc", true, NODE_SCALAR, arg_doc},
};

/* Check a tile: a tensor map requires 16-bit elements and an address that is a multiple of 16. */
static void check_tile(const struct contract *c, const struct arg *a)
{
    bool narrow = a->dtype == DTYPE_LP;
    if (a->dtype == DTYPE_T) {
        narrow = true;
        for (int v = 0; v < c->axes[0].count; v++)
            narrow = narrow && c->axes[0].number[v] == DTYPE_LP;
    }
    if (!narrow)
        problem(c->file, a->tile_line, "the argument '%s' has a tile, so it must be lp", a->name);
    if (a->align < 16)
        problem(c->file, a->tile_line, "the argument '%s' has a tile and needs 'align: 16'",
                a->name);
    if (a->rank != 2)
        problem(c->file, a->tile_line, "the argument '%s' has a tile and needs rows and columns",
                a->name);
}

void read_args(void *into, const struct node *n)
{
    struct contract *c = into;
    if (n->count == 0 || n->count > MAX_ARGS) {
        problem(c->file, n->line, "a contract has 1 to %d arguments", MAX_ARGS);
        return;
    }
    for (int i = 0; i < n->count; i++) {
        struct arg a = {.line = n->items[i]->line, .scale = 1};
        struct item it = {c, &a};
        node_fields(c->file, n->items[i], "an argument", arg_fields, COUNT(arg_fields), &it);
        if (a.name == NULL)
            continue;
        if (a.dtype == DTYPE_I32 && a.dir != DIR_OUT && !a.fill_given && a.fill_line == 0)
            problem(c->file, a.line, "the i32 argument '%s' needs a fill, such as 'id N'", a.name);
        if (a.tile_rows > 0)
            check_tile(c, &a);
        c->args[c->arg_count++] = a;
    }
}

/* ---- dims and scalars ---- */

static void dim_type(void *into, const struct node *n)
{
    static const char *const words[] = {"i32", "i64"};
    struct item *it = into;
    int which = 0;
    read_word(it->c->file, n, "type", words, 2, &which);
    ((struct dim *)it->of)->wide = which;
}

static void dim_doc(void *into, const struct node *n)
{
    ((struct dim *)((struct item *)into)->of)->doc = n->text;
}

void read_dims(void *into, const struct node *n)
{
    static const struct field fields[] = {
        {"type", false, NODE_SCALAR, dim_type},
        {"doc", true, NODE_SCALAR, dim_doc},
    };
    struct contract *c = into;
    if (n->count > MAX_DIMS) {
        problem(c->file, n->line, "at most %d dims are possible", MAX_DIMS);
        return;
    }
    for (int i = 0; i < n->count; i++) {
        struct dim d = {.line = n->keys[i]->line};
        struct item it = {c, &d};
        if (!read_name(c->file, n->keys[i], &d.name) || !name_is_new(c, n->keys[i]))
            continue;
        if (n->items[i]->kind == NODE_SCALAR)
            d.doc = n->items[i]->text;
        else
            node_fields(c->file, n->items[i], "a dim", fields, COUNT(fields), &it);
        c->dims[c->dim_count++] = d;
    }
}

static void scalar_name(void *into, const struct node *n)
{
    struct item *it = into;
    struct scalar *s = it->of;
    if (read_name(it->c->file, n, &s->name) && !name_is_new(it->c, n))
        s->name = NULL;
}

static void scalar_dtype(void *into, const struct node *n)
{
    static const char *const words[] = {"f32", "i32"};
    static const enum dtype dtypes[] = {DTYPE_F32, DTYPE_I32};
    struct item *it = into;
    int which = 0;
    read_word(it->c->file, n, "dtype", words, 2, &which);
    ((struct scalar *)it->of)->dtype = dtypes[which];
}

bool read_scalar_value(const struct contract *c, const struct scalar *s, const struct node *n,
                       double *out)
{
    int64_t whole;
    if (s->dtype == DTYPE_I32 && (!node_int(n, &whole) || whole < INT32_MIN || whole > INT32_MAX)) {
        problem(c->file, n->line, "scalar '%s' is i32: its value must be a whole number", s->name);
        return false;
    }
    if (!node_double(n, out)) {
        problem(c->file, n->line, "the value of scalar '%s' must be a number", s->name);
        return false;
    }
    return true;
}

static void scalar_test(void *into, const struct node *n)
{
    struct item *it = into;
    struct scalar *s = it->of;
    if (s->name != NULL)
        read_scalar_value(it->c, s, n, &s->test);
}

static void scalar_doc(void *into, const struct node *n)
{
    ((struct scalar *)((struct item *)into)->of)->doc = n->text;
}

void read_scalars(void *into, const struct node *n)
{
    static const struct field fields[] = {
        {"name", true, NODE_SCALAR, scalar_name},
        {"dtype", true, NODE_SCALAR, scalar_dtype},
        {"test", true, NODE_SCALAR, scalar_test},
        {"doc", true, NODE_SCALAR, scalar_doc},
    };
    struct contract *c = into;
    if (n->count > MAX_SCALARS) {
        problem(c->file, n->line, "at most %d scalars are possible", MAX_SCALARS);
        return;
    }
    for (int i = 0; i < n->count; i++) {
        struct scalar s = {.line = n->items[i]->line, .dtype = DTYPE_F32};
        struct item it = {c, &s};
        node_fields(c->file, n->items[i], "a scalar", fields, COUNT(fields), &it);
        if (s.name != NULL)
            c->scalars[c->scalar_count++] = s;
    }
}

/* ---- launch ---- */

static void read_choice(struct contract *c, const struct scope *scope, struct choices *list,
                        struct choice choice, const struct node *n)
{
    int count = n->kind == NODE_LIST ? n->count : 1;
    if (count < 1 || count > 3 || (list != &c->grid && n->kind == NODE_LIST)) {
        problem(c->file, n->line, "expected %s",
                list == &c->grid ? "1 to 3 expressions" : "one expression");
        return;
    }
    choice.line = n->line;
    for (int i = 0; i < count; i++) {
        const struct node *e = n->kind == NODE_LIST ? n->items[i] : n;
        if (e->kind != NODE_SCALAR) {
            problem(c->file, e->line, "expected an expression; put it in quotes");
            return;
        }
        choice.e[choice.count++] = expr_parse(scope, e->line, e->text, false);
        if (choice.e[i] == NULL)
            return;
    }
    list->of[list->count++] = choice;
}

/* Read "D=64", a value of an axis; false after problem(). */
static bool read_case(struct contract *c, const struct node *n, struct choice *out)
{
    const char *equals = strchr(n->text, '=');
    if (equals != NULL) {
        out->axis = axis_find(c, keep_text(n->text, (size_t)(equals - n->text)));
        const struct axis *a = out->axis >= 0 ? &c->axes[out->axis] : NULL;
        for (out->value = 0; a != NULL && out->value < a->count; out->value++)
            if (strcmp(a->text[out->value], equals + 1) == 0)
                return true;
    }
    problem(c->file, n->line, "'%s' is not a value of an axis; expected one such as %s=%s", n->text,
            c->axes[c->axis_count - 1].name, c->axes[c->axis_count - 1].text[0]);
    return false;
}

static void read_choices(struct contract *c, const struct scope *scope, struct choices *list,
                         const struct node *n)
{
    list->line = n->line;
    if (n->kind != NODE_MAP) {
        read_choice(c, scope, list, (struct choice){.axis = -1}, n);
        return;
    }
    int axis = -1;
    for (int i = 0; i < n->count && i < MAX_VALUES; i++) {
        struct choice choice = {0};
        if (!read_case(c, n->keys[i], &choice))
            return;
        if (axis >= 0 && choice.axis != axis) {
            problem(c->file, n->keys[i]->line, "all cases must be values of one axis, %s",
                    c->axes[axis].name);
            return;
        }
        axis = choice.axis;
        read_choice(c, scope, list, choice, n->items[i]);
    }
    for (int v = 0; axis >= 0 && v < c->axes[axis].count; v++) {
        bool found = false;
        for (int i = 0; i < n->count; i++) {
            struct choice seen;
            found = found || (read_case(c, n->keys[i], &seen) && seen.value == v);
        }
        if (!found)
            problem(c->file, n->line, "no case for %s=%s", c->axes[axis].name,
                    c->axes[axis].text[v]);
    }
}

static void launch_threads(void *into, const struct node *n)
{
    struct contract *c = into;
    read_choices(c, &c->axis_scope, &c->threads, n);
}

static void launch_min_blocks(void *into, const struct node *n)
{
    struct contract *c = into;
    read_choices(c, &c->axis_scope, &c->min_blocks, n);
}

static void launch_grid(void *into, const struct node *n)
{
    struct contract *c = into;
    read_choices(c, &c->scope, &c->grid, n);
}

static void launch_smem(void *into, const struct node *n)
{
    struct contract *c = into;
    read_choices(c, &c->scope, &c->smem, n);
}

static void launch_cluster(void *into, const struct node *n)
{
    struct contract *c = into;
    int64_t blocks;
    c->cluster_line = n->line;
    if (!node_int(n, &blocks) || blocks < 1 || blocks > 8)
        problem(c->file, n->line, "cluster must be a number of blocks, 1 to 8, not '%s'", n->text);
    else
        c->cluster = (int)blocks;
}

void read_launch(void *into, const struct node *n)
{
    static const struct field fields[] = {
        {"threads", true, NODE_SCALAR | NODE_MAP, launch_threads},
        {"grid", true, NODE_LIST | NODE_MAP, launch_grid},
        {"smem", true, NODE_SCALAR | NODE_MAP, launch_smem},
        {"min_blocks", false, NODE_SCALAR | NODE_MAP, launch_min_blocks},
        {"cluster", false, NODE_SCALAR, launch_cluster},
    };
    struct contract *c = into;
    node_fields(c->file, n, "launch", fields, COUNT(fields), c);
}
