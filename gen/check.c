/* SPDX-License-Identifier: Apache-2.0
 *
 * check.c: what needs more than one field, or more than one file: test shapes against requirements
 * and limits, fills that refer to other arguments and ops, sources that must exist, names that must
 * be unique.
 */
#include "contract.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static bool has_name(const struct contract *c, const char *name)
{
    return dim_find(c, name) >= 0 || scalar_find(c, name) >= 0 || axis_find(c, name) >= 0;
}

static const char *dims_text(const struct contract *c, const struct test *t)
{
    const char *s = "";
    for (int i = 0; i < c->dim_count; i++)
        s = keep_format("%s%s%s=%" PRId64, s, i ? " " : "", c->dims[i].name, t->dims[i]);
    return s;
}

/* Place the tensor maps, whose offsets depend on the one architecture. */
static void place_maps(const struct gen *g, struct contract *c)
{
    const struct arch *a = c->only ? arch_find(g, c->only) : NULL;
    if (a != NULL)
        contract_add_maps(c, arch_param_base(a));
    else if (c->only != NULL && g->known != NULL)
        problem(c->file, c->only_line, "only names '%s', no architecture of the list", c->only);
}

/* Check the features that need sm_90: tensor maps and clusters. A common source would need another way without them. */
static void check_sm_90(const struct gen *g, const struct contract *c)
{
    const struct arch *a = c->only ? arch_find(g, c->only) : NULL;
    const bool has = g->known == NULL || (a != NULL && a->sm >= 90);
    if (c->cluster > 1 && !has)
        problem(c->file, c->cluster_line, "cluster needs 'only:' with sm_90 or a later one");
    for (int i = 0; i < c->arg_count; i++) {
        const char *map = keep_format("%s_tiles", c->args[i].name);
        if (c->args[i].tile_rows == 0)
            continue;
        if (!has)
            problem(c->file, c->args[i].tile_line, "tile needs 'only:' with sm_90 or a later one");
        if (arg_find(c, map) >= 0 || has_name(c, map))
            problem(c->file, c->args[i].tile_line,
                    "the name '%s' is that of the tensor map; choose another", map);
    }
}

static void check_sources(const struct gen *g, const struct contract *c)
{
    const char *const paths[] = {kernel_source(g, c),
                                 keep_format("%s/ref/%s.c", g->kernels_dir, c->op)};
    for (int i = 0; i < 2; i++)
        if (access(paths[i], R_OK) != 0)
            problem(c->file, c->op_line, "%s is missing; every op needs it", paths[i]);
}

static void check_names(const struct gen *g, const struct contract *c)
{
    const char *base = strrchr(c->file, '/');
    base = base ? base + 1 : c->file;
    size_t length = strlen(base) - strlen(".yaml");
    if (strlen(c->op) != length || strncmp(c->op, base, length) != 0)
        problem(c->file, c->op_line, "op is '%s' but the file is named '%s'; expected '%.*s'",
                c->op, base, (int)length, base);
    if (c->backward_of != NULL && g->all_read && contract_find(g, c->backward_of) == NULL)
        problem(c->file, c->backward_line, "backward_of names '%s', an op that is not there",
                c->backward_of);
}

/* ---- tests ---- */

/* Evaluate e for a test; reports and returns false if there is no value. */
static bool value_of(const struct key *k, const struct test *t, const struct expr *e, int64_t *out)
{
    struct values v = key_values(k, t);
    const char *why = expr_eval(e, &v, out);
    if (why != NULL)
        problem(k->c->file, t->line, "'%s' (line %d) has no value for %s with %s: %s", e->source,
                e->line, k->variant, dims_text(k->c, t), why);
    return why == NULL;
}

static bool check_require(const struct key *k, const struct test *t)
{
    const struct contract *c = k->c;
    for (int i = 0; i < c->require_count; i++) {
        int64_t holds;
        if (!value_of(k, t, c->require[i], &holds))
            return false;
        if (!holds) {
            problem(c->file, t->line, "this test (%s) breaks the requirement '%s' of line %d",
                    dims_text(c, t), c->require[i]->source, c->require[i]->line);
            return false;
        }
    }
    return true;
}

static bool check_arg(const struct key *k, const struct test *t, const struct arg *a)
{
    int64_t elements = 1, n;
    for (int i = 0; i < a->rank; i++) {
        if (!value_of(k, t, a->shape[i], &n))
            return false;
        if (n <= 0) {
            problem(k->c->file, t->line,
                    "this test (%s) gives '%s' no elements: size '%s' of line %d is %" PRId64,
                    dims_text(k->c, t), a->name, a->shape[i]->source, a->shape[i]->line, n);
            return false;
        }
        if (__builtin_mul_overflow(elements, n, &elements) || elements > INT64_MAX / 8) {
            problem(k->c->file, t->line, "this test (%s) makes '%s' too large for 64 bits",
                    dims_text(k->c, t), a->name);
            return false;
        }
    }
    if (a->fill_value == NULL)
        return true;
    if (!value_of(k, t, a->fill_value, &n))
        return false;
    if (n < 1)
        problem(k->c->file, t->line, "this test (%s) gives the fill of '%s' the bound %" PRId64,
                dims_text(k->c, t), a->name, n);
    return n >= 1;
}

static bool check_smem(const struct gen *g, const struct key *k, const struct test *t)
{
    const struct expr *e = choice_of(&k->c->smem, k)->e[0];
    int64_t bytes;
    if (!value_of(k, t, e, &bytes))
        return false;
    for (int i = 0; i < g->arch_count; i++) {
        const struct arch *a = &g->archs[i];
        if (!key_on_arch(k, a) || (bytes >= 0 && bytes <= a->shared))
            continue;
        problem(k->c->file, t->line,
                "%s with %s needs %" PRId64 " bytes of shared memory (line %d); %s has %" PRId64,
                k->key, dims_text(k->c, t), bytes, e->line, a->name, a->shared);
        return false;
    }
    return true;
}

static bool check_grid(const struct key *k, const struct test *t)
{
    static const int64_t limits[3] = {INT32_MAX, 65535, 65535};
    const struct choice *grid = choice_of(&k->c->grid, k);
    for (int i = 0; i < grid->count; i++) {
        int64_t blocks;
        if (!value_of(k, t, grid->e[i], &blocks))
            return false;
        if (i == 0 && blocks % k->c->cluster != 0) {
            problem(k->c->file, t->line,
                    "with %s the grid size '%s' is %" PRId64
                    "; it must be a multiple of the cluster",
                    dims_text(k->c, t), grid->e[i]->source, blocks);
            return false;
        }
        if (blocks >= 1 && blocks <= limits[i])
            continue;
        problem(k->c->file, t->line,
                "with %s the grid size '%s' is %" PRId64 "; it must be 1 to %" PRId64,
                dims_text(k->c, t), grid->e[i]->source, blocks, limits[i]);
        return false;
    }
    return true;
}

static bool check_test(const struct gen *g, const struct key *k, const struct test *t)
{
    const struct contract *c = k->c;
    int64_t cost;
    bool good = check_require(k, t);
    for (int i = 0; good && i < c->arg_count; i++)
        good = check_arg(k, t, &c->args[i]);
    return good && check_smem(g, k, t) && check_grid(k, t) &&
           (c->flops == NULL || value_of(k, t, c->flops, &cost)) &&
           (c->bytes == NULL || value_of(k, t, c->bytes, &cost));
}

static bool check_threads(const struct key *k)
{
    const struct contract *c = k->c;
    const struct choice *threads = choice_of(&c->threads, k);
    const struct choice *blocks = choice_of(&c->min_blocks, k);
    struct values v = key_values(k, NULL);
    int64_t n = 0;
    const char *why = expr_eval(threads->e[0], &v, &n);
    if (why != NULL || n < 32 || n > 1024 || n % 32 != 0) {
        problem(c->file, threads->line,
                "%s: threads is %" PRId64 "; it must be a multiple of 32 up to 1024", k->key, n);
        return false;
    }
    n = 1;
    why = blocks ? expr_eval(blocks->e[0], &v, &n) : NULL;
    if (why != NULL || n < 1 || n > 32)
        problem(c->file, blocks->line, "%s: min_blocks is %" PRId64 "; it must be 1 to 32", k->key,
                n);
    return why == NULL && n >= 1 && n <= 32;
}

/* Check the keys of a contract; a fault that all keys of an op share is reported once. */
static void check_keys(const struct gen *g, const struct contract *c)
{
    bool bad[MAX_LINES] = {false}, bad_threads = false;
    for (int i = 0; i < g->key_count; i++) {
        const struct key *k = &g->keys[i];
        if (k->c != c)
            continue;
        bad_threads = bad_threads || !check_threads(k);
        for (int t = 0; t < c->test_count; t++)
            bad[t] = bad[t] || !check_test(g, k, &c->tests[t]);
    }
}

/* ---- fills that refer to others ---- */

static bool has_output(const struct contract *c, const char *name)
{
    int i = arg_find(c, name);
    return i >= 0 && c->args[i].dir != DIR_IN;
}

/* Return the op whose derivative r is, if it computes the argument: its reference is run if a case lacks that. */
static const struct contract *maker(const struct gen *g, const struct contract *r, const char *name)
{
    const struct contract *f = r->backward_of ? contract_find(g, r->backward_of) : NULL;
    return f != NULL && has_output(f, name) ? f : NULL;
}

/* Check that all inputs of r's reference exist under the same name, or can be computed from others. */
static void check_reads(const struct gen *g, const struct contract *c, const struct arg *a,
                        const struct contract *r, bool direct)
{
    for (int i = 0; i < r->arg_count; i++) {
        const struct arg *read = &r->args[i];
        if (read->dir == DIR_OUT || read->optional || arg_find(c, read->name) >= 0)
            continue;
        const struct contract *by = direct ? maker(g, r, read->name) : NULL;
        if (by != NULL)
            check_reads(g, c, a, by, false);
        else
            problem(c->file, a->fill_line, "fill 'ref %s' needs an argument '%s' here", r->op,
                    read->name);
    }
    for (int i = r->arg_count; i < r->param_count; i++)
        if (!has_name(c, r->params[i].name))
            problem(c->file, a->fill_line, "fill 'ref %s' needs a dim or scalar '%s' here", r->op,
                    r->params[i].name);
    for (int i = 1; i < r->axis_count; i++)
        if (!has_name(c, r->axes[i].name))
            problem(c->file, a->fill_line, "fill 'ref %s' needs an axis or dim '%s' here", r->op,
                    r->axes[i].name);
}

static void check_ref(const struct gen *g, const struct contract *c, const struct arg *a)
{
    const struct contract *r = contract_find(g, a->fill_name);
    if (r == NULL) {
        if (g->all_read)
            problem(c->file, a->fill_line, "fill 'ref %s' of '%s' names an op that is not there",
                    a->fill_name, a->name);
        return;
    }
    if (!has_output(r, a->name))
        problem(c->file, a->fill_line, "fill 'ref %s': that op has no output named '%s'", r->op,
                a->name);
    check_reads(g, c, a, r, true);
}

static void check_array(const struct contract *c, const struct arg *a)
{
    int i = arg_find(c, a->fill_name);
    if (i < 0)
        problem(c->file, a->fill_line, "the fill of '%s' names '%s', an argument that is not there",
                a->name, a->fill_name);
    else if (c->args[i].dtype != DTYPE_I32)
        problem(c->file, a->fill_line, "the fill of '%s' needs an i32 argument; '%s' is none",
                a->name, a->fill_name);
}

static bool depends(const struct gen *g, const struct contract *c, int from, int to, int left);

/* Return whether the reference of an op, run here, needs arg `to`. `left` bounds the depth. */
static bool reads(const struct gen *g, const struct contract *c, const struct contract *r, int to,
                  int left)
{
    for (int j = 0; r != NULL && left > 0 && j < r->arg_count; j++) {
        const struct arg *a = &r->args[j];
        int i = arg_find(c, a->name);
        if (a->dir == DIR_OUT)
            continue;
        if (i < 0 ? reads(g, c, maker(g, r, a->name), to, left - 1)
                  : i == to || depends(g, c, i, to, left - 1))
            return true;
    }
    return false;
}

/* Return whether filling arg `from` needs arg `to`, directly or through others. */
static bool depends(const struct gen *g, const struct contract *c, int from, int to, int left)
{
    const struct arg *a = &c->args[from];
    if (a->fill_name == NULL || left == 0)
        return false;
    if (a->fill == FILL_REF)
        return reads(g, c, contract_find(g, a->fill_name), to, left);
    int i = arg_find(c, a->fill_name);
    return i >= 0 && (i == to || depends(g, c, i, to, left - 1));
}

static void check_fills(const struct gen *g, const struct contract *c)
{
    for (int i = 0; i < c->arg_count; i++) {
        const struct arg *a = &c->args[i];
        if (a->fill_name == NULL)
            continue;
        if (a->fill == FILL_REF)
            check_ref(g, c, a);
        else
            check_array(c, a);
        if (depends(g, c, i, i, c->arg_count))
            problem(c->file, a->fill_line, "the fill of '%s' needs '%s' itself: a cycle", a->name,
                    a->name);
    }
}

/* ---- names across files ---- */

static void check_arch_list(const struct gen *g, const struct contract *c,
                            const struct arch_list *list, const char *field)
{
    for (int e = 0; e < list->count; e++) {
        const struct arch_bytes *x = &list->of[e];
        bool found = x->variant == NULL;
        for (int i = 0; i < g->key_count && !found; i++)
            found = g->keys[i].c == c && strcmp(g->keys[i].variant, x->variant) == 0;
        if (!found)
            problem(c->file, x->line, "%s names '%s'; %s has no such variant", field, x->variant,
                    c->op);
    }
}

static void check_arch_smem(const struct gen *g, const struct contract *c)
{
    check_arch_list(g, c, &c->arch_smem, "arch_smem");
    for (int e = 0; e < c->arch_smem.count; e++) {
        const struct arch_bytes *x = &c->arch_smem.of[e];
        for (int i = 0; i < g->arch_count; i++) {
            const struct arch *a = &g->archs[i];
            if ((x->arch == NULL || strcmp(x->arch, a->name) == 0) && x->bytes > a->shared)
                problem(c->file, x->line,
                        "arch_smem gives %" PRId64 " bytes of shared memory; %s has %" PRId64,
                        x->bytes, a->name, a->shared);
        }
    }
}

static void check_unique(const struct gen *g)
{
    for (int i = 0; i < g->key_count; i++)
        for (int j = 0; j < i; j++)
            if (strcmp(g->keys[i].entry, g->keys[j].entry) == 0)
                problem(g->keys[i].c->file, g->keys[i].c->op_line,
                        "the keys %s and %s have the same entry symbol %s", g->keys[j].key,
                        g->keys[i].key, g->keys[i].entry);
}

static void check_falsifier(const struct gen *g, const struct contract *c,
                            const struct falsifier *f)
{
    for (int i = 0; i < g->contract_count; i++) {
        const struct contract *d = g->contracts[i];
        for (int j = 0; j < d->falsifier_count; j++) {
            const struct falsifier *h = &d->falsifiers[j];
            if (h == f)
                return;
            if (strcmp(h->id, f->id) == 0)
                problem(c->file, f->line, "the falsifier %s is in %s:%d already", f->id, d->file,
                        h->line);
        }
    }
}

void check_all(struct gen *g)
{
    for (int i = 0; i < g->contract_count; i++) {
        struct contract *c = g->contracts[i];
        check_names(g, c);
        place_maps(g, c);
        check_sm_90(g, c);
        check_sources(g, c);
        check_fills(g, c);
        check_arch_list(g, c, &c->spills, "allow_spill");
        check_arch_smem(g, c);
        for (int f = 0; f < c->falsifier_count; f++)
            check_falsifier(g, c, &c->falsifiers[f]);
        if (c->sound)
            check_keys(g, c);
    }
    check_unique(g);
}
