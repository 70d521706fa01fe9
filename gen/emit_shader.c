/* SPDX-License-Identifier: Apache-2.0
 *
 * emit_shader.c: writes inst/<key>.comp, the compute shader of a key whose op has a source
 * kernels/vulkan/<op>.comp, and shaders.txt, what the packer and the runtime read about them. The
 * parameter block of the launchers is the block of push constants, followed by the grid: a shader
 * is dispatched in one dimension, of which drivers allow more than of the others.
 */
#include "emit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GRID_SIZES = 3 };

const char *shader_source(const struct gen *g, const struct key *k)
{
    const char *path = keep_format("%s/vulkan/%s.comp", g->kernels_dir, k->c->op);
    return k->c->only == NULL && access(path, R_OK) == 0 ? path : NULL;
}

static const char *shader_type(const struct param *p)
{
    static const char *const values[] = {
        [DTYPE_F32] = "float", [DTYPE_I32] = "int", [DTYPE_I64] = "int64_t"};
    /* Types of arrays; elements of smaller fixed types lie in words. */
    static const char *const arrays[] = {
        [DTYPE_T] = "nj_t",    [DTYPE_F32] = "nj_f32",  [DTYPE_I32] = "nj_i32",
        [DTYPE_F8] = "nj_i32", [DTYPE_BF16] = "nj_i32", [DTYPE_E5M2] = "nj_i32"};
    return p->arg == NULL ? values[p->dtype] : arrays[p->dtype];
}

/* Return a parameter's name in a shader: some names of contracts are reserved words of GLSL. */
static const char *shader_name(const struct param *p)
{
    static const char *const reserved[] = {"in",    "out",    "inout", "half",
                                           "input", "output", "sample"};
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (strcmp(p->name, reserved[i]) == 0)
            return keep_format("%s_", p->name);
    return p->name;
}

static void put_shader(struct text *t, const struct key *k)
{
    const struct contract *c = k->c;
    put(t, "#version 460\n// SPDX-License-Identifier: Apache-2.0\n");
    put(t, "// Written by gen from the contract %s.yaml. Do not edit.\n", c->op);
    put(t, "#extension GL_GOOGLE_include_directive : require\n#define NJ_THREADS %d\n", k->threads);
    if (key_dtype(k, DTYPE_T) == DTYPE_LP)
        put(t, "#define NJ_LP\n");
    for (int a = 1; a < c->axis_count; a++)
        put(t, "#define %s %d\n", c->axes[a].name, c->axes[a].number[k->value[a]]);
    put(t, "#include \"common.glsl\"\n\nlayout(push_constant, scalar) uniform nj_block {\n");
    for (int i = 0; i < c->param_count; i++)
        put(t, "    layout(offset = %d) %s %s;\n", c->params[i].offset, shader_type(&c->params[i]),
            shader_name(&c->params[i]));
    put(t, "    layout(offset = %d) uint nj_grid[%d];\n};\n\n", c->param_bytes, GRID_SIZES);
    put(t, "#include \"grid.glsl\"\n#include \"%s.comp\"\n\n", c->op);
    put(t, "void main()\n{\n    if (nj_begin())\n        nj_%s();\n}\n", c->op);
}

static void put_line(struct text *t, const struct key *k)
{
    const struct contract *c = k->c;
    put(t, "%s\t%s\t%d\t0\t%d\t%d\t", k->key, k->entry, k->threads, LOWEST_SM,
        c->param_bytes + 4 * GRID_SIZES);
    for (int p = 0; p < c->param_count; p++)
        put(t, "%d:%d,", c->params[p].offset, c->params[p].bytes);
    put(t, "%d:%d\n", c->param_bytes, 4 * GRID_SIZES);
}

int emit_shaders(const struct gen *g, const char *out)
{
    const char *dir = keep_format("%s/inst", out);
    struct text list = {0};
    put(&list, "%s", "");
    for (int i = 0; i < g->key_count; i++) {
        const struct key *k = &g->keys[i];
        struct text t = {0};
        if (k->id < 0 || shader_source(g, k) == NULL)
            continue;
        put_line(&list, k);
        put_shader(&t, k);
        if (put_file(dir, keep_format("%s.comp", k->key), &t, false) != 0) {
            free(list.s);
            return -1;
        }
    }
    return put_file(out, "shaders.txt", &list, false);
}
