/* SPDX-License-Identifier: Apache-2.0
 *
 * shadercheck.c: checks a module: it must be one compute shader with the launcher's block size and push constants, that
 * requires no more of a device than the runtime switches on, binds nothing, has no atomics, whose order is not defined,
 * and contains no source.
 */
#include "pack/shadercheck.h"

enum { VERSION_MAX = 0x10500 };

static void check_form(const struct spirv *m, const struct key *k, struct report *r)
{
    if (m->version > VERSION_MAX)
        report_add(r, k->key, SHADER_ARCH, "SPIR-V %u.%u is newer than 1.5", m->version >> 16,
                   m->version >> 8 & 0xff);
    if (m->entries != 1 || !m->entry || strcmp(m->entry, SHADER_ENTRY) != 0)
        report_add(r, k->key, SHADER_ARCH, "it is not one compute shader named " SHADER_ENTRY);
    if (m->addressing != SPIRV_PHYSICAL_STORAGE_BUFFER_64)
        report_add(r, k->key, SHADER_ARCH, "its memory model has no 64-bit addresses");
    if (m->capability)
        report_add(r, k->key, SHADER_ARCH, "capability %u is not one that the runtime asks for",
                   m->capability);
    if (m->extension)
        report_add(r, k->key, SHADER_ARCH, "extension %.100s is not one that the runtime asks for",
                   m->extension);
    if (m->atomic)
        report_add(r, k->key, SHADER_ARCH,
                   "instruction %u is an atomic: its order, and so the result, is not fixed",
                   m->atomic);
    if (m->source)
        report_add(r, k->key, SHADER_ARCH, "it holds text of its source");
    if (m->descriptors)
        report_add(r, k->key, SHADER_ARCH, "it has a variable that nobody binds");
}

static void check_block(const struct spirv *m, const struct key *k, struct report *r)
{
    if (m->member_count != k->param_count)
        report_add(r, k->key, SHADER_ARCH, "it has %u push constants, the launcher gives %u",
                   m->member_count, k->param_count);
    for (uint32_t i = 0; i < m->member_count && i < k->param_count; i++)
        if (m->members[i].offset != k->params[i].offset ||
            m->members[i].bytes != k->params[i].bytes)
            report_add(r, k->key, SHADER_ARCH,
                       "push constant %u is %u bytes at %u, the launcher gives %u bytes at %u", i,
                       m->members[i].bytes, m->members[i].offset, k->params[i].bytes,
                       k->params[i].offset);
    if (k->param_bytes > SHADER_PUSH_MAX)
        report_add(r, k->key, SHADER_ARCH, "%u bytes of push constants exceed %d", k->param_bytes,
                   SHADER_PUSH_MAX);
}

void shader_check(struct span module, const struct key *k, uint32_t *shared_bytes, struct report *r)
{
    char why[WHY_BYTES];
    struct spirv m;
    *shared_bytes = 0;
    if (spirv_parse(module, &m, why)) {
        report_add(r, k->key, SHADER_ARCH, "the shader %s", why);
        return;
    }
    *shared_bytes = m.shared_bytes;
    check_form(&m, k, r);
    check_block(&m, k, r);
    if (m.local_size[0] != k->threads || m.local_size[1] != 1 || m.local_size[2] != 1)
        report_add(r, k->key, SHADER_ARCH, "workgroups of %u x %u x %u, launched with %u threads",
                   m.local_size[0], m.local_size[1], m.local_size[2], k->threads);
    if (k->threads > SHADER_THREADS_MAX)
        report_add(r, k->key, SHADER_ARCH, "%u threads exceed %d", k->threads, SHADER_THREADS_MAX);
    if (m.shared_bytes > SHADER_SHARED_MAX)
        report_add(r, k->key, SHADER_ARCH, "%u bytes of shared memory exceed %d", m.shared_bytes,
                   SHADER_SHARED_MAX);
}
