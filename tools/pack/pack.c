/* SPDX-License-Identifier: Apache-2.0
 *
 * pack: makes from one fatbin per key the index and the blobs that the binary embeds, and the manifest. It fixes the
 * order of both, and refuses code that blobcheck would refuse, and spills that no contract allows.
 */
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/plural.h"
#include "image/fileio.h"
#include "pack/codecheck.h"

enum { EXIT_REFUSED = 1, EXIT_USAGE = 2, BLOB_ALIGN = 64, PATH_BYTES = 4096 };

static const char usage[] =
    "usage: pack --keys FILE --archs FILE --spills FILE --fatbins DIR --logs DIR --out DIR\n"
    "            [--spares DIR --spare-logs DIR] [--manifest FILE]\n";

struct options {
    const char *keys, *archs, *spills, *fatbins, *logs, *spares, *spare_logs, *out, *manifest;
};

/* A container, and its contents for each arch. */
struct code {
    uint64_t off; /* offset in the blobs */
    struct span container;
    struct code_fact *facts; /* [arch_count] */
    uint32_t *spills;        /* [arch_count] */
};

struct packed { /* one key */
    uint64_t hash;
    struct code code, spare;
    uint32_t records, first_param;
};

struct hashed {
    uint64_t hash;
    uint32_t key; /* its index in keys */
};

struct pack {
    struct options options;
    struct key_table keys;
    struct nji_arch archs[MAX_ARCHS];
    uint32_t arch_count;
    struct span spills;     /* text of the file of allowed spills: key, arch or -, bytes */
    struct packed *packed;  /* [keys.count] */
    struct hashed *by_hash; /* keys sorted by hash */
    uint64_t blobs_bytes;
    char assemblers[MAX_ARCHS][40]; /* "ptxas 13.0.88" */
    struct report report;
};

struct path {
    char text[PATH_BYTES];
};

static struct path path_of(const char *dir, const char *name, const char *suffix)
{
    struct path p;
    snprintf(p.text, sizeof(p.text), "%s/%s%s", dir, name, suffix);
    return p;
}

/* ---- spills ---- */

/* Return the spill bytes that a contract allows for the pair: those of the largest line that names the key and this
 * arch or every arch. */
static uint32_t excused_bytes(const struct pack *p, const char *key, const char *arch)
{
    uint32_t most = 0;
    for (const char *line = (const char *)p->spills.data; *line;) {
        char line_key[64], line_arch[16];
        unsigned bytes;
        if (sscanf(line, "%63[^\t]\t%15[^\t]\t%u", line_key, line_arch, &bytes) == 3 &&
            !strcmp(line_key, key) && (!strcmp(line_arch, "-") || !strcmp(line_arch, arch)) &&
            bytes > most)
            most = bytes;
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return most;
}

/* Read the spill and stack bytes of a ptxas -v log, the largest of all functions. Return 0, or -1 with a sentence. */
static int read_log(const char *path, const char *entry, const char *arch, uint32_t *spill,
                    uint32_t *stack, char why[WHY_BYTES])
{
    char title[128];
    struct span log;
    int found = 0;
    *spill = *stack = 0;
    if (file_read(path, &log, why))
        return -1;
    snprintf(title, sizeof(title), "entry function '%s' for '%s'", entry, arch);
    bool ours = strstr((const char *)log.data, title) != NULL;
    for (const char *line = (const char *)log.data; *line;) {
        unsigned frame, stores, loads;
        if (sscanf(line, " %u bytes stack frame, %u bytes spill stores, %u bytes spill loads",
                   &frame, &stores, &loads) == 3) {
            uint32_t most = stores > loads ? stores : loads;
            *spill = most > *spill ? most : *spill;
            *stack = frame > *stack ? frame : *stack;
            found++;
        }
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    file_free(&log);
    if (!ours || !found)
        return fail(why, "%s is not what ptxas -v prints for this kernel", path);
    return 0;
}

/* Read the logs beside the cubins. Spare code may spill, since no timing depends on it. */
static void check_spills(struct pack *p, const struct key *k, const char *logs, const char *name,
                         struct code *out)
{
    char why[WHY_BYTES];
    for (uint32_t a = 0; a < p->arch_count; a++) {
        if (!out->facts[a].present)
            continue;
        struct arch_name arch = arch_name(p->archs[a].sm, (char)p->archs[a].suffix);
        char suffix[32];
        snprintf(suffix, sizeof(suffix), ".%s.log", arch.text);
        struct path log = path_of(logs, name, suffix);
        uint32_t stack;
        if (read_log(log.text, k->entry, arch.text, &out->spills[a], &stack, why)) {
            report_add(&p->report, k->key, arch.text, "%s", why);
            continue;
        }
        if (k->spare)
            continue;
        if (out->facts[a].stack_bytes > stack)
            stack = out->facts[a].stack_bytes;
        uint32_t most = out->spills[a] > stack ? out->spills[a] : stack;
        uint32_t excused = excused_bytes(p, k->key, arch.text);
        if (most > excused)
            report_add(&p->report, k->key, arch.text,
                       "%u bytes of stack, %u bytes spilled; the contract excuses %u (allow_spill)",
                       stack, out->spills[a], excused);
    }
}

/* ---- reading ---- */

/* Check that one release assembled all code of an arch. */
static void check_assembler(struct pack *p, const struct key *k, const struct code *out)
{
    for (uint32_t a = 0; a < p->arch_count; a++) {
        char *known = p->assemblers[a], assembler[sizeof(p->assemblers[a])];
        if (!out->facts[a].ptxas[0])
            continue;
        snprintf(assembler, sizeof(assembler), "ptxas %s", out->facts[a].ptxas);
        if (!known[0])
            memcpy(known, assembler, sizeof(assembler));
        if (strcmp(known, assembler) != 0)
            report_add(&p->report, k->key, arch_name(p->archs[a].sm, (char)p->archs[a].suffix).text,
                       "assembled by %s, other keys by %s: rebuild this arch", assembler, known);
    }
}

/* Read the container of key k from folder/name.fatbin, if an arch of this build has such code. */
static int read_code(struct pack *p, const struct key *k, const char *name, const char *folder,
                     const char *logs, struct code *out, char why[WHY_BYTES])
{
    bool wanted = false;
    out->facts = calloc(p->arch_count, sizeof(*out->facts));
    out->spills = calloc(p->arch_count, sizeof(*out->spills));
    if (!out->facts || !out->spills)
        return fail(why, "no memory for key %s", k->key);
    for (uint32_t a = 0; a < p->arch_count; a++)
        wanted = wanted || key_applies(k, &p->archs[a]);
    if (!wanted)
        return 0;
    if (!folder || !logs)
        return fail(why, "%s is wanted: say --spares and --spare-logs", k->key);
    if (file_read(path_of(folder, name, ".fatbin").text, &out->container, why))
        return -1;
    code_check(out->container, k, p->archs, p->arch_count, out->facts, &p->report);
    check_assembler(p, k, out);
    check_spills(p, k, logs, name, out);
    return 0;
}

static int read_key(struct pack *p, uint32_t i, char why[WHY_BYTES])
{
    const struct key *k = &p->keys.keys[i];
    struct packed *out = &p->packed[i];
    struct spare_key spare;
    key_of_spare(k, &spare);
    out->hash = XXH3_64bits(k->key, strlen(k->key));
    for (uint32_t a = 0; a < p->arch_count; a++)
        out->records += key_applies(k, &p->archs[a]);
    if (read_code(p, k, k->key, p->options.fatbins, p->options.logs, &out->code, why))
        return -1;
    return read_code(p, &spare.key, k->key, p->options.spares, p->options.spare_logs, &out->spare,
                     why);
}

/* Place a container that is not empty after those before it. */
static void place(struct pack *p, struct code *code)
{
    if (code->container.bytes == 0)
        return;
    code->off = (p->blobs_bytes + BLOB_ALIGN - 1) / BLOB_ALIGN * BLOB_ALIGN;
    p->blobs_bytes = code->off + code->container.bytes;
}

static int compare_hashes(const void *a, const void *b)
{
    const struct hashed *x = a, *y = b;
    return (x->hash > y->hash) - (x->hash < y->hash);
}

static void sort_by_hash(struct pack *p)
{
    for (uint32_t i = 0; i < p->keys.count; i++)
        p->by_hash[i] = (struct hashed){p->packed[i].hash, i};
    qsort(p->by_hash, p->keys.count, sizeof(*p->by_hash), compare_hashes);
    for (uint32_t i = 1; i < p->keys.count; i++)
        if (p->by_hash[i - 1].hash == p->by_hash[i].hash)
            report_add(&p->report, p->keys.keys[p->by_hash[i].key].key, "",
                       "has the same hash as %s: rename one",
                       p->keys.keys[p->by_hash[i - 1].key].key);
}

static int read_inputs(struct pack *p, char why[WHY_BYTES])
{
    struct span keys = {0}, archs = {0};
    int rc = -1;
    if (file_read(p->options.keys, &keys, why) || keys_parse(keys, &p->keys, why) ||
        file_read(p->options.archs, &archs, why) ||
        archs_parse(archs, p->archs, &p->arch_count, why) ||
        file_read(p->options.spills, &p->spills, why))
        goto done;
    p->packed = calloc(p->keys.count, sizeof(*p->packed));
    p->by_hash = calloc(p->keys.count, sizeof(*p->by_hash));
    if (!p->packed || !p->by_hash) {
        fail(why, "no memory for %u keys", p->keys.count);
        goto done;
    }
    uint32_t params = 0;
    for (uint32_t i = 0; i < p->keys.count; i++) {
        struct packed *k = &p->packed[i];
        if (read_key(p, i, why))
            goto done;
        k->first_param = params;
        params += p->keys.keys[i].param_count;
        place(p, &k->code);
    }
    for (uint32_t i = 0; i < p->keys.count; i++)
        place(p, &p->packed[i].spare);
    sort_by_hash(p);
    rc = 0;
done:
    file_free(&keys);
    file_free(&archs);
    return rc;
}

/* ---- writing ---- */

struct buffer {
    uint8_t *data;
    size_t bytes, used;
};

static uint32_t put(struct buffer *b, const void *data, size_t bytes)
{
    size_t at = b->used;
    memcpy(b->data + at, data, bytes);
    b->used += bytes;
    return (uint32_t)at;
}

static struct nji_header plan_index(const struct pack *p)
{
    struct nji_header h = {
        .magic = NJI_MAGIC,
        .version = NJI_VERSION,
        .entry_count = p->keys.count,
        .arch_count = p->arch_count,
        .param_count = p->keys.param_count,
        .blobs_bytes = p->blobs_bytes,
    };
    size_t strings = 0;
    for (uint32_t a = 0; a < p->arch_count; a++)
        strings += strlen(p->assemblers[a]) + 1;
    for (uint32_t i = 0; i < p->keys.count; i++) {
        h.record_count += p->packed[i].records;
        strings += strlen(p->keys.keys[i].key) + strlen(p->keys.keys[i].entry) + 2;
    }
    h.archs_off = sizeof(h);
    h.entries_off = h.archs_off + h.arch_count * (uint32_t)sizeof(struct nji_arch);
    h.records_off = h.entries_off + h.entry_count * (uint32_t)sizeof(struct nji_entry);
    h.params_off = h.records_off + h.record_count * (uint32_t)sizeof(struct nji_record);
    h.strings_off = h.params_off + h.param_count * (uint32_t)sizeof(struct nji_param);
    h.index_bytes = h.strings_off + (uint32_t)strings;
    return h;
}

static struct nji_entry make_entry(const struct key *k, const struct packed *p)
{
    return (struct nji_entry){
        .key_hash = p->hash,
        .blob_off = p->code.off,
        .blob_bytes = p->code.container.bytes,
        .blob_hash = XXH3_64bits(p->code.container.data, p->code.container.bytes),
        .spare_off = p->spare.off,
        .spare_bytes = p->spare.container.bytes,
        .spare_hash = p->spare.container.bytes
                          ? XXH3_64bits(p->spare.container.data, p->spare.container.bytes)
                          : 0,
        .threads = k->threads,
        .max_shared_bytes = k->max_shared_bytes,
        .record_count = p->records,
        .first_param = p->first_param,
        .param_count = k->param_count,
        .param_bytes = k->param_bytes,
        .min_sm = k->min_sm,
    };
}

static uint32_t put_records(struct buffer *b, const struct pack *p, const struct packed *k)
{
    uint32_t n = 0;
    for (uint32_t a = 0; a < p->arch_count; a++) {
        const struct code_fact *f = &k->code.facts[a];
        if (!f->present)
            continue;
        struct nji_record r = {
            .code_hash = f->hash,
            .code_bytes = f->code_bytes,
            .arch = (uint16_t)a,
            .registers = (uint16_t)f->registers,
            .static_shared_bytes = f->static_shared_bytes,
            .stack_bytes = f->stack_bytes,
            .spill_bytes = k->code.spills[a],
        };
        put(b, &r, sizeof(r));
        n++;
    }
    return n;
}

static int write_index(const struct pack *p, char why[WHY_BYTES])
{
    struct nji_header h = plan_index(p);
    uint8_t *data = calloc(1, h.index_bytes);
    if (!data)
        return fail(why, "no memory for an index of %u bytes", h.index_bytes);
    struct buffer entries = {.data = data + h.entries_off},
                  records = {.data = data + h.records_off};
    struct buffer strings = {.data = data + h.strings_off};
    uint32_t record_count = 0;
    memcpy(data + h.params_off, p->keys.params, p->keys.param_count * sizeof(*p->keys.params));
    for (uint32_t a = 0; a < p->arch_count; a++) {
        struct nji_arch arch = p->archs[a];
        arch.assembler_str = put(&strings, p->assemblers[a], strlen(p->assemblers[a]) + 1);
        memcpy(data + h.archs_off + a * sizeof(arch), &arch, sizeof(arch));
    }
    for (uint32_t i = 0; i < p->keys.count; i++) {
        const struct packed *packed = &p->packed[p->by_hash[i].key];
        const struct key *k = &p->keys.keys[p->by_hash[i].key];
        struct nji_entry e = make_entry(k, packed);
        e.key_str = put(&strings, k->key, strlen(k->key) + 1);
        e.entry_str = put(&strings, k->entry, strlen(k->entry) + 1);
        e.first_record = record_count;
        record_count += put_records(&records, p, packed);
        put(&entries, &e, sizeof(e));
    }
    memcpy(data, &h, sizeof(h));
    h.index_hash = XXH3_64bits(data, h.index_bytes);
    memcpy(data, &h, sizeof(h));
    int rc = file_write(path_of(p->options.out, "index.bin", "").text,
                        (struct span){data, h.index_bytes}, why);
    free(data);
    return rc;
}

static int write_blobs(const struct pack *p, char why[WHY_BYTES])
{
    uint8_t *data = calloc(1, p->blobs_bytes + 1);
    if (!data)
        return fail(why, "no memory for %llu bytes of blobs", (unsigned long long)p->blobs_bytes);
    for (uint32_t i = 0; i < p->keys.count; i++) {
        const struct code *const codes[] = {&p->packed[i].code, &p->packed[i].spare};
        for (size_t c = 0; c < sizeof(codes) / sizeof(*codes); c++)
            if (codes[c]->container.bytes)
                memcpy(data + codes[c]->off, codes[c]->container.data, codes[c]->container.bytes);
    }
    int rc = file_write(path_of(p->options.out, "blobs.bin", "").text,
                        (struct span){data, p->blobs_bytes}, why);
    free(data);
    return rc;
}

/* Write a line for each release: "# ptxas 13.0.88 sm_75 sm_89 sm_90a". */
static void put_assemblers(const struct pack *p, FILE *f)
{
    for (uint32_t i = 0; i < p->arch_count; i++) {
        uint32_t before = 0;
        while (strcmp(p->assemblers[before], p->assemblers[i]) != 0)
            before++;
        if (before < i || !p->assemblers[i][0]) /* no key has code for this arch */
            continue;
        fprintf(f, "# %s", p->assemblers[i]);
        for (uint32_t a = i; a < p->arch_count; a++)
            if (!strcmp(p->assemblers[a], p->assemblers[i]))
                fprintf(f, " %s", arch_name(p->archs[a].sm, (char)p->archs[a].suffix).text);
        fputc('\n', f);
    }
}

/* Write a line for each arch that has the code. */
static void put_code(const struct pack *p, FILE *f, const char *key, const struct code *code,
                     const char *level)
{
    for (uint32_t a = 0; a < p->arch_count; a++) {
        const struct code_fact *fact = &code->facts[a];
        if (fact->present)
            fprintf(f, "%s %s%s %u %u %u %u %u %016llx\n", key,
                    arch_name(p->archs[a].sm, (char)p->archs[a].suffix).text, level,
                    fact->registers, fact->static_shared_bytes, fact->stack_bytes, code->spills[a],
                    fact->code_bytes, (unsigned long long)fact->hash);
    }
}

static int write_manifest(const struct pack *p, char why[WHY_BYTES])
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    if (!f)
        return fail(why, "no memory for the manifest");
    put_assemblers(p, f);
    fputs("# key arch registers static_shared stack spill bytes xxh3\n", f);
    for (uint32_t i = 0; i < p->keys.count; i++) {
        put_code(p, f, p->keys.keys[i].key, &p->packed[i].code, "");
        put_code(p, f, p->keys.keys[i].key, &p->packed[i].spare, "-O1");
    }
    bool complete = !ferror(f);
    complete = !fclose(f) && complete;
    struct path standard = path_of(p->options.out, "MANIFEST", "");
    int rc = complete ? file_write(p->options.manifest ? p->options.manifest : standard.text,
                                   (struct span){(const uint8_t *)text, bytes}, why)
                      : fail(why, "no memory for the manifest");
    free(text);
    return rc;
}

static void code_free(struct code *c)
{
    file_free(&c->container);
    free(c->facts);
    free(c->spills);
}

static void pack_free(struct pack *p)
{
    for (uint32_t i = 0; p->packed && i < p->keys.count; i++) {
        code_free(&p->packed[i].code);
        code_free(&p->packed[i].spare);
    }
    free(p->packed);
    free(p->by_hash);
    file_free(&p->spills);
    keys_free(&p->keys);
    report_free(&p->report);
}

static bool parse_options(int argc, char **argv, struct options *o)
{
    const struct {
        const char *name;
        const char **value;
        bool required;
    } known[] = {
        {"--keys", &o->keys, true},          {"--archs", &o->archs, true},
        {"--spills", &o->spills, true},      {"--fatbins", &o->fatbins, true},
        {"--logs", &o->logs, true},          {"--out", &o->out, true},
        {"--spares", &o->spares, false},     {"--spare-logs", &o->spare_logs, false},
        {"--manifest", &o->manifest, false},
    };
    const size_t count = sizeof(known) / sizeof(*known);
    for (int i = 1; i < argc; i += 2) {
        size_t n = 0;
        while (n < count && strcmp(argv[i], known[n].name) != 0)
            n++;
        if (n == count || i + 1 == argc)
            return false;
        *known[n].value = argv[i + 1];
    }
    for (size_t n = 0; n < count; n++)
        if (known[n].required && !*known[n].value)
            return false;
    return true;
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
    report_print(&p.report, stderr, "pack");
    status = EXIT_REFUSED;
    if (report_count(&p.report)) {
        snprintf(why, sizeof(why), "%u problem%s; nothing is written", report_count(&p.report),
                 plural(report_count(&p.report)));
        goto done;
    }
    if (write_blobs(&p, why) || write_index(&p, why) || write_manifest(&p, why))
        goto done;
    status = EXIT_SUCCESS;
done:
    if (status)
        fprintf(stderr, "pack: %s\n", why);
    pack_free(&p);
    return status;
}
