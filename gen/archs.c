/* SPDX-License-Identifier: Apache-2.0
 *
 * archs.c: which architectures this build is for, chosen from the list of all that are known.
 */
#include "contract.h"

#include <stdlib.h>
#include <string.h>

static void arch_name(void *into, const struct node *n)
{
    ((struct arch *)into)->name = n->text;
}

static void arch_shared(void *into, const struct node *n)
{
    if (!node_int(n, &((struct arch *)into)->shared))
        ((struct arch *)into)->shared = -1;
}

static void arch_lp(void *into, const struct node *n)
{
    ((struct arch *)into)->f16 = strcmp(n->text, "f16") == 0;
    if (strcmp(n->text, "f16") != 0 && strcmp(n->text, "bf16") != 0)
        ((struct arch *)into)->shared = -1;
}

static void arch_default(void *into, const struct node *n)
{
    ((struct arch *)into)->by_default = strcmp(n->text, "true") == 0;
}

static void arch_ptxas(void *into, const struct node *n)
{
    ((struct arch *)into)->ptxas = n->text;
}

static void arch_spare(void *into, const struct node *n)
{
    ((struct arch *)into)->spare = strcmp(n->text, "true") == 0;
}

/* Return whether the text is three numbers with points between them, without leading zeros. */
static bool is_release(const char *s)
{
    for (int i = 0; i < 3; i++) {
        const size_t digits = strspn(s, "0123456789");
        if (digits == 0 || digits > 4 || (digits > 1 && s[0] == '0') ||
            s[digits] != (i < 2 ? '.' : '\0'))
            return false;
        s += digits + 1;
    }
    return true;
}

static void check_flag(const char *path, const struct node *arch, const char *name)
{
    const struct node *n = node_field(arch, name);
    if (n != NULL && strcmp(n->text, "true") != 0 && strcmp(n->text, "false") != 0)
        problem(path, n->line, "%s is '%s'; expected true or false", name, n->text);
}

static void read_arch(const char *path, const struct node *n, struct arch *a)
{
    static const struct field fields[] = {
        {"name", true, NODE_SCALAR, arch_name},    {"shared", true, NODE_SCALAR, arch_shared},
        {"lp", true, NODE_SCALAR, arch_lp},        {"default", false, NODE_SCALAR, arch_default},
        {"ptxas", false, NODE_SCALAR, arch_ptxas}, {"spare", false, NODE_SCALAR, arch_spare},
    };
    int before = problem_count();
    *a = (struct arch){.line = n->line};
    node_fields(path, n, "an architecture", fields, sizeof fields / sizeof *fields, a);
    if (problem_count() != before)
        return;
    char *end = NULL;
    if (strncmp(a->name, "sm_", 3) == 0)
        a->sm = (int)strtol(a->name + 3, &end, 10);
    if (end != NULL && (*end == 'a' || *end == 'f'))
        a->suffix = *end++;
    if (end == NULL || *end != '\0' || a->sm < LOWEST_SM)
        problem(path, n->line,
                "'%s' is not an architecture; expected a name such as sm_90 or sm_90a", a->name);
    if (a->shared < 0 || a->shared > INT32_MAX)
        problem(path, n->line, "%s: shared must be a number of bytes, lp must be bf16 or f16",
                a->name);
    check_flag(path, n, "default");
    check_flag(path, n, "spare");
    if (a->ptxas != NULL && !is_release(a->ptxas))
        problem(path, n->line, "%s: '%s' is not a release of ptxas; expected one such as 13.3.73",
                a->name, a->ptxas);
}

static void select_arch(struct gen *g, const struct arch *a)
{
    for (int i = 0; i < g->arch_count; i++) {
        const struct arch *b = &g->archs[i];
        if (b->sm == a->sm && b->suffix == a->suffix)
            problem("--archs", 0, "%s is named twice", a->name);
        else if (b->sm == a->sm)
            problem("--archs", 0, "%s and %s would shadow each other on one GPU; choose one",
                    b->name, a->name);
    }
    g->archs[g->arch_count++] = *a;
}

static void select_named(struct gen *g, const struct arch *known, int count, const char *wanted)
{
    char *save = NULL, *list = keep_format("%s", wanted);
    for (char *w = strtok_r(list, " ,", &save); w != NULL; w = strtok_r(NULL, " ,", &save)) {
        int i = 0;
        while (i < count && strcmp(known[i].name, w) != 0)
            i++;
        if (i == count) {
            const char *names = "";
            for (int k = 0; k < count; k++)
                names = keep_format("%s %s", names, known[k].name);
            problem("--archs", 0, "unknown architecture '%s'; known:%s", w, names);
            return;
        }
        if (g->arch_count == MAX_ARCHS) {
            problem("--archs", 0, "more than %d architectures", MAX_ARCHS);
            return;
        }
        select_arch(g, &known[i]);
    }
}

static int by_sm(const void *a, const void *b)
{
    const struct arch *x = a, *y = b;
    return x->sm != y->sm ? x->sm - y->sm : x->suffix - y->suffix;
}

void archs_read(struct gen *g, const char *path, const char *wanted)
{
    const struct node *root = yaml_load(path);
    if (root == NULL)
        return;
    if (root->kind != NODE_LIST || root->count == 0 || root->count > 4 * MAX_ARCHS) {
        problem(path, root->line, "expected a list of architectures");
        return;
    }
    int before = problem_count();
    struct arch *known = keep((size_t)root->count * sizeof *known);
    for (int i = 0; i < root->count; i++)
        read_arch(path, root->items[i], &known[i]);
    if (problem_count() != before)
        return;
    if (strcmp(wanted, "default") == 0) {
        wanted = "";
        for (int i = 0; i < root->count; i++)
            if (known[i].by_default)
                wanted = keep_format("%s %s", wanted, known[i].name);
    }
    g->known = known;
    g->known_count = root->count;
    select_named(g, known, root->count, wanted);
    if (g->arch_count == 0 && problem_count() == before)
        problem("--archs", 0, "no architecture is named; expected some such as 'sm_90 sm_120'");
    qsort(g->archs, (size_t)g->arch_count, sizeof *g->archs, by_sm);
}

const struct arch *arch_find(const struct gen *g, const char *name)
{
    for (int i = 0; i < g->known_count; i++)
        if (strcmp(g->known[i].name, name) == 0)
            return &g->known[i];
    return NULL;
}

/* Return where parameters begin in the constant bank of its kernels; pack compares the offsets that follow from it
 * with the machine code. */
int arch_param_base(const struct arch *a)
{
    return a->sm >= 100 ? 0x380 : 0x210;
}

bool key_on_arch(const struct key *k, const struct arch *a)
{
    return k->c->only == NULL || strcmp(a->name, k->c->only) == 0;
}

const char *kernel_source(const struct gen *g, const struct contract *c)
{
    return c->only ? keep_format("%s/%s/%s.cu", g->kernels_dir, c->only, c->op)
                   : keep_format("%s/%s.cu", g->kernels_dir, c->op);
}
