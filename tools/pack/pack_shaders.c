/* SPDX-License-Identifier: Apache-2.0
 *
 * pack-shaders: makes from one SPIR-V module per key the index and the modules that the binary embeds for the Vulkan
 * backend, in the format of those for CUDA (index.h), with one arch of SM 0. It refuses what blobcheck would refuse.
 */
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/plural.h"
#include "image/fileio.h"
#include "pack/shadercheck.h"

enum { EXIT_REFUSED = 1, EXIT_USAGE = 2, BLOB_ALIGN = 64, PATH_BYTES = 4096 };

static const char usage[] =
    "usage: pack-shaders --keys FILE --shaders DIR --compiler NAME --out DIR\n";

struct options {
    const char *keys, *shaders, *compiler, *out;
};

struct packed { /* one key */
    const struct key *key;
    struct span module;
    uint64_t hash, blob_off;
    uint32_t shared_bytes, first_param;
};

struct pack {
    struct options options;
    struct key_table keys;
    struct packed *packed; /* sorted by key at first, then by hash */
    uint64_t blobs_bytes;
    struct report report;
};

static int write_to(const char *dir, const char *name, struct span content, char why[WHY_BYTES])
{
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return file_write(path, content, why);
}

static int read_inputs(struct pack *p, char why[WHY_BYTES])
{
    struct span text = {0};
    char path[PATH_BYTES];
    uint32_t params = 0;
    int rc = file_read(p->options.keys, &text, why) || keys_parse(text, &p->keys, why) ? -1 : 0;
    file_free(&text);
    p->packed = rc != 0 ? NULL : calloc(p->keys.count, sizeof(*p->packed));
    if (!p->packed)
        return rc != 0 ? rc : fail(why, "no memory for %u keys", p->keys.count);
    for (uint32_t i = 0; i < p->keys.count; i++) {
        struct packed *k = &p->packed[i];
        k->key = &p->keys.keys[i];
        snprintf(path, sizeof(path), "%s/%s.spv", p->options.shaders, k->key->key);
        if (file_read(path, &k->module, why))
            return -1;
        shader_check(k->module, k->key, &k->shared_bytes, &p->report);
        k->hash = XXH3_64bits(k->key->key, strlen(k->key->key));
        k->first_param = params;
        params += k->key->param_count;
        k->blob_off = (p->blobs_bytes + BLOB_ALIGN - 1) / BLOB_ALIGN * BLOB_ALIGN;
        p->blobs_bytes = k->blob_off + k->module.bytes;
    }
    return 0;
}

static int compare_hashes(const void *a, const void *b)
{
    const struct packed *x = a, *y = b;
    return (x->hash > y->hash) - (x->hash < y->hash);
}

static struct nji_header plan_index(const struct pack *p)
{
    struct nji_header h = {.magic = NJI_MAGIC,
                           .version = NJI_VERSION,
                           .entry_count = p->keys.count,
                           .arch_count = 1,
                           .record_count = p->keys.count,
                           .param_count = p->keys.param_count,
                           .blobs_bytes = p->blobs_bytes};
    size_t strings = strlen(p->options.compiler) + 1 + sizeof(SHADER_ENTRY);
    for (uint32_t i = 0; i < p->keys.count; i++)
        strings += strlen(p->keys.keys[i].key) + 1;
    h.archs_off = sizeof(h);
    h.entries_off = h.archs_off + (uint32_t)sizeof(struct nji_arch);
    h.records_off = h.entries_off + h.entry_count * (uint32_t)sizeof(struct nji_entry);
    h.params_off = h.records_off + h.record_count * (uint32_t)sizeof(struct nji_record);
    h.strings_off = h.params_off + h.param_count * (uint32_t)sizeof(struct nji_param);
    h.index_bytes = h.strings_off + (uint32_t)strings;
    return h;
}

static uint32_t put_string(uint8_t *strings, uint32_t *used, const char *s)
{
    const uint32_t at = *used;
    memcpy(strings + at, s, strlen(s) + 1);
    *used += (uint32_t)strlen(s) + 1;
    return at;
}

/* Write entry i and its one record. */
static void put_key(const struct pack *p, uint32_t i, uint8_t *data, const struct nji_header *h,
                    uint32_t entry_str, uint32_t *strings)
{
    const struct packed *k = &p->packed[i];
    const uint64_t hash = XXH3_64bits(k->module.data, k->module.bytes);
    const struct nji_entry e = {
        .key_hash = k->hash,
        .blob_off = k->blob_off,
        .blob_bytes = k->module.bytes,
        .blob_hash = hash,
        .key_str = put_string(data + h->strings_off, strings, k->key->key),
        .entry_str = entry_str,
        .threads = k->key->threads,
        .first_record = i,
        .record_count = 1,
        .first_param = k->first_param,
        .param_count = k->key->param_count,
        .param_bytes = k->key->param_bytes,
    };
    const struct nji_record r = {.code_hash = hash,
                                 .code_bytes = (uint32_t)k->module.bytes,
                                 .static_shared_bytes = k->shared_bytes};
    memcpy(data + h->entries_off + i * sizeof(e), &e, sizeof(e));
    memcpy(data + h->records_off + i * sizeof(r), &r, sizeof(r));
}

static int write_index(const struct pack *p, char why[WHY_BYTES])
{
    struct nji_header h = plan_index(p);
    uint8_t *data = calloc(1, h.index_bytes);
    uint32_t strings = 0;
    if (!data)
        return fail(why, "no memory for an index of %u bytes", h.index_bytes);
    memcpy(data + h.params_off, p->keys.params, p->keys.param_count * sizeof(*p->keys.params));
    const struct nji_arch arch = {
        .shared_limit = SHADER_SHARED_MAX,
        .assembler_str = put_string(data + h.strings_off, &strings, p->options.compiler),
    };
    memcpy(data + h.archs_off, &arch, sizeof(arch));
    const uint32_t entry_str = put_string(data + h.strings_off, &strings, SHADER_ENTRY);
    for (uint32_t i = 0; i < p->keys.count; i++)
        put_key(p, i, data, &h, entry_str, &strings);
    memcpy(data, &h, sizeof(h));
    h.index_hash = XXH3_64bits(data, h.index_bytes);
    memcpy(data, &h, sizeof(h));
    int rc = write_to(p->options.out, "shader_index.bin", (struct span){data, h.index_bytes}, why);
    free(data);
    return rc;
}

static int write_modules(const struct pack *p, char why[WHY_BYTES])
{
    uint8_t *data = calloc(1, p->blobs_bytes + 1);
    if (!data)
        return fail(why, "no memory for %llu bytes of shaders", (unsigned long long)p->blobs_bytes);
    for (uint32_t i = 0; i < p->keys.count; i++)
        memcpy(data + p->packed[i].blob_off, p->packed[i].module.data, p->packed[i].module.bytes);
    int rc = write_to(p->options.out, "shaders.bin", (struct span){data, p->blobs_bytes}, why);
    free(data);
    return rc;
}

static void pack_free(struct pack *p)
{
    for (uint32_t i = 0; p->packed && i < p->keys.count; i++)
        file_free(&p->packed[i].module);
    free(p->packed);
    keys_free(&p->keys);
    report_free(&p->report);
}

static bool parse_options(int argc, char **argv, struct options *o)
{
    const struct {
        const char *name;
        const char **value;
    } known[] = {{"--keys", &o->keys},
                 {"--shaders", &o->shaders},
                 {"--compiler", &o->compiler},
                 {"--out", &o->out}};
    const size_t count = sizeof(known) / sizeof(*known);
    for (int i = 1; i < argc; i += 2) {
        size_t n = 0;
        while (n < count && strcmp(argv[i], known[n].name) != 0)
            n++;
        if (n == count || i + 1 == argc)
            return false;
        *known[n].value = argv[i + 1];
    }
    return o->keys && o->shaders && o->compiler && o->out;
}

int main(int argc, char **argv)
{
    struct pack p = {0};
    char why[WHY_BYTES];
    int status = EXIT_USAGE;
    if (!parse_options(argc, argv, &p.options)) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    if (read_inputs(&p, why))
        goto done;
    report_print(&p.report, stderr, "pack-shaders");
    status = EXIT_REFUSED;
    if (report_count(&p.report)) {
        snprintf(why, sizeof(why), "%u problem%s; nothing is written", report_count(&p.report),
                 plural(report_count(&p.report)));
        goto done;
    }
    qsort(p.packed, p.keys.count, sizeof(*p.packed), compare_hashes);
    if (write_modules(&p, why) == 0 && write_index(&p, why) == 0)
        status = EXIT_SUCCESS;
done:
    if (status)
        fprintf(stderr, "pack-shaders: %s\n", why);
    pack_free(&p);
    return status;
}
