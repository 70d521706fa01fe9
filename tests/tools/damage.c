/* SPDX-License-Identifier: Apache-2.0
 *
 * damage: takes the kernels of two keys out of a binary, plants one named fault in them, makes
 * every hash fit again where the fault is meant to be deeper than a hash, and writes a small ELF
 * file with the result. `none` plants none.
 *
 *   damage NAME BINARY OUT KEY OTHER_KEY SM OTHER_SM [SEED or FILE]
 *
 * in-spare:NAME plants it in the container of spare code.
 *
 * Or leaves the binary as it is, but for the entry of a key, which loses its code:
 *
 *   damage entry-emptied BINARY OUT KEY
 */
#include <elf.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "damage_image.h"
#include "image/fatbin.h"
#include "image/fileio.h"

/* ---- faults in one cubin: what to find in it, and what to write where ---- */

static const struct patch {
    const char *name;
    const char *find;
    size_t find_bytes, at;
    const char *put;
    size_t put_bytes;
} patches[] = {
    {"cubin-machine", "\177ELF", 4, 18, "\076", 1},
    {"cubin-abi", "\177ELF", 4, 8, "\011", 1},
    {"virtual-sm", "\350\3\0\0NVIDIA Corp", 15, 18, "\113", 1},
    {"suffix-mark", "\2\11\0\0\2\2", 6, 2, "\1", 1},
    {"param-offset", "\4\27\14\0", 4, 10, "\0\4", 2},
    {"param-bytes", "\3\31", 2, 2, "\10\0", 2},
    {"launch-bound", "\4\5\14\0", 4, 4, "\40\0\0\0", 4},
    {"registers", "\4\57\10\0", 4, 8, "\377\377\0\0", 4},
    {"stack", "\4\22\10\0", 4, 8, "\100\0\0\0", 4},
    {"no-kernel", "\22\20", 2, 1, "\0", 1},
    {"undefined", ".nv.reservedSmem.", 17, 0, "x", 1},
    {"ptx-text", "Build cuda_", 11, 0, ".target sm_", 11},
};

static bool apply_patch(struct image *m, const char *name)
{
    for (size_t i = 0; i < sizeof(patches) / sizeof(*patches); i++) {
        const struct patch *p = &patches[i];
        if (strcmp(p->name, name) != 0)
            continue;
        struct place place = image_find(m->key, m->sm);
        struct span code = {m->key->container + place.payload, place.end - place.payload};
        size_t at = span_find(code, p->find, p->find_bytes, 0);
        if (at == code.bytes)
            die("the cubin does not hold what this fault changes");
        memcpy(m->key->container + place.payload + at + p->at, p->put, p->put_bytes);
        return true;
    }
    return false;
}

/* ---- faults in the structure, before it is written ---- */

static uint32_t arch_of(const struct image *m, uint32_t sm)
{
    uint32_t a = 0;
    while (a < m->arch_count && m->archs[a].sm != sm)
        a++;
    if (a == m->arch_count)
        die("the binary lacks that arch");
    return a;
}

static void none(struct image *m)
{
    (void)m;
}

/* A host of the other kind; for blobcheck no fault. */
static void other_host(struct image *m)
{
    m->machine = m->machine == EM_AARCH64 ? EM_X86_64 : EM_AARCH64;
}

static void record_removed(struct image *m)
{
    struct nji_entry *e = &m->key->e;
    uint32_t at = 0;
    while (m->key->records[at].arch != arch_of(m, m->sm))
        at++;
    memmove(&m->key->records[at], &m->key->records[at + 1],
            (e->record_count - at - 1) * sizeof(struct nji_record));
    e->record_count--;
}

static void code_removed(struct image *m)
{
    struct place p = image_find(m->key, m->sm);
    image_splice(m->key, p.header, p.end, (struct span){0});
}

/* A container of spare code that nothing is left of goes. */
static void spare_removed(struct image *m)
{
    enum { CONTAINER_HEADER = 16 };
    image_swap_spare(m->key);
    const struct place p = image_find(m->key, m->sm);
    if (p.end)
        image_splice(m->key, p.header, p.end, (struct span){0});
    if (m->key->bytes == CONTAINER_HEADER)
        m->key->bytes = 0;
    image_swap_spare(m->key);
}

static void arch_removed(struct image *m)
{
    code_removed(m);
    spare_removed(m);
    record_removed(m);
}

/* The launcher asks for the key on one arch alone, whose SM is its lowest. */
static void ask_for_one(struct image *m)
{
    const struct nji_arch *a = &m->archs[arch_of(m, m->sm)];
    const char *at = (const char *)m->keys.data, *end = at + m->keys.bytes;
    struct bytes keys = {allocate(m->keys.bytes + 16), 0};
    while (strncmp(at, m->key->key, strlen(m->key->key)) != 0 || at[strlen(m->key->key)] != '\t')
        at = strchr(at, '\n') + 1;
    for (int tabs = 0; tabs < 4; at++)
        tabs += *at == '\t';
    keys.bytes = (size_t)(at - (const char *)m->keys.data);
    memcpy(keys.data, m->keys.data, keys.bytes);
    keys.bytes += (size_t)snprintf((char *)keys.data + keys.bytes, 16, "sm_%u%.1s", a->sm,
                                   (const char[]){(char)a->suffix, 0});
    at = strchr(at, '\t');
    memcpy(keys.data + keys.bytes, at, (size_t)(end - at));
    keys.bytes += (size_t)(end - at);
    free(m->keys.data);
    m->keys = keys;
    m->key->e.min_sm = a->sm;
}

static void only_here(struct image *m)
{
    const uint32_t sm = m->sm;
    ask_for_one(m);
    for (uint32_t a = 0; a < m->arch_count; a++) {
        m->sm = m->archs[a].sm;
        if (m->sm != sm)
            arch_removed(m);
    }
    m->sm = sm;
}

static void only_lost(struct image *m)
{
    ask_for_one(m);
    arch_removed(m);
}

static void key_removed(struct image *m)
{
    free(m->key->container);
    free(m->key->spare.data);
    *m->key = *m->other;
    m->entry_count = 1;
}

static void key_twice(struct image *m)
{
    struct entry copy = *m->key;
    copy.container = allocate(copy.bytes);
    memcpy(copy.container, m->key->container, copy.bytes);
    copy.spare.data = allocate(copy.spare.bytes);
    memcpy(copy.spare.data, m->key->spare.data, copy.spare.bytes);
    size_t at = (size_t)(m->key - m->entries);
    memmove(&m->entries[at + 1], &m->entries[at], (m->entry_count - at) * sizeof(copy));
    m->entries[at] = copy;
    m->entry_count++;
}

static void key_order(struct image *m)
{
    struct entry first = m->entries[0];
    m->entries[0] = m->entries[1];
    m->entries[1] = first;
}

static void key_unasked(struct image *m)
{
    struct span keys = {m->keys.data, m->keys.bytes};
    size_t first = span_find(keys, "\n", 1, 0) + 1;
    bool drop_first = !strncmp((const char *)keys.data, m->key->key, strlen(m->key->key));
    if (drop_first)
        memmove(m->keys.data, m->keys.data + first, keys.bytes - first);
    m->keys.bytes = drop_first ? keys.bytes - first : first;
}

static void wrong_sm(struct image *m)
{
    struct place p = image_find(m->key, m->other_sm);
    uint8_t *code = allocate(p.end - p.payload);
    memcpy(code, m->key->container + p.payload, p.end - p.payload);
    image_replace_code(m->key, m->sm, (struct span){code, p.end - p.payload});
    free(code);
}

static void other_code(struct image *m)
{
    struct place p = image_find(m->other, m->sm);
    image_replace_code(m->key, m->sm,
                       (struct span){m->other->container + p.payload, p.end - p.payload});
}

/* The cubin of a file: real code for the right SM but another suffix. */
static void code_of_file(struct image *m)
{
    char why[WHY_BYTES];
    struct span file;
    if (!m->extra || file_read(m->extra, &file, why))
        die("needs a cubin");
    image_replace_code(m->key, m->sm, file);
    file_free(&file);
}

static void suffix_label(struct image *m)
{
    m->key->container[image_find(m->key, m->sm).header + 42] |= 0x10;
}

static void lz4_label(struct image *m)
{
    m->key->container[image_find(m->key, m->sm).header + 41] |= 0x20;
}

/* ptxas's note names the accelerated target instead of the plain one. */
static void suffix_note(struct image *m)
{
    char target[24];
    struct place p = image_find(m->key, m->sm);
    struct span code = {m->key->container + p.payload, p.end - p.payload};
    int bytes = snprintf(target, sizeof(target), "-arch sm_%u ", m->sm);
    size_t at = span_find(code, target, (size_t)bytes, 0);
    if (at == code.bytes)
        die("the cubin does not record its target");
    m->key->container[p.payload + at + (size_t)bytes - 1] = 'a';
}

static void label_unasked(struct image *m)
{
    m->key->container[image_find(m->key, m->sm).header + 28] = 86;
}

static void code_twice(struct image *m)
{
    struct place p = image_find(m->key, m->sm);
    uint8_t *copy = allocate(p.end - p.header);
    memcpy(copy, m->key->container + p.header, p.end - p.header);
    image_splice(m->key, p.header, p.header, (struct span){copy, p.end - p.header});
    free(copy);
}

/* As fatbinary 13.5.37 --compress-mode=none writes it, but for what stands behind the first 64 bytes of the header. */
static void entry_added(struct image *m, uint16_t kind, uint64_t flags, struct span code)
{
    uint8_t entry[64 + 64] = {(uint8_t)kind, 0, 1, 1, 64};
    if (code.bytes > sizeof(entry) - 64)
        die("the code is too long for an entry");
    entry[8] = (uint8_t)code.bytes;
    entry[28] = (uint8_t)m->sm;
    memcpy(entry + 40, &flags, sizeof(flags));
    memcpy(entry + 64, code.data, code.bytes);
    image_splice(m->key, m->key->bytes, m->key->bytes, (struct span){entry, 64 + code.bytes});
}
static void ptx_added(struct image *m)
{
    static const uint8_t code[48] = ".version 9.0\n.target sm_75\n.address_size 64\n";
    entry_added(m, FATBIN_PTX, 0x11, (struct span){code, sizeof(code)});
}
static void tile_ir_added(struct image *m)
{
    static const uint8_t code[16] = "\177TileIR\0\15\5";
    entry_added(m, FATBIN_TILE_IR, 0x11, (struct span){code, sizeof(code)});
}
static void lto_ir_added(struct image *m) /* with the flags of `nvcc code=lto_120` */
{
    static const uint8_t code[16] = "\355CN\177\1C\2\203\3\2\27";
    entry_added(m, FATBIN_NVVM, 0x18011, (struct span){code, sizeof(code)});
}

static void container_cut(struct image *m)
{
    m->key->bytes -= 64;
}
static void code_cut(struct image *m)
{
    m->key->bytes -= 64;
    image_fit(m->key);
}
static void assembler(struct image *m)
{
    char *name = m->assemblers[arch_of(m, m->sm)];
    name[strlen(name) - 1] ^= 1;
}
static void spare_unasked(struct image *m)
{
    m->archs[arch_of(m, m->sm)].spare = 0;
}
static void spare_exchanged(struct image *m)
{
    const struct bytes spare = m->key->spare;
    m->key->spare = m->other->spare;
    m->other->spare = spare;
}
/* The code that is launched, where spare code is expected. */
static void spare_level(struct image *m)
{
    const struct place p = image_find(m->key, m->sm);
    free(m->key->spare.data);
    m->key->spare = (struct bytes){allocate(p.end - p.header + 16), p.end - p.header + 16};
    memcpy(m->key->spare.data, m->key->container, 16);
    memcpy(m->key->spare.data + 16, m->key->container + p.header, p.end - p.header);
    image_swap_spare(m->key);
    image_fit(m->key);
    image_swap_spare(m->key);
}
static void min_sm(struct image *m)
{
    m->key->e.min_sm++;
}
static void index_threads(struct image *m)
{
    m->key->e.threads /= 2;
}
static void index_param(struct image *m)
{
    m->key->params[1].offset += 8;
}
static void index_entry(struct image *m)
{
    m->key->name[3] ^= 1;
}
static void index_registers(struct image *m)
{
    m->key->records[0].registers++;
}
static void index_reserved(struct image *m)
{
    m->key->e.reserved[1] = 1;
}
static void shared_limit(struct image *m)
{
    m->archs[arch_of(m, m->sm)].shared_limit = 8;
}
static void arch_order(struct image *m)
{
    m->archs[1].sm = m->archs[0].sm;
}
static void stray_section(struct image *m)
{
    m->extra_section = ".nv_fatbin";
}
static void segment_writable(struct image *m)
{
    m->segment_flags = PF_R | PF_W;
}
static void segment_elsewhere(struct image *m)
{
    m->segment_shift = 64;
}

static void stray_fatbin(struct image *m)
{
    m->overlay = (struct span){m->other->container, m->other->bytes};
}
static void stray_cubin(struct image *m)
{
    struct place p = image_find(m->other, m->sm);
    m->overlay = (struct span){m->other->container + p.payload, p.end - p.payload};
}
static void stray_ptx(struct image *m)
{
    static const char ptx[] = "\n.target sm_75\n";
    m->overlay = (struct span){(const uint8_t *)ptx, sizeof(ptx)};
}

/* Such as a program with a JIT compiler in it. */
static void stray_file(struct image *m)
{
    char why[WHY_BYTES];
    if (!m->extra || file_read(m->extra, &m->overlay, why))
        die("needs a file");
}

/* ---- faults in the bytes, after hashes were made ---- */

static void index_hash(struct image *m)
{
    m->index.data[offsetof(struct nji_header, index_hash)] ^= 1;
}
static void spare_byte(struct image *m)
{
    m->blobs.data[m->key->e.spare_off + 0x100] ^= 1;
}
static void index_cut(struct image *m)
{
    m->index.bytes -= 8;
}
static void index_magic(struct image *m)
{
    m->index.data[0] ^= 1;
}
static void blobs_cut(struct image *m)
{
    m->blobs.bytes -= 640;
}
static void blobs_tail(struct image *m)
{
    m->blobs.bytes++; /* allocate() left a zero there */
}
static void code_byte(struct image *m)
{
    m->blobs.data[m->key->e.blob_off + image_find(m->key, m->sm).payload + 0x300] ^= 1;
}
static void keys_cut(struct image *m)
{
    m->keys.bytes -= 5;
}
static void keys_zero(struct image *m)
{
    m->keys.data[3] = 0;
}

/* A last parameter of 4 bytes becomes one of 2. */
static void keys_param(struct image *m)
{
    m->keys.data[m->keys.bytes - 2] ^= '4' ^ '2';
}

static void padding(struct image *m)
{
    for (uint32_t i = 0; i < m->entry_count; i++) {
        uint64_t end = m->entries[i].e.blob_off + m->entries[i].bytes;
        if (end % 64 == 0 || end == m->blobs.bytes)
            continue;
        m->blobs.data[end] = 0xaa;
        return;
    }
    die("no container is followed by padding");
}

/* One bit anywhere in the three sections. */
static void flip(struct image *m)
{
    struct bytes *const parts[] = {&m->index, &m->blobs, &m->keys};
    uint64_t hash = XXH3_64bits(m->extra, m->extra ? strlen(m->extra) : 0);
    struct bytes *part = parts[hash % 3];
    size_t at = (size_t)(hash / 3 % part->bytes);
    part->data[at] ^= (uint8_t)(1 << (hash >> 56) % 8);
    printf("section %u byte %zu bit %u\n", (unsigned)(hash % 3), at, (unsigned)((hash >> 56) % 8));
}

/* One to eight bits of the code and the index, hashes made to fit: whatever a parser may meet. */
static void flip_deep(struct image *m)
{
    uint64_t state = XXH3_64bits(m->extra, m->extra ? strlen(m->extra) : 0);
    struct place p = image_find(m->key, m->sm);
    for (unsigned n = 1 + state % 8; n; n--) {
        state = XXH3_64bits(&state, sizeof(state));
        size_t header =
            state % 2 ? p.payload : p.header; /* half of them near the fatbin's headers */
        size_t span = state % 2 ? p.end - p.payload : p.payload - p.header + 64;
        if (state % 5 == 0)
            ((uint8_t *)&m->key->e)[state / 10 % sizeof(m->key->e)] ^= (uint8_t)(1 << state % 8);
        else
            m->key->container[header + state / 10 % span] ^= (uint8_t)(1 << (state >> 56) % 8);
    }
}

static const struct {
    const char *name;
    void (*before)(struct image *m); /* hashes are written */
    void (*after)(struct image *m);
} faults[] = {
    {"none", none, NULL},
    {"other-host", other_host, NULL},
    {"arch-removed", arch_removed, NULL},
    {"code-removed", code_removed, NULL},
    {"record-removed", record_removed, NULL},
    {"only-here", only_here, NULL},
    {"only-elsewhere", ask_for_one, NULL},
    {"only-lost", only_lost, NULL},
    {"key-removed", key_removed, NULL},
    {"key-twice", key_twice, NULL},
    {"key-order", key_order, NULL},
    {"key-unasked", key_unasked, NULL},
    {"wrong-sm", wrong_sm, NULL},
    {"other-code", other_code, NULL},
    {"code-of-file", code_of_file, NULL},
    {"suffix-label", suffix_label, NULL},
    {"suffix-note", suffix_note, NULL},
    {"lz4-label", lz4_label, NULL},
    {"label-unasked", label_unasked, NULL},
    {"code-twice", code_twice, NULL},
    {"ptx-added", ptx_added, NULL},
    {"tile-ir-added", tile_ir_added, NULL},
    {"lto-ir-added", lto_ir_added, NULL},
    {"container-cut", container_cut, NULL},
    {"code-cut", code_cut, NULL},
    {"assembler", assembler, NULL},
    {"spare-unasked", spare_unasked, NULL},
    {"spare-exchanged", spare_exchanged, NULL},
    {"spare-level", spare_level, NULL},
    {"min-sm", min_sm, NULL},
    {"index-threads", index_threads, NULL},
    {"index-param", index_param, NULL},
    {"index-entry", index_entry, NULL},
    {"index-registers", index_registers, NULL},
    {"index-reserved", index_reserved, NULL},
    {"shared-limit", shared_limit, NULL},
    {"arch-order", arch_order, NULL},
    {"stray-section", stray_section, NULL},
    {"stray-fatbin", stray_fatbin, NULL},
    {"stray-cubin", stray_cubin, NULL},
    {"stray-ptx", stray_ptx, NULL},
    {"stray-file", stray_file, NULL},
    {"segment-writable", segment_writable, NULL},
    {"segment-elsewhere", segment_elsewhere, NULL},
    {"flip-deep", flip_deep, NULL},
    {"index-hash", NULL, index_hash},
    {"index-cut", NULL, index_cut},
    {"spare-byte", NULL, spare_byte},
    {"index-magic", NULL, index_magic},
    {"blobs-cut", NULL, blobs_cut},
    {"blobs-tail", NULL, blobs_tail},
    {"code-byte", NULL, code_byte},
    {"keys-cut", NULL, keys_cut},
    {"keys-zero", NULL, keys_zero},
    {"keys-param", NULL, keys_param},
    {"padding", NULL, padding},
    {"flip", NULL, flip},
};

int main(int argc, char **argv)
{
    static struct image m;
    struct span file;
    char why[WHY_BYTES];
    size_t f = 0;
    const bool empties = argc == 5 && strcmp(argv[1], "entry-emptied") == 0;
    if (!empties && (argc < 8 || argc > 9))
        die("usage: damage NAME BINARY OUT KEY OTHER_KEY SM OTHER_SM [SEED or FILE]\n"
            "       damage entry-emptied BINARY OUT KEY");
    if (empties) {
        if (file_read(argv[2], &file, why))
            die(why);
        binary_empty_entry(file, argv[4], argv[3]);
        file_free(&file);
        return EXIT_SUCCESS;
    }
    m.sm = (uint32_t)strtoul(argv[6], NULL, 10);
    m.other_sm = (uint32_t)strtoul(argv[7], NULL, 10);
    m.extra = argv[8];
    if (file_read(argv[2], &file, why))
        die(why);
    image_read(&m, file, argv[4], argv[5]);
    const bool in_spare = strncmp(argv[1], "in-spare:", strlen("in-spare:")) == 0;
    const char *fault = argv[1] + (in_spare ? strlen("in-spare:") : 0);
    if (in_spare)
        image_swap_spare(m.key);
    bool patched = apply_patch(&m, fault);
    while (!patched && f < sizeof(faults) / sizeof(*faults) && strcmp(faults[f].name, fault) != 0)
        f++;
    if (f == sizeof(faults) / sizeof(*faults))
        die("no fault of that name");
    if (!patched && faults[f].before)
        faults[f].before(&m);
    if (in_spare)
        image_swap_spare(m.key);
    image_build(&m);
    if (!patched && faults[f].after)
        faults[f].after(&m);
    image_write(&m, argv[3]);
    file_free(&file);
    image_free(&m);
    return EXIT_SUCCESS;
}
