/* SPDX-License-Identifier: Apache-2.0
 *
 * blobprint.c: prints the findings of blobcheck, for people and as JSON.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "assemblers.h"
#include "base/features.h"
#include "base/plural.h"
#include "check/blobcheck.h"

static int key_width(const struct check *c)
{
    size_t width = strlen("key");
    for (uint32_t i = 0; i < c->keys.count; i++)
        if (strlen(c->keys.keys[i].key) > width)
            width = strlen(c->keys.keys[i].key);
    return (int)width;
}

/* Print the registers of one pair; s16: it spills 16 bytes, -: excluded, MISSING. */
static void print_cell(const struct check *c, const struct checked_key *k, uint32_t a)
{
    char text[32];
    const struct code_fact *f = &k->facts[a];
    if (!key_applies(k->key, &c->index.archs[a]))
        snprintf(text, sizeof(text), "-");
    else if (!f->present || !k->entry)
        snprintf(text, sizeof(text), "MISSING");
    else if (k->spills[a])
        snprintf(text, sizeof(text), "%u s%u", f->registers, k->spills[a]);
    else
        snprintf(text, sizeof(text), "%u", f->registers);
    printf("  %9s", text);
}

static void print_excluded(const struct key *k, const char *arch)
{
    if (k->only)
        printf("excluded: %s on %s, its contract asks for %s alone\n", k->key, arch, k->only);
    else
        printf("excluded: %s on %s, its contract asks for sm_%u\n", k->key, arch, k->min_sm);
}

static uint32_t archs_shown(const struct check *c)
{
    uint32_t archs = 0;
    for (uint32_t a = 0; a < c->index.header.arch_count; a++)
        archs += check_shows(c, a);
    return archs;
}

void print_table(const struct check *c)
{
    int width = key_width(c);
    if (archs_shown(c) == 0) /* --arch names an arch of another binary */
        return;
    printf("Registers a thread%s\n%-*s  threads  shared",
           c->spilled ? " (s16: spills 16 bytes)" : "", width, "key");
    for (uint32_t a = 0; a < c->index.header.arch_count; a++)
        if (check_shows(c, a))
            printf("  %9s", check_arch_name(c, a).text);
    printf("\n");
    for (uint32_t i = 0; i < c->keys.count; i++) {
        const struct checked_key *k = &c->checked[i];
        uint32_t fixed = 0; /* largest static shared memory of all archs */
        for (uint32_t a = 0; a < c->index.header.arch_count; a++)
            if (k->facts[a].static_shared_bytes > fixed)
                fixed = k->facts[a].static_shared_bytes;
        printf("%-*s  %7u  %6u", width, k->key->key, k->key->threads,
               fixed + k->key->max_shared_bytes);
        for (uint32_t a = 0; a < c->index.header.arch_count; a++)
            if (check_shows(c, a))
                print_cell(c, k, a);
        printf("\n");
    }
    for (uint32_t i = 0; i < c->keys.count; i++)
        for (uint32_t a = 0; a < c->index.header.arch_count; a++)
            if (check_shows(c, a) && !key_applies(&c->keys.keys[i], &c->index.archs[a]))
                print_excluded(&c->keys.keys[i], check_arch_name(c, a).text);
}

/* Write the assemblers of the archs that are shown: all, or that of --arch. */
static void name_assemblers(const struct check *c, char *out, size_t bytes)
{
    struct nji_arch shown[MAX_ARCHS];
    uint32_t count = 0;
    for (uint32_t a = 0; a < c->index.header.arch_count; a++)
        if (check_shows(c, a))
            shown[count++] = c->index.archs[a];
    nji_assemblers(shown, count, (const char *)c->index.strings.data, out, bytes);
}

/* Write " sm_120 sm_121", the archs with spare code. */
static void name_spares(const struct check *c, char *out, size_t bytes)
{
    size_t used = 0;
    out[0] = 0;
    for (uint32_t a = 0; a < c->index.header.arch_count && used < bytes; a++)
        if (c->index.archs[a].spare && check_shows(c, a))
            used += (size_t)snprintf(out + used, bytes - used, " %s", check_arch_name(c, a).text);
}

void print_summary(const struct check *c)
{
    const uint32_t archs = archs_shown(c);
    char assemblers[512], spares[512];
    name_assemblers(c, assemblers, sizeof(assemblers));
    name_spares(c, spares, sizeof(spares));
    printf("blobcheck: %u key%s x %u arch%s, %u of %u present, %u excluded, %u with spills, "
           "%" PRIu64 " bytes of code, %s: ",
           c->keys.count, plural(c->keys.count), archs, plural(archs), c->present, c->asked,
           c->excluded, c->spilled, c->code_bytes, assemblers);
    if (report_count(&c->report))
        printf("%u problem%s\n", report_count(&c->report), plural(report_count(&c->report)));
    else
        printf("no PTX, no Tile IR, no LTO-IR, no problems\n");
    if (spares[0])
        printf("blobcheck: spare code, assembled at -O1 and compressed, for%s: %" PRIu64 " bytes\n",
               spares, c->spare_bytes);
    if (c->shader_count)
        printf("blobcheck: %u shader%s for Vulkan, %" PRIu64 " bytes of SPIR-V, %s\n",
               c->shader_count, plural(c->shader_count), c->shader_bytes,
               index_assembler(&c->shaders, 0));
}

static bool has(const struct model_keys *m, enum feature feature)
{
    return (m->features & FEATURE_BIT(feature)) != 0;
}

void print_model(const struct check *c, const struct model_keys *m)
{
    uint32_t used = 0;
    printf("%s, head size %d%s%s uses\n", m->model_type, m->head_dim,
           has(m, FEATURE_QKV_BIAS) ? ", query-key-value bias" : "",
           has(m, FEATURE_QK_NORM) ? ", query-key norm" : "");
    for (uint32_t i = 0; i < c->keys.count; i++) {
        if (!m->used[i])
            continue;
        printf("  %s\n", c->keys.keys[i].key);
        used++;
    }
    printf("%u of %u key%s (.lp with 16-bit weights, .f32 with --dtype float32)\n", used,
           c->keys.count, plural(c->keys.count));
}

/* ---- JSON ---- */

static json_t *hex(uint64_t hash)
{
    return json_sprintf("%016" PRIx64, hash);
}

static json_t *json_code(const struct checked_key *k, uint32_t a)
{
    const struct code_fact *f = &k->facts[a], *s = &k->spares[a];
    json_t *code = json_pack("{s:i, s:i, s:i, s:i, s:i, s:o, s:s}", "registers", (int)f->registers,
                             "static_shared_bytes", (int)f->static_shared_bytes, "stack_bytes",
                             (int)f->stack_bytes, "spill_bytes", (int)k->spills[a], "bytes",
                             (int)f->code_bytes, "xxh3", hex(f->hash), "ptxas", f->ptxas);
    if (s->present)
        json_object_set_new(code, "spare",
                            json_pack("{s:i, s:i, s:o}", "registers", (int)s->registers, "bytes",
                                      (int)s->code_bytes, "xxh3", hex(s->hash)));
    return code;
}

static json_t *json_key(const struct check *c, uint32_t i)
{
    const struct checked_key *k = &c->checked[i];
    json_t *params = json_array(), *code = json_object(), *excluded = json_array();
    json_t *missing = json_array();
    for (uint32_t p = 0; p < k->key->param_count; p++)
        json_array_append_new(params, json_pack("{s:i, s:i}", "offset", k->key->params[p].offset,
                                                "bytes", k->key->params[p].bytes));
    for (uint32_t a = 0; a < c->index.header.arch_count; a++) {
        struct arch_name name = check_arch_name(c, a);
        if (!check_shows(c, a))
            continue;
        if (!key_applies(k->key, &c->index.archs[a]))
            json_array_append_new(excluded, json_string(name.text));
        else if (!k->entry || !k->facts[a].present)
            json_array_append_new(missing, json_string(name.text));
        else
            json_object_set_new(code, name.text, json_code(k, a));
    }
    return json_pack("{s:s, s:s, s:i, s:i, s:i, s:s?, s:i, s:o, s:o, s:o, s:o}", "key", k->key->key,
                     "entry", k->key->entry, "threads", (int)k->key->threads, "max_shared_bytes",
                     (int)k->key->max_shared_bytes, "min_sm", k->key->min_sm, "only", k->key->only,
                     "param_bytes", k->key->param_bytes, "params", params, "code", code, "excluded",
                     excluded, "missing", missing);
}

static json_t *json_archs(const struct check *c)
{
    json_t *archs = json_array();
    for (uint32_t a = 0; a < c->index.header.arch_count; a++)
        if (check_shows(c, a))
            json_array_append_new(
                archs,
                json_pack("{s:s, s:s, s:b, s:i, s:i, s:s}", "name", check_arch_name(c, a).text,
                          "assembler", index_assembler(&c->index, a), "spare",
                          c->index.archs[a].spare, "sm", c->index.archs[a].sm, "shared_limit_bytes",
                          (int)c->index.archs[a].shared_limit, "lp",
                          c->index.archs[a].lp_is_f16 ? "float16" : "bfloat16"));
    return archs;
}

static json_t *json_problems(const struct report *r)
{
    json_t *problems = json_array();
    for (uint32_t i = 0; i < r->count; i++)
        json_array_append_new(problems,
                              json_pack("{s:s, s:s, s:s}", "key", r->problems[i].key, "arch",
                                        r->problems[i].arch, "problem", r->problems[i].text));
    return problems;
}

static json_t *json_model(const struct check *c, const struct model_keys *m)
{
    json_t *keys = json_array();
    for (uint32_t i = 0; i < c->keys.count; i++)
        if (m->used[i])
            json_array_append_new(keys, json_string(c->keys.keys[i].key));
    return json_pack("{s:s, s:i, s:b, s:b, s:o}", "model_type", m->model_type, "head_dim",
                     m->head_dim, "qkv_bias", has(m, FEATURE_QKV_BIAS), "qk_norm",
                     has(m, FEATURE_QK_NORM), "keys", keys);
}

int print_json(const struct check *c, const struct model_keys *model)
{
    char assemblers[512] = "";
    json_t *keys = json_array();
    for (uint32_t i = 0; c->checked && i < c->keys.count; i++)
        json_array_append_new(keys, json_key(c, i));
    if (c->checked)
        name_assemblers(c, assemblers, sizeof(assemblers));
    json_t *root = json_pack(
        "{s:s, s:b, s:s?, s:i, s:i, s:i, s:i, s:I, s:I, s:i, s:I, s:o, s:o, s:o}", "binary",
        c->path, "ok", report_count(&c->report) == 0, "toolkit", c->checked ? assemblers : NULL,
        "asked", (int)c->asked, "present", (int)c->present, "excluded", (int)c->excluded,
        "with_spills", (int)c->spilled, "code_bytes", (json_int_t)c->code_bytes, "spare_bytes",
        (json_int_t)c->spare_bytes, "shaders", (int)c->shader_count, "shader_bytes",
        (json_int_t)c->shader_bytes, "archs", json_archs(c), "keys", keys, "problems",
        json_problems(&c->report));
    if (root && model)
        json_object_set_new(root, "model", json_model(c, model));
    char *text =
        json_dumps(root, JSON_INDENT(1)); /* jansson does not check all of its own writes */
    const int rc = text && puts(text) != EOF ? 0 : -1;
    free(text);
    json_decref(root);
    return rc;
}
