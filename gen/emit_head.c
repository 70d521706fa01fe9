/* SPDX-License-Identifier: Apache-2.0
 *
 * emit_head.c: writes the header of typed launchers, each with what a caller must know.
 */
#include "emit.h"

#include <ctype.h>
#include <stdlib.h>

static void put_description(struct text *t, const struct contract *c)
{
    put(t, "/* ");
    put_paragraph(t, 0, 1, c->summary);
    for (int i = 0; i < c->equation_count; i++) {
        put(t, " *   ");
        put_paragraph(t, 0, 5, c->equations[i]);
    }
    put(t, " *\n *   T: ");
    for (int v = 0; v < c->axes[0].count; v++)
        put(t, "%s%s", v ? ", " : "", c->axes[0].number[v] == DTYPE_LP ? "NJ_LP" : "NJ_F32");
    for (int a = 1; a < c->axis_count; a++) {
        put(t, "; %s: ", c->axes[a].name);
        for (int v = 0; v < c->axes[a].count; v++)
            put(t, "%s%d", v ? ", " : "", c->axes[a].number[v]);
    }
    put(t, "\n");
    const char *require = "";
    for (int i = 0; i < c->require_count; i++)
        require = keep_format("%s%s%s", require, i ? ", " : "", c->require[i]->source);
    if (c->require_count > 0) {
        put(t, " * Requires ");
        put_paragraph(t, 0, 1, keep_format("%s.", require));
    }
    put(t, " */\n");
}

static void put_prototype(struct text *t, const struct contract *c)
{
    put_signature(t, c);
    put(t, ";\n\n");
}

/* Print the query for an op that only some GPUs have. */
static void put_available(struct text *t, const struct contract *c)
{
    put(t, "/* 1 if nj_%s of these types runs on this device, else 0. */\n", c->op);
    put(t, "int nj_%s_available(const nj_context *ctx, enum nj_dtype T", c->op);
    for (int a = 1; a < c->axis_count; a++)
        put(t, ", int %s", c->axes[a].name);
    put(t, ");\n\n");
}

static const char *guard(const char *header)
{
    char *s = keep_format("NJ_GENERATED_%s", header);
    for (char *p = s; *p; p++)
        *p = isalnum((unsigned char)*p) ? (char)toupper((unsigned char)*p) : '_';
    return s;
}

int emit_head(const struct gen *g, const char *out)
{
    const char *name = guard(g->header);
    struct text t = {0};
    put(&t,
        "/* SPDX-License-Identifier: Apache-2.0\n *\n"
        " * %s: typed launchers. Written by gen from the kernel contracts. Do not edit.\n *\n",
        g->header);
    put(&t,
        " * Each enqueues its kernel on the stream and returns; the struct of arguments is copied. "
        "T "
        "is the\n"
        " * element type: NJ_LP or NJ_F32. A field says its direction, element type and shape; "
        "pointers are\n"
        " * device memory (host memory on the CPU backend), and void * is an array of T, or of a "
        "type "
        "that C\n"
        " * lacks. A field that is left out is 0 or NULL, which is refused for all but those 'or "
        "NULL'.\n"
        " * All return 0; NJ_E_ARG for a broken requirement, a NULL or misaligned pointer; "
        "NJ_E_NO_KERNEL\n"
        " * for a variant that this build lacks; NJ_E_DEVICE. nj_context_error() has the "
        "sentence.\n */\n");
    put(&t, "#ifndef %s\n#define %s\n\n#include \"nojit.h\"\n\n", name, name);
    put(&t, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    for (int i = 0; i < g->contract_count; i++) {
        put_description(&t, g->contracts[i]);
        put_struct(&t, g->contracts[i]);
        put_prototype(&t, g->contracts[i]);
        if (g->contracts[i]->only)
            put_available(&t, g->contracts[i]);
    }
    put(&t, "#ifdef __cplusplus\n}\n#endif\n#endif\n");
    return put_file(out, g->header, &t, false);
}
