/* SPDX-License-Identifier: Apache-2.0
 *
 * elfbin.c: decides which ELF files are accepted, and finds their parts (System V ABI, chapters 4 and 5).
 */
#include "image/elfbin.h"

enum { HEADER_BYTES = 64, SECTION_BYTES = 64, SEGMENT_BYTES = 56 };

struct elf_section elf_section(const struct elf *e, uint32_t i)
{
    struct span h = span_part(e->file, e->section_off + (uint64_t)i * SECTION_BYTES, SECTION_BYTES);
    struct elf_section s = {
        .name = span_string(e->names, span_u32(h, 0)),
        .index = i,
        .type = span_u32(h, 4),
        .flags = span_u64(h, 8),
        .address = span_u64(h, 16),
        .off = span_u64(h, 24),
        .bytes = span_u64(h, 32),
        .link = span_u32(h, 40),
        .info = span_u32(h, 44),
        .align = span_u64(h, 48),
        .entry_bytes = span_u64(h, 56),
    };
    if (s.type != 0 && s.type != ELF_SECTION_NOBITS)
        s.data = span_part(e->file, s.off, s.bytes);
    return s;
}

static void extend(struct elf *e, uint64_t end)
{
    if (end > e->end)
        e->end = end;
}

static int check_sections(struct elf *e, uint32_t names_index, char why[WHY_BYTES])
{
    if (e->section_count == 0)
        return fail(why, "has no section table");
    if (!span_has(e->file, e->section_off, (uint64_t)e->section_count * SECTION_BYTES))
        return fail(why, "section table reaches past the end of the file: truncated?");
    extend(e, e->section_off + (uint64_t)e->section_count * SECTION_BYTES);
    if (names_index >= e->section_count)
        return fail(why, "section name table %u of %u sections", names_index, e->section_count);
    e->names = elf_section(e, names_index).data;
    for (uint32_t i = 1; i < e->section_count; i++) {
        struct elf_section s = elf_section(e, i);
        if (!s.name)
            return fail(why, "section %u has no valid name", i);
        if (s.type == ELF_SECTION_NOBITS || s.type == 0)
            continue;
        if (!span_has(e->file, s.off, s.bytes))
            return fail(why, "section %s reaches past the end of the file: truncated?", s.name);
        extend(e, s.off + s.bytes);
    }
    return 0;
}

static int check_segments(struct elf *e, char why[WHY_BYTES])
{
    if (e->segment_count == 0)
        return 0;
    if (!span_has(e->file, e->segment_off, (uint64_t)e->segment_count * SEGMENT_BYTES))
        return fail(why, "segment table reaches past the end of the file: truncated?");
    extend(e, e->segment_off + (uint64_t)e->segment_count * SEGMENT_BYTES);
    for (uint32_t i = 0; i < e->segment_count; i++) {
        struct elf_segment s = elf_segment(e, i);
        if (s.type == ELF_SEGMENT_LOAD && !span_has(e->file, s.off, s.file_bytes))
            return fail(why, "segment %u reaches past the end of the file: truncated?", i);
    }
    return 0;
}

int elf_open(struct span file, struct elf *out, char why[WHY_BYTES])
{
    static const uint8_t magic[4] = {0x7f, 'E', 'L', 'F'};
    if (!span_has(file, 0, sizeof(magic)) || memcmp(file.data, magic, sizeof(magic)) != 0)
        return fail(why, "is not an ELF file");
    if (!span_has(file, 0, HEADER_BYTES))
        return fail(why, "ends inside the ELF header");
    if (span_u8(file, 4) != 2 || span_u8(file, 5) != 1 || span_u8(file, 6) != 1)
        return fail(why, "is not a 64-bit little-endian ELF file of version 1");
    *out = (struct elf){
        .file = file,
        .osabi = span_u8(file, 7),
        .abi = span_u8(file, 8),
        .type = span_u16(file, 16),
        .machine = span_u16(file, 18),
        .segment_off = span_u64(file, 32),
        .section_off = span_u64(file, 40),
        .flags = span_u32(file, 48),
        .segment_count = span_u16(file, 56),
        .section_count = span_u16(file, 60),
        .end = HEADER_BYTES,
    };
    if (span_u16(file, 52) != HEADER_BYTES || span_u16(file, 58) != SECTION_BYTES ||
        (out->segment_count && span_u16(file, 54) != SEGMENT_BYTES))
        return fail(why, "has ELF header entries of unknown size");
    if (check_sections(out, span_u16(file, 62), why) || check_segments(out, why))
        return -1;
    return 0;
}

uint32_t elf_find(const struct elf *e, const char *name, struct elf_section *out)
{
    uint32_t found = 0;
    for (uint32_t i = 1; i < e->section_count; i++) {
        struct elf_section s = elf_section(e, i);
        if (strcmp(s.name, name) != 0)
            continue;
        *out = s;
        found++;
    }
    return found;
}

struct elf_segment elf_segment(const struct elf *e, uint32_t i)
{
    struct span h = span_part(e->file, e->segment_off + (uint64_t)i * SEGMENT_BYTES, SEGMENT_BYTES);
    return (struct elf_segment){
        .type = span_u32(h, 0),
        .flags = span_u32(h, 4),
        .off = span_u64(h, 8),
        .address = span_u64(h, 16),
        .file_bytes = span_u64(h, 32),
    };
}
