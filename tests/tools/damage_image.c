/* SPDX-License-Identifier: Apache-2.0
 *
 * damage_image.c: takes the kernels of two keys out of a binary, and writes them as a small ELF
 * file of their own.
 */
#include "damage_image.h"

#include <elf.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "image/elfbin.h"
#include "image/fatbin.h"
#include "image/fileio.h"

_Noreturn void die(const char *what)
{
    fprintf(stderr, "damage: %s\n", what);
    exit(EXIT_FAILURE);
}

void *allocate(size_t bytes)
{
    void *p = calloc(1, bytes + 1);
    if (!p)
        die("no memory");
    return p;
}

/* ---- reading ---- */

static struct span section(const struct elf *e, const char *name)
{
    struct elf_section s;
    if (elf_find(e, name, &s) != 1)
        die("the binary lacks a section of kernels");
    return s.data;
}

static void read_entry(struct image *m, const struct nji_header *h, struct span index,
                       struct span blobs, uint32_t i)
{
    struct entry *to = &m->entries[m->entry_count++];
    memcpy(&to->e, index.data + h->entries_off + i * sizeof(to->e), sizeof(to->e));
    memcpy(to->records, index.data + h->records_off + to->e.first_record * sizeof(*to->records),
           to->e.record_count * sizeof(*to->records));
    memcpy(to->params, index.data + h->params_off + to->e.first_param * sizeof(*to->params),
           to->e.param_count * sizeof(*to->params));
    snprintf(to->key, STRING_BYTES, "%s", span_string(index, h->strings_off + to->e.key_str));
    snprintf(to->name, STRING_BYTES, "%s", span_string(index, h->strings_off + to->e.entry_str));
    to->bytes = to->e.blob_bytes;
    to->container = allocate(to->bytes);
    memcpy(to->container, blobs.data + to->e.blob_off, to->bytes);
    to->spare = (struct bytes){allocate(to->e.spare_bytes), to->e.spare_bytes};
    memcpy(to->spare.data, blobs.data + to->e.spare_off, to->spare.bytes);
}

/* Keeps the lines of the two keys. */
static void read_keys(struct image *m, struct span keys, const char *key, const char *other)
{
    m->keys.data = allocate(keys.bytes);
    for (size_t at = 0, end; at < keys.bytes; at = end) {
        end = span_find(keys, "\n", 1, at) + 1;
        size_t name = span_find(keys, "\t", 1, at) - at;
        if ((name == strlen(key) && !memcmp(keys.data + at, key, name)) ||
            (name == strlen(other) && !memcmp(keys.data + at, other, name))) {
            memcpy(m->keys.data + m->keys.bytes, keys.data + at, end - at);
            m->keys.bytes += end - at;
        }
    }
}

void image_read(struct image *m, struct span file, const char *key, const char *other)
{
    char why[WHY_BYTES];
    struct elf e;
    struct nji_header h;
    if (elf_open(file, &e, why))
        die(why);
    struct span index = section(&e, ".nojit.index"), blobs = section(&e, ".nojit.blobs");
    memcpy(&h, index.data, sizeof(h));
    m->machine = e.machine;
    m->arch_count = h.arch_count;
    memcpy(m->archs, index.data + h.archs_off, h.arch_count * sizeof(*m->archs));
    for (uint32_t a = 0; a < m->arch_count; a++)
        snprintf(m->assemblers[a], STRING_BYTES, "%s",
                 span_string(index, h.strings_off + m->archs[a].assembler_str));
    for (uint32_t i = 0; i < h.entry_count; i++) {
        const uint8_t *at = index.data + h.entries_off + i * sizeof(struct nji_entry);
        uint32_t name = span_u32((struct span){at, sizeof(struct nji_entry)},
                                 offsetof(struct nji_entry, key_str));
        const char *text = span_string(index, h.strings_off + name);
        if (!strcmp(text, key) || !strcmp(text, other))
            read_entry(m, &h, index, blobs, i);
    }
    if (m->entry_count != 2)
        die("the binary lacks one of the keys");
    m->key = &m->entries[strcmp(m->entries[0].key, key) != 0];
    m->other = &m->entries[m->key == &m->entries[0]];
    read_keys(m, section(&e, ".nojit.keys"), key, other);
}

/* ---- entries of a fatbin ---- */

void image_swap_spare(struct entry *k)
{
    const struct bytes main = {k->container, k->bytes};
    k->container = k->spare.data;
    k->bytes = k->spare.bytes;
    k->spare = main;
}

struct place image_find(const struct entry *k, uint32_t sm)
{
    for (size_t at = 16; at + 64 <= k->bytes;) {
        struct span s = span_part((struct span){k->container, k->bytes}, at, k->bytes - at);
        size_t payload = at + span_u32(s, 4), end = payload + (size_t)span_u64(s, 8);
        if (span_u16(s, 0) == FATBIN_ELF && span_u32(s, 28) == sm && payload <= end)
            return (struct place){at, payload, end};
        if (end <= at || end > k->bytes)
            break; /* an earlier fault */
        at = end;
    }
    return (struct place){0};
}

void image_fit(struct entry *k)
{
    uint64_t entries = k->bytes - 16;
    memcpy(k->container + 8, &entries, sizeof(entries));
}

void image_splice(struct entry *k, size_t from, size_t to, struct span with)
{
    uint8_t *data = allocate(k->bytes - (to - from) + with.bytes);
    memcpy(data, k->container, from);
    if (with.bytes)
        memcpy(data + from, with.data, with.bytes);
    memcpy(data + from + with.bytes, k->container + to, k->bytes - to);
    k->bytes = k->bytes - (to - from) + with.bytes;
    free(k->container);
    k->container = data;
    image_fit(k);
}

void image_replace_code(struct entry *k, uint32_t sm, struct span code)
{
    struct place p = image_find(k, sm);
    uint64_t stored = code.bytes;
    memcpy(k->container + p.header + 8, &stored, sizeof(stored));
    image_splice(k, p.payload, p.end, code);
}

/* ---- writing ---- */

static void hash_codes(struct entry *k, const struct image *m)
{
    for (uint32_t i = 0; i < k->e.record_count && i < MAX_ARCHS; i++) {
        struct place p = image_find(k, m->archs[k->records[i].arch % MAX_ARCHS].sm);
        if (!p.end || p.end > k->bytes || p.payload > p.end)
            continue;
        k->records[i].code_hash = XXH3_64bits(k->container + p.payload, p.end - p.payload);
        k->records[i].code_bytes = (uint32_t)(p.end - p.payload);
    }
}

static void write_blobs(struct image *m)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < m->entry_count; i++)
        bytes += m->entries[i].bytes + m->entries[i].spare.bytes + 128;
    m->blobs.data = allocate(bytes + 64);
    for (uint32_t i = 0; i < m->entry_count; i++) {
        struct entry *k = &m->entries[i];
        k->e.blob_off = (m->blobs.bytes + 63) / 64 * 64;
        k->e.blob_bytes = k->bytes;
        k->e.blob_hash = XXH3_64bits(k->container, k->bytes);
        memcpy(m->blobs.data + k->e.blob_off, k->container, k->bytes);
        m->blobs.bytes = k->e.blob_off + k->bytes;
        hash_codes(k, m);
    }
    for (uint32_t i = 0; i < m->entry_count; i++) {
        struct entry *k = &m->entries[i];
        if (k->spare.bytes == 0) {
            k->e.spare_off = k->e.spare_bytes = k->e.spare_hash = 0;
            continue;
        }
        k->e.spare_off = (m->blobs.bytes + 63) / 64 * 64;
        k->e.spare_bytes = k->spare.bytes;
        k->e.spare_hash = XXH3_64bits(k->spare.data, k->spare.bytes);
        memcpy(m->blobs.data + k->e.spare_off, k->spare.data, k->spare.bytes);
        m->blobs.bytes = k->e.spare_off + k->spare.bytes;
    }
}

static uint32_t append(struct bytes *to, const void *data, size_t bytes)
{
    memcpy(to->data + to->bytes, data, bytes);
    to->bytes += bytes;
    return (uint32_t)(to->bytes - bytes);
}

static void write_index(struct image *m)
{
    struct nji_header h = {.magic = NJI_MAGIC,
                           .version = NJI_VERSION,
                           .entry_count = m->entry_count,
                           .arch_count = m->arch_count,
                           .blobs_bytes = m->blobs.bytes};
    struct bytes strings = {.data = allocate((2 * MAX_ENTRIES + MAX_ARCHS) * STRING_BYTES)};
    for (uint32_t a = 0; a < m->arch_count; a++)
        m->archs[a].assembler_str =
            append(&strings, m->assemblers[a], strlen(m->assemblers[a]) + 1);
    for (uint32_t i = 0; i < m->entry_count; i++) {
        struct entry *k = &m->entries[i];
        k->e.key_str = append(&strings, k->key, strlen(k->key) + 1);
        k->e.entry_str = append(&strings, k->name, strlen(k->name) + 1);
        k->e.first_record = h.record_count;
        k->e.first_param = h.param_count;
        h.record_count += k->e.record_count;
        h.param_count += k->e.param_count;
    }
    m->index.data = allocate(1 << 20);
    append(&m->index, &h, sizeof(h));
    h.archs_off = append(&m->index, m->archs, m->arch_count * sizeof(*m->archs));
    h.entries_off = (uint32_t)m->index.bytes;
    for (uint32_t i = 0; i < m->entry_count; i++)
        append(&m->index, &m->entries[i].e, sizeof(struct nji_entry));
    h.records_off = (uint32_t)m->index.bytes;
    for (uint32_t i = 0; i < m->entry_count; i++)
        append(&m->index, m->entries[i].records,
               m->entries[i].e.record_count % (MAX_ARCHS + 1) * sizeof(struct nji_record));
    h.params_off = (uint32_t)m->index.bytes;
    for (uint32_t i = 0; i < m->entry_count; i++)
        append(&m->index, m->entries[i].params,
               m->entries[i].e.param_count % (MAX_PARAMS + 1) * sizeof(struct nji_param));
    h.strings_off = append(&m->index, strings.data, strings.bytes);
    h.index_bytes = (uint32_t)m->index.bytes;
    free(strings.data);
    memcpy(m->index.data, &h, sizeof(h));
    h.index_hash = XXH3_64bits(m->index.data, m->index.bytes);
    memcpy(m->index.data, &h, sizeof(h));
}

void image_build(struct image *m)
{
    write_blobs(m);
    write_index(m);
}

void image_write(const struct image *m, const char *path)
{
    enum { BASE = 0x400000, SECTIONS = 6 };
    static const char names[] = "\0.nojit.index\0.nojit.blobs\0.nojit.keys\0.names\0.nv_fatbin";
    const struct span parts[] = {{m->index.data, m->index.bytes},
                                 {m->blobs.data, m->blobs.bytes},
                                 {m->keys.data, m->keys.bytes},
                                 {(const uint8_t *)names, sizeof(names)},
                                 {(const uint8_t *)names, 8}};
    struct bytes out = {.data = allocate(m->index.bytes + m->blobs.bytes + m->keys.bytes +
                                         m->overlay.bytes + 4096)};
    Elf64_Shdr sections[SECTIONS] = {0};
    uint32_t count = m->extra_section ? SECTIONS : SECTIONS - 1, name = 1;
    out.bytes = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);
    for (uint32_t i = 1; i < count; i++) {
        out.bytes = (out.bytes + 63) / 64 * 64;
        sections[i] = (Elf64_Shdr){.sh_name = name,
                                   .sh_type = SHT_PROGBITS,
                                   .sh_flags = SHF_ALLOC,
                                   .sh_offset = out.bytes,
                                   .sh_addr = BASE + out.bytes,
                                   .sh_size = parts[i - 1].bytes,
                                   .sh_addralign = 64};
        name += (uint32_t)strlen(names + name) + 1;
        append(&out, parts[i - 1].data, parts[i - 1].bytes);
    }
    Elf64_Phdr segment = {.p_type = PT_LOAD,
                          .p_flags = m->segment_flags ? m->segment_flags : PF_R,
                          .p_vaddr = BASE + m->segment_shift,
                          .p_filesz = out.bytes,
                          .p_memsz = out.bytes,
                          .p_align = 4096};
    out.bytes = (out.bytes + 63) / 64 * 64;
    Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                         .e_type = ET_EXEC,
                         .e_machine = m->machine,
                         .e_version = EV_CURRENT,
                         .e_phoff = sizeof(Elf64_Ehdr),
                         .e_shoff = append(&out, sections, count * sizeof(*sections)),
                         .e_ehsize = sizeof(Elf64_Ehdr),
                         .e_phentsize = sizeof(Elf64_Phdr),
                         .e_phnum = 1,
                         .e_shentsize = sizeof(Elf64_Shdr),
                         .e_shnum = (Elf64_Half)count,
                         .e_shstrndx = 4};
    memcpy(out.data, &header, sizeof(header));
    memcpy(out.data + sizeof(header), &segment, sizeof(segment));
    if (m->overlay.bytes)
        append(&out, m->overlay.data, m->overlay.bytes);
    char why[WHY_BYTES];
    if (file_write(path, (struct span){out.data, out.bytes}, why))
        die(why);
    free(out.data);
}

void image_free(struct image *m)
{
    for (uint32_t i = 0; i < m->entry_count; i++) {
        free(m->entries[i].container);
        free(m->entries[i].spare.data);
    }
    free(m->index.data);
    free(m->blobs.data);
    free(m->keys.data);
}

void binary_empty_entry(struct span file, const char *key, const char *path)
{
    char why[WHY_BYTES];
    struct elf e;
    struct elf_section s;
    struct nji_header h;
    struct nji_entry entry;
    uint32_t i = 0;
    uint8_t *copy = allocate(file.bytes), *index;
    if (elf_open(file, &e, why))
        die(why);
    if (elf_find(&e, ".nojit.index", &s) != 1)
        die("the binary lacks an index");
    memcpy(copy, file.data, file.bytes);
    index = copy + s.off;
    memcpy(&h, index, sizeof(h));
    do {
        if (i == h.entry_count)
            die("the binary lacks that key");
        memcpy(&entry, index + h.entries_off + i * sizeof(entry), sizeof(entry));
        i++;
    } while (strcmp(span_string(s.data, h.strings_off + entry.key_str), key) != 0);
    entry.blob_bytes = 0;
    entry.record_count = 0;
    entry.spare_off = entry.spare_bytes = entry.spare_hash = 0;
    memcpy(index + h.entries_off + (i - 1) * sizeof(entry), &entry, sizeof(entry));
    h.index_hash = 0;
    memcpy(index, &h, sizeof(h));
    h.index_hash = XXH3_64bits(index, h.index_bytes);
    memcpy(index, &h, sizeof(h));
    if (file_write(path, (struct span){copy, file.bytes}, why))
        die(why);
    free(copy);
}
