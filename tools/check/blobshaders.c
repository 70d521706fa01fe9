/* SPDX-License-Identifier: Apache-2.0
 *
 * blobshaders.c: checks the shaders of a binary, for its Vulkan backend: their index, and that each is as shadercheck.h
 * requires and takes the block that the launcher of its key fills, followed by the grid. GEMMs have no contract; their
 * block is that of runtime/vulkan/gemm_block.h.
 */
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "check/blobcheck.h"
#include "pack/shadercheck.h"
#include "vulkan/gemm_block.h"

enum { GRID_BYTES = 12, PARAMS_MAX = SPIRV_MEMBERS_MAX };

/* ---- GEMMs ---- */

#define GEMM_MEMBER(m)                                                                             \
    {offsetof(struct nj_vk_gemm_block, m), sizeof(((struct nj_vk_gemm_block *)0)->m)},
static const struct nji_param gemm_params[] = {NJ_VK_GEMM_MEMBERS(GEMM_MEMBER)};
static const char *const gemm_kinds[] = NJ_VK_GEMM_KINDS;
static const char *const gemm_types[] = NJ_VK_GEMM_TYPES;
static const char *const gemm_sizes[] = NJ_VK_GEMM_SIZES;
enum {
    GEMM_PARAMS = sizeof(gemm_params) / sizeof(*gemm_params),
    GEMM_TYPES = sizeof(gemm_types) / sizeof(*gemm_types),
    GEMM_SIZES = sizeof(gemm_sizes) / sizeof(*gemm_sizes),
    GEMMS = sizeof(gemm_kinds) / sizeof(*gemm_kinds) * GEMM_TYPES * GEMM_SIZES
};

/* Write the key of GEMM number i, and return it. */
static const char *gemm_key(int i, char out[40])
{
    snprintf(out, 40, "gemm.%s.%s%s", gemm_kinds[i / GEMM_SIZES / GEMM_TYPES],
             gemm_types[i / GEMM_SIZES % GEMM_TYPES], gemm_sizes[i % GEMM_SIZES]);
    return out;
}

/* Return the number of a GEMM by its key, or -1. */
static int gemm_of(const char *key)
{
    char name[40];
    for (int i = 0; i < GEMMS; i++)
        if (!strcmp(key, gemm_key(i, name)))
            return i;
    return -1;
}

static void check_gemm(struct check *c, const struct key *k)
{
    if (k->threads != NJ_VK_GEMM_THREADS)
        report_add(&c->report, k->key, SHADER_ARCH, "the index says %u threads, the launcher %d",
                   k->threads, NJ_VK_GEMM_THREADS);
    if (k->param_count != GEMM_PARAMS || k->param_bytes != NJ_VK_GEMM_BYTES ||
        memcmp(k->params, gemm_params, sizeof(gemm_params)) != 0)
        report_add(&c->report, k->key, SHADER_ARCH,
                   "its push constants are not the block that GEMMs are launched with");
}

/* Report missing GEMMs, which would be noticed at their first launch only. A program without any GEMM launches none. */
static void check_all_gemms(struct check *c)
{
    const struct blob_index *x = &c->shaders;
    bool found[GEMMS] = {false};
    char name[40];
    int count = 0;
    for (uint32_t e = 0; e < x->header.entry_count; e++) {
        const char *key = index_string(x, x->entries[e].key_str);
        const int i = key ? gemm_of(key) : -1;
        if (i >= 0)
            found[i] = true;
    }
    for (int i = 0; i < GEMMS; i++)
        count += found[i];
    for (int i = 0; i < GEMMS && count > 0; i++)
        if (!found[i])
            report_add(&c->report, gemm_key(i, name), SHADER_ARCH,
                       "missing: other GEMMs are there");
}

/* ---- all shaders ---- */

/* Check a shader against the launcher of its key, as its contract or that of GEMMs describes it. */
static void check_launcher(struct check *c, const struct key *k)
{
    const struct key *launcher = keys_find(&c->keys, k->key);
    if (!launcher && gemm_of(k->key) >= 0)
        check_gemm(c, k);
    else if (!launcher)
        report_add(&c->report, k->key, SHADER_ARCH, "no launcher asks for it");
    if (!launcher)
        return;
    if (k->threads != launcher->threads)
        report_add(&c->report, k->key, SHADER_ARCH, "the index says %u threads, the launcher %u",
                   k->threads, launcher->threads);
    if (k->param_count != launcher->param_count + 1 ||
        k->param_bytes != launcher->param_bytes + GRID_BYTES ||
        memcmp(k->params, launcher->params, launcher->param_count * sizeof(*k->params)) != 0)
        report_add(&c->report, k->key, SHADER_ARCH,
                   "its push constants are not the launcher's block and the grid");
}

static void check_module(struct check *c, const struct nji_entry *e, const struct key *k)
{
    const struct blob_index *x = &c->shaders;
    const struct span module = span_part(c->parts.shaders, e->blob_off, e->blob_bytes);
    uint32_t shared_bytes = 0;
    if (e->blob_bytes == 0 || module.bytes == 0) {
        report_add(&c->report, k->key, SHADER_ARCH, "its module lies outside of the section");
        return;
    }
    if (XXH3_64bits(module.data, module.bytes) != e->blob_hash)
        report_add(&c->report, k->key, SHADER_ARCH,
                   "the hash of its module is not the recorded one");
    shader_check(module, k, &shared_bytes, &c->report);
    if (e->record_count != 1 || e->first_record >= x->header.record_count ||
        x->records[e->first_record].static_shared_bytes != shared_bytes ||
        x->records[e->first_record].code_bytes != module.bytes)
        report_add(&c->report, k->key, SHADER_ARCH,
                   "shared memory or size are not the recorded ones");
    c->shader_count++;
    c->shader_bytes += module.bytes;
}

static void check_entry(struct check *c, const struct nji_entry *e)
{
    const struct blob_index *x = &c->shaders;
    const char *name = index_string(x, e->key_str);
    const struct key k = {.key = name ? name : "?",
                          .threads = e->threads,
                          .param_bytes = e->param_bytes,
                          .param_count = e->param_count,
                          .params = x->params + e->first_param};
    if (e->first_param > x->header.param_count || e->param_count > PARAMS_MAX ||
        e->param_count > x->header.param_count - e->first_param) {
        report_add(&c->report, k.key, SHADER_ARCH, "its parameters lie outside of the index");
        return;
    }
    check_launcher(c, &k);
    check_module(c, e, &k);
}

/* Check that modules fill the section: they lie one after the other, in any order, with zeros up to the next multiple
 * of 64. */
static void check_rest(struct check *c)
{
    const struct span all = c->parts.shaders;
    uint8_t *used = calloc(1, all.bytes + 1);
    size_t foreign = 0;
    if (!used) {
        report_add(&c->report, "", SHADER_ARCH, "no memory for %zu bytes of shaders", all.bytes);
        return;
    }
    for (uint32_t i = 0; i < c->shaders.header.entry_count; i++) {
        const struct nji_entry *e = &c->shaders.entries[i];
        if (span_has(all, e->blob_off, e->blob_bytes))
            memset(used + e->blob_off, 1, e->blob_bytes);
    }
    for (size_t i = 0; i < all.bytes; i++)
        foreign += !used[i] && all.data[i];
    free(used);
    if (foreign)
        report_add(&c->report, "", SHADER_ARCH, "%zu bytes of the section belong to no shader",
                   foreign);
}

void check_shaders(struct check *c)
{
    char why[WHY_BYTES];
    if (c->parts.shader_index.bytes == 0)
        return;
    if (index_read(c->parts.shader_index, "shaderc ", &c->shaders, &c->report, why)) {
        report_add(&c->report, "", SHADER_ARCH, "shaders: %.200s", why);
        return;
    }
    for (uint32_t i = 0; i < c->shaders.header.entry_count; i++)
        check_entry(c, &c->shaders.entries[i]);
    check_all_gemms(c);
    check_rest(c);
}
