/* SPDX-License-Identifier: Apache-2.0
 *
 * emit_doc.c: writes KERNELS.md: a table of all ops, then what each contract says, op by op.
 */
#include "emit.h"

#include <inttypes.h>

static const char *dir_text(enum dir dir)
{
    static const char *const names[] = {"in", "out", "inout"};
    return names[dir];
}

static const char *axis_text(const struct axis *a)
{
    const char *s = keep_format("%s = ", a->name);
    for (int v = 0; v < a->count; v++)
        s = keep_format("%s%s%s", s, v ? ", " : "", a->text[v]);
    return s;
}

static const char *axes_text(const struct contract *c)
{
    const char *s = "";
    for (int a = 0; a < c->axis_count; a++)
        s = keep_format("%s%s%s", s, a ? "; " : "", axis_text(&c->axes[a]));
    return s;
}

static void put_choices(struct text *t, const struct contract *c, const char *what,
                        const struct choices *list)
{
    for (int i = 0; i < list->count; i++) {
        const struct choice *x = &list->of[i];
        put(t, "%s%s ", i ? ", " : "", i ? "" : what);
        for (int j = 0; j < x->count; j++)
            put(t, "%s`%s`", j ? " x " : "", x->e[j]->source);
        if (x->axis >= 0)
            put(t, " (%s = %s)", c->axes[x->axis].name, c->axes[x->axis].text[x->value]);
    }
}

static void put_params(struct text *t, const struct contract *c)
{
    put(t, "| parameter | direction | type | shape | meaning |\n|---|---|---|---|---|\n");
    for (int i = 0; i < c->param_count; i++) {
        const struct param *p = &c->params[i];
        put(t, "| `%s` | %s%s | %s | ", p->name, p->arg ? dir_text(p->arg->dir) : "in",
            p->arg && p->arg->optional ? ", may be NULL" : "", dtype_text(p->dtype));
        if (p->arg)
            put(t, "`%s`", shape_text(p->arg));
        if (p->arg && p->arg->align > 0)
            put(t, ", aligned to %d", p->arg->align);
        if (p->arg && p->arg->tile_rows > 0)
            put(t, ", tiles of %d rows", p->arg->tile_rows);
        put(t, " | ");
        put_cell(t, p->doc);
        put(t, " |\n");
    }
}

static void put_arch_list(struct text *t, const struct arch_list *list, const char *what)
{
    for (int i = 0; i < list->count; i++) {
        const struct arch_bytes *x = &list->of[i];
        put(t, "- %s %" PRId64 " bytes: %s%s%s\n", what, x->bytes, x->variant ? x->variant : "",
            x->variant && x->arch ? " " : "", x->arch ? x->arch : "");
    }
}

static void put_facts(struct text *t, const struct contract *c)
{
    put(t, "\n- Variants: %s\n", axes_text(c));
    for (int i = 0; i < c->require_count; i++)
        put(t, "%s`%s`", i ? ", " : "- Requires ", c->require[i]->source);
    put(t, c->require_count ? "\n" : "");
    put_choices(t, c, "- Launch: threads", &c->threads);
    put_choices(t, c, "; blocks", &c->grid);
    put_choices(t, c, "; shared bytes", &c->smem);
    put_choices(t, c, "; blocks on an SM at least", &c->min_blocks);
    if (c->cluster > 1)
        put(t, "; clusters of %d blocks", c->cluster);
    put(t, "\n- Tolerance: ");
    for (int v = 0; v < c->axes[0].count; v++)
        put(t, "%s%s %.9g", v ? ", " : "", c->axes[0].text[v], c->tolerance[v]);
    for (int i = 0; i < c->arg_count; i++)
        if (c->args[i].tolerance > 0)
            put(t, ", `%s` %.9g", c->args[i].name, c->args[i].tolerance);
    put(t, "\n- Cost: `%s` operations, `%s` bytes\n", c->flops->source, c->bytes->source);
    if (c->only)
        put(t, "- Only architecture: %s\n", c->only);
    if (c->when)
        put(t, "- Only models with the feature: %s\n", c->when);
    put_arch_list(t, &c->arch_smem, "Dynamic shared memory, at least");
    put_arch_list(t, &c->spills, "May spill");
    for (int i = 0; i < c->falsifier_count; i++) {
        const struct falsifier *f = &c->falsifiers[i];
        put(t, "- %s: %s. %s: `%s`\n", f->id, f->claim, f->open ? "Open" : "Test",
            f->open ? f->open : f->test);
    }
}

static void put_op(struct text *t, const struct contract *c)
{
    put(t, "\n## %s\n\n%s", c->op, c->summary);
    if (c->backward_of != NULL)
        put(t, " Backward of [%s](#%s).", c->backward_of, c->backward_of);
    put(t, "\n\n```\n");
    for (int i = 0; i < c->equation_count; i++)
        put(t, "%s\n", c->equations[i]);
    put(t, "```\n\nSource: %s\n\n", c->source);
    put_params(t, c);
    put_facts(t, c);
}

int emit_doc(const struct gen *g, const char *out)
{
    struct text t = {0};
    put(&t, "# Kernels\n\nWritten by `gen` from the kernel contracts. Do not edit.\n\n");
    put(&t, "| op | variants | summary |\n|---|---|---|\n");
    for (int i = 0; i < g->contract_count; i++) {
        const struct contract *c = g->contracts[i];
        put(&t, "| [%s](#%s) | %s | ", c->op, c->op, axes_text(c));
        put_cell(&t, c->summary);
        put(&t, " |\n");
    }
    for (int i = 0; i < g->contract_count; i++)
        put_op(&t, g->contracts[i]);
    return put_file(out, "KERNELS.md", &t, false);
}
