/* SPDX-License-Identifier: Apache-2.0
 *
 * blobcheck: proves, on any machine and without CUDA, that a binary holds the machine code that its launchers ask for,
 * no other code, and no trace of a compiler that could make code. It reads the sections that index.h describes, and
 * takes nothing from them that it can compute. It finds accidents: about a binary that was made to deceive it, it
 * proves nothing.
 *
 * Exit status: 0 all checks pass; 1 one does not, with one line each on stderr; 2 usage, or not a nojit binary.
 */
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "check/blobcheck.h"
#include "image/elfbin.h"
#include "image/fileio.h"

enum { EXIT_PROBLEMS = 1, EXIT_USAGE = 2, SECTION_ALIGN = 64 };

static const char usage[] =
    "usage: blobcheck [BINARY] [--arch ARCH] [--model MODEL] [--json] [--quiet]\n"
    "Checks the kernels in BINARY (default build/nojit). Needs neither GPU nor CUDA.\n"
    "  --arch sm_90   this arch only\n"
    "  --model MODEL  also list the keys that a model uses: a folder (reads its config.json) or a "
    "GGUF file\n"
    "  --json         everything, for machines\n"
    "  --quiet        problems only\n";

struct options {
    const char *binary, *arch, *model;
    bool json, quiet, help;
};

/* ---- the file ---- */

/* Check that the loader maps exactly the bytes that are checked: one read-only segment must hold the section. */
static void check_mapping(const struct elf *e, const struct elf_section *s, struct report *r)
{
    uint32_t maps = 0;
    for (uint32_t i = 0; i < e->segment_count; i++) {
        struct elf_segment g = elf_segment(e, i);
        if (g.type != ELF_SEGMENT_LOAD || s->address < g.address ||
            s->address - g.address >= g.file_bytes)
            continue;
        maps++;
        if (s->bytes > g.file_bytes - (s->address - g.address) ||
            s->off != g.off + (s->address - g.address))
            report_add(r, "", "", "section %s is not what the loader maps at its address", s->name);
        if (g.flags & 2)
            report_add(r, "", "", "section %s lies in a writable segment", s->name);
    }
    if (maps != 1)
        report_add(r, "", "", "section %s lies in %u segments, not 1", s->name, maps);
    if (s->address % SECTION_ALIGN != 0)
        report_add(r, "", "", "section %s is not aligned to %d bytes", s->name, SECTION_ALIGN);
    if (!(s->flags & ELF_FLAG_ALLOC) || s->flags & (ELF_FLAG_WRITE | ELF_FLAG_EXEC))
        report_add(r, "", "", "section %s is not read-only data", s->name);
}

/* Report anything outside of our section that a CUDA driver could load. */
static void check_strays(struct span part, struct report *r)
{
    static const uint8_t fatbin[] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0};
    static const uint8_t elf[] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
    static const uint8_t tile_ir[] = "\177TileIR";               /* with the 0 after it */
    static const uint8_t lto_ir[] = {0xed, 0x43, 0x4e, 0x7f, 1}; /* as `nvcc -ltoir` writes it */
    enum { MACHINE_OFF = 18, MACHINE_CUDA = 190 };
    if (span_find(part, fatbin, sizeof(fatbin), 0) < part.bytes)
        report_add(r, "", "", "a fatbin lies outside of .nojit.blobs");
    if (span_find(part, PTX_TARGET, strlen(PTX_TARGET), 0) < part.bytes)
        report_add(r, "", "", "PTX text lies outside of .nojit.blobs");
    if (span_find(part, tile_ir, sizeof(tile_ir), 0) < part.bytes)
        report_add(r, "", "", "Tile IR lies outside of .nojit.blobs");
    if (span_find(part, lto_ir, sizeof(lto_ir), 0) < part.bytes)
        report_add(r, "", "", "LTO-IR lies outside of .nojit.blobs");
    for (size_t at = 0; (at = span_find(part, elf, sizeof(elf), at)) < part.bytes; at++) {
        if (span_u16(part, at + MACHINE_OFF) != MACHINE_CUDA)
            continue;
        report_add(r, "", "", "a cubin lies outside of .nojit.blobs");
        return;
    }
}

/* Traces of compilers in a program that is linked with them or opens them: their texts, which stay in a stripped
 * binary, and names. */
static const struct {
    const char *text, *compiler;
} jit_marks[] = {
    /* the platform that it prints: "x86 64bit (...)" */
    {"bit (little endian + ", "sljit, the JIT of PCRE2"},
    {"sljit_", "sljit, the JIT of PCRE2"},
    {"pcre2_jit_compile", "the JIT of PCRE2"},
    {"LuaJIT ", "LuaJIT"},
    {"luaJIT_", "LuaJIT"},
    {"5Xbyak", "Xbyak"}, /* names of its types */
    {"onednn_verbose", "oneDNN"},
    {"LLVM ERROR: ", "LLVM"},
    {"Cuda compilation tools, release ", "NVRTC, nvJitLink or nvPTXCompiler"},
    {"nvrtcCompileProgram", "NVRTC"},
    {"nvJitLinkCreate", "nvJitLink"},
    {"nvPTXCompilerCreate", "nvPTXCompiler"},
    {"gcc_jit_context_", "libgccjit"},
    {"libpcre2-8.so", "PCRE2, to be opened"},
    {"libluajit-", "LuaJIT, to be opened"},
    {"libLLVM", "LLVM, to be opened"},
    {"libnvrtc.so", "NVRTC, to be opened"},
    {"libnvJitLink.so", "nvJitLink, to be opened"},
    {"libnvidia-ptxjitcompiler.so", "the driver's JIT, to be opened"},
    {"libgccjit.so", "libgccjit, to be opened"},
};

/* Report compilers of host code as well as of PTX. */
static void check_jit(struct span part, struct report *r)
{
    for (size_t i = 0; i < sizeof(jit_marks) / sizeof(*jit_marks); i++)
        if (span_find(part, jit_marks[i].text, strlen(jit_marks[i].text), 0) < part.bytes)
            report_add(r, "", "", "a JIT compiler: '%s' is a mark of %s", jit_marks[i].text,
                       jit_marks[i].compiler);
}

static void check_section_names(const struct elf *e, struct report *r)
{
    static const char *const foreign[] = {".nv_", ".nvFat", "__nv_", ".nv."};
    for (uint32_t i = 1; i < e->section_count; i++) {
        struct elf_section s = elf_section(e, i);
        for (size_t n = 0; n < sizeof(foreign) / sizeof(*foreign); n++)
            if (!strncmp(s.name, foreign[n], strlen(foreign[n])))
                report_add(r, "", "", "section %.100s holds CUDA code of others", s.name);
    }
}

/* Find the sections of shaders; it is a fault if only one of them is there. */
static void find_shaders(const struct elf *e, struct check *c)
{
    struct elf_section index = {0}, modules = {0};
    const uint32_t indexes = elf_find(e, ".nojit.shader_index", &index);
    const uint32_t found = elf_find(e, ".nojit.shaders", &modules);
    if (indexes != found || found > 1) {
        report_add(&c->report, "", "", "%u sections .nojit.shader_index, %u .nojit.shaders",
                   indexes, found);
        return;
    }
    if (!found)
        return;
    check_mapping(e, &index, &c->report);
    check_mapping(e, &modules, &c->report);
    c->parts.shader_index = index.data;
    c->parts.shaders = modules.data;
}

/* Find the three sections. Return 0, or -1 with a sentence if there are none. */
static int find_parts(struct span file, struct check *c, char why[WHY_BYTES])
{
    struct elf e;
    const struct {
        const char *name;
        struct span *part;
    } wanted[] = {{".nojit.index", &c->parts.index},
                  {".nojit.blobs", &c->parts.blobs},
                  {".nojit.keys", &c->parts.keys}};
    uint32_t found = 0;
    if (elf_open(file, &e, why))
        return -1;
    if (e.type != ELF_TYPE_EXEC && e.type != ELF_TYPE_DYN)
        return fail(why, "is an object file, not a program");
    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
        struct elf_section s = {0};
        uint32_t n = elf_find(&e, wanted[i].name, &s);
        found += n;
        if (n != 1) {
            report_add(&c->report, "", "", "%u sections %s, not 1", n, wanted[i].name);
            continue;
        }
        check_mapping(&e, &s, &c->report);
        *wanted[i].part = s.data;
        if (wanted[i].part == &c->parts.blobs)
            c->parts.blobs_off = s.off;
    }
    if (!found)
        return fail(why, "holds no kernels: it has no section .nojit.index");
    find_shaders(&e, c);
    uint64_t end = c->parts.blobs_off + c->parts.blobs.bytes;
    check_section_names(&e, &c->report);
    const struct span outside[] = {span_part(file, 0, c->parts.blobs_off),
                                   span_part(file, end, file.bytes - end)};
    for (int i = 0; i < 2; i++) {
        check_strays(outside[i], &c->report);
        check_jit(outside[i], &c->report);
    }
    return 0;
}

/* ---- keys ---- */

/* Compare the records of an entry with the cubins. */
static void check_records(struct check *c, struct checked_key *k)
{
    const struct nji_header *h = &c->index.header;
    const struct nji_entry *e = k->entry;
    uint32_t next = 0;
    if (e->first_record > h->record_count || e->record_count > h->record_count - e->first_record) {
        report_add(&c->report, k->key->key, "", "its records lie outside of the index");
        return;
    }
    for (uint32_t a = 0; a < h->arch_count; a++) {
        const struct nji_record *r = &c->index.records[e->first_record + next];
        const struct code_fact *f = &k->facts[a];
        struct arch_name arch = check_arch_name(c, a);
        bool recorded = next < e->record_count && r->arch == a;
        if (recorded != key_applies(k->key, &c->index.archs[a]))
            report_add(&c->report, k->key->key, arch.text,
                       recorded ? "recorded in the index, but nobody asks for it"
                                : "missing in the index");
        if (!recorded)
            continue;
        next++;
        k->spills[a] = r->spill_bytes;
        if (f->present && r->code_hash != f->hash)
            report_add(&c->report, k->key->key, arch.text,
                       "the hash of the code is not the recorded one");
        if (f->present &&
            (r->registers != f->registers || r->static_shared_bytes != f->static_shared_bytes ||
             r->stack_bytes != f->stack_bytes || r->code_bytes != f->code_bytes || r->reserved))
            report_add(&c->report, k->key->key, arch.text,
                       "registers, shared memory, stack or size are not the recorded ones");
    }
    if (next != e->record_count)
        report_add(&c->report, k->key->key, "", "its records in the index are not in order");
}

/* Compare the assembler that each cubin records with that of the index. */
static void check_assembler(struct check *c, const struct key *k, const struct code_fact *facts)
{
    for (uint32_t a = 0; a < c->index.header.arch_count; a++) {
        char assembler[40];
        if (!facts[a].ptxas[0])
            continue;
        snprintf(assembler, sizeof(assembler), "ptxas %s", facts[a].ptxas);
        if (strcmp(assembler, index_assembler(&c->index, a)) != 0)
            report_add(&c->report, k->key, check_arch_name(c, a).text,
                       "assembled by %s, the index says %.40s", assembler,
                       index_assembler(&c->index, a));
    }
}

/* Check the container of a key, of some bytes at an offset of the blobs. */
static void check_code(struct check *c, const struct key *k, uint64_t off, uint64_t bytes,
                       uint64_t hash, struct code_fact *facts)
{
    if (bytes == 0) {
        code_check_absent(k, c->index.archs, c->index.header.arch_count, &c->report);
    } else if (!span_has(c->parts.blobs, off, bytes)) {
        report_add(&c->report, k->key, "", "its container reaches past the end of the blobs");
    } else if (bytes > c->unread_bytes) {
        report_add(&c->report, k->key, "",
                   "the containers of all keys are together larger than the blobs");
    } else {
        c->unread_bytes -= bytes;
        const struct span container = span_part(c->parts.blobs, off, bytes);
        if (XXH3_64bits(container.data, container.bytes) != hash)
            report_add(&c->report, k->key, "", "the hash of its container is not the recorded one");
        code_check(container, k, c->index.archs, c->index.header.arch_count, facts, &c->report);
    }
    check_assembler(c, k, facts);
}

static void check_spare(struct check *c, struct checked_key *k)
{
    const struct nji_entry *e = k->entry;
    struct spare_key spare;
    key_of_spare(k->key, &spare);
    check_code(c, &spare.key, e->spare_off, e->spare_bytes, e->spare_hash, k->spares);
    if (e->spare_bytes == 0 && (e->spare_off || e->spare_hash))
        report_add(&c->report, spare.name, "", "the index gives a place and no bytes");
}

static void check_key(struct check *c, struct checked_key *k)
{
    const struct nji_entry *e = k->entry;
    if (!e) {
        report_add(&c->report, k->key->key, "", "missing: not in the index");
        return;
    }
    index_check_entry(&c->index, e, k->key, &c->report);
    check_code(c, k->key, e->blob_off, e->blob_bytes, e->blob_hash, k->facts);
    check_records(c, k);
    check_spare(c, k);
}

/* A container in the blobs, and its key. */
struct place {
    uint64_t off, bytes;
    const char *key;
};

static int compare_offsets(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    return (x->off > y->off) - (x->off < y->off);
}

/* Check that every byte of the blobs belongs to one container or is zero padding before the next. */
static int check_coverage(struct check *c, char why[WHY_BYTES])
{
    const uint32_t entries = c->index.header.entry_count;
    struct place *places = calloc(2UL * entries + 1, sizeof(*places));
    uint64_t end = 0;
    size_t count = 0;
    if (!places)
        return fail(why, "no memory for %u entries", entries);
    for (uint32_t i = 0; i < entries; i++) {
        const struct nji_entry *e = &c->index.entries[i];
        const char *name = index_string(&c->index, e->key_str), *key = name ? name : "?";
        if (e->blob_bytes)
            places[count++] = (struct place){e->blob_off, e->blob_bytes, key};
        if (e->spare_bytes)
            places[count++] = (struct place){e->spare_off, e->spare_bytes, key};
    }
    qsort(places, count, sizeof(*places), compare_offsets);
    for (size_t i = 0; i < count; i++) {
        const struct place *p = &places[i];
        const uint64_t padding = (SECTION_ALIGN - end % SECTION_ALIGN) % SECTION_ALIGN;
        if (p->off < end)
            report_add(&c->report, p->key, "", "its container overlaps another");
        else if (p->off - end != padding)
            report_add(&c->report, p->key, "", "%llu bytes before its container belong to no key",
                       (unsigned long long)(p->off - end));
        else if (!span_all_zero(span_part(c->parts.blobs, end, padding)))
            report_add(&c->report, p->key, "", "the padding before its container is not zero");
        end = p->off + p->bytes;
    }
    free(places);
    if (end != c->parts.blobs.bytes || c->index.header.blobs_bytes != c->parts.blobs.bytes)
        report_add(&c->report, "", "",
                   "containers end at %llu, the index says %llu, the section has %zu bytes",
                   (unsigned long long)end, (unsigned long long)c->index.header.blobs_bytes,
                   c->parts.blobs.bytes);
    return 0;
}

static void check_unasked(struct check *c)
{
    for (uint32_t i = 0; i < c->index.header.entry_count; i++) {
        const char *name = index_string(&c->index, c->index.entries[i].key_str);
        if (name && !keys_find(&c->keys, name))
            report_add(&c->report, name, "", "in the index, but no launcher asks for it");
    }
}

static int check_keys(struct check *c, char why[WHY_BYTES])
{
    uint32_t archs = c->index.header.arch_count;
    c->unread_bytes = c->parts.blobs.bytes;
    c->checked = calloc(c->keys.count, sizeof(*c->checked));
    if (!c->checked)
        return fail(why, "no memory for %u keys", c->keys.count);
    for (uint32_t i = 0; i < c->keys.count; i++) {
        struct checked_key *k = &c->checked[i];
        k->key = &c->keys.keys[i];
        k->entry = index_find(&c->index, k->key->key);
        k->facts = calloc(archs, sizeof(*k->facts));
        k->spares = calloc(archs, sizeof(*k->spares));
        k->spills = calloc(archs, sizeof(*k->spills));
        if (!k->facts || !k->spares || !k->spills)
            return fail(why, "no memory for key %s", k->key->key);
        check_key(c, k);
    }
    check_unasked(c);
    return check_coverage(c, why);
}

/* ---- counting, options ---- */

static void count_pairs(struct check *c)
{
    for (uint32_t i = 0; i < c->keys.count; i++) {
        const struct checked_key *k = &c->checked[i];
        c->spare_bytes += k->entry ? k->entry->spare_bytes : 0;
        for (uint32_t a = 0; a < c->index.header.arch_count; a++) {
            if (!check_shows(c, a))
                continue;
            bool applies = key_applies(k->key, &c->index.archs[a]);
            c->asked += applies;
            c->excluded += !applies;
            c->present += applies && k->entry && k->facts[a].present;
            c->spilled += k->spills[a] != 0;
            c->code_bytes += k->facts[a].code_bytes;
        }
    }
}

/* Count problems; with --arch, not those of other archs. */
static void filter_arch(struct check *c)
{
    bool embedded = false;
    char archs[160] = "";
    size_t used = 0;
    uint32_t kept = 0;
    if (!c->only_arch)
        return;
    for (uint32_t a = 0; a < c->index.header.arch_count; a++) {
        embedded = embedded || check_shows(c, a);
        if (used < sizeof(archs))
            used += (size_t)snprintf(archs + used, sizeof(archs) - used, " %s",
                                     check_arch_name(c, a).text);
    }
    for (uint32_t i = 0; i < c->report.count; i++) {
        const struct problem *p = &c->report.problems[i];
        if (!p->arch[0] || !strcmp(p->arch, c->only_arch))
            c->report.problems[kept++] = *p;
    }
    c->report.count = kept;
    if (!embedded)
        report_add(&c->report, "", c->only_arch,
                   "the binary holds no code for this arch, but for%s", archs);
}

/* Check all that can be read; problems are in the report. Return 0, or -1 with a sentence. */
static int check_binary(struct check *c, char why[WHY_BYTES])
{
    char reason[WHY_BYTES];
    if (keys_parse(c->parts.keys, &c->keys, reason) ||
        index_read(c->parts.index, "ptxas ", &c->index, &c->report, reason)) {
        report_add(&c->report, "", "", "%s", reason);
        index_free(&c->index);
        return 0;
    }
    if (check_keys(c, why))
        return -1;
    check_shaders(c);
    count_pairs(c);
    filter_arch(c);
    return 0;
}

/* Parse the options. Return 0, or -1 with a sentence. */
static int parse_options(int argc, char **argv, struct options *o, char why[WHY_BYTES])
{
    for (int i = 1; i < argc; i++) {
        const char **value = !strcmp(argv[i], "--arch")    ? &o->arch
                             : !strcmp(argv[i], "--model") ? &o->model
                                                           : NULL;
        if (value && i + 1 == argc)
            return fail(why, "%s needs a value", argv[i]);
        if (value)
            *value = argv[++i];
        else if (!strcmp(argv[i], "--json"))
            o->json = true;
        else if (!strcmp(argv[i], "--quiet"))
            o->quiet = true;
        else if (!strcmp(argv[i], "--help"))
            o->help = true;
        else if (argv[i][0] == '-')
            return fail(why, "unknown option %.100s; see blobcheck --help", argv[i]);
        else if (o->binary)
            return fail(why, "unexpected argument %.100s: one binary is checked at a time",
                        argv[i]);
        else
            o->binary = argv[i];
    }
    return 0;
}

static void check_free(struct check *c)
{
    for (uint32_t i = 0; c->checked && i < c->keys.count; i++) {
        free(c->checked[i].facts);
        free(c->checked[i].spares);
        free(c->checked[i].spills);
    }
    free(c->checked);
    index_free(&c->index);
    index_free(&c->shaders);
    keys_free(&c->keys);
    report_free(&c->report);
}

static int run_checks(struct check *c, const struct options *o, char why[WHY_BYTES])
{
    struct model_keys model = {0};
    int status = EXIT_USAGE;
    if (check_binary(c, why))
        return EXIT_USAGE;
    bool readable = c->checked != NULL;
    if (o->model && readable && model_keys_read(o->model, &c->keys, &model, &c->report, why))
        goto done;
    if (readable && !o->quiet && !o->json) {
        print_table(c);
        if (o->model)
            print_model(c, &model);
        print_summary(c);
    }
    if (o->json && print_json(c, o->model && readable ? &model : NULL)) {
        fail(why, "cannot write JSON");
        goto done;
    }
    report_print(&c->report, stderr, "blobcheck");
    status = report_count(&c->report) ? EXIT_PROBLEMS : EXIT_SUCCESS;
done:
    model_keys_free(&model);
    return status;
}

int main(int argc, char **argv)
{
    struct options o = {0};
    struct span file = {0};
    char why[WHY_BYTES];
    if (parse_options(argc, argv, &o, why)) {
        fprintf(stderr, "blobcheck: %s\n", why);
        return EXIT_USAGE;
    }
    if (o.help) {
        fputs(usage, stdout);
        return EXIT_SUCCESS;
    }
    struct check c = {.path = o.binary ? o.binary : "build/nojit", .only_arch = o.arch};
    int status = EXIT_USAGE;
    if (file_read(c.path, &file, why)) {
        fprintf(stderr, "blobcheck: %s\n", why);
    } else if (find_parts(file, &c, why)) {
        fprintf(stderr, "blobcheck: %s %s\n", c.path, why);
    } else {
        status = run_checks(&c, &o, why);
        if (status == EXIT_USAGE)
            fprintf(stderr, "blobcheck: %s\n", why);
    }
    check_free(&c);
    file_free(&file);
    return status;
}
