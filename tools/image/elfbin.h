/* SPDX-License-Identifier: Apache-2.0
 *
 * elfbin.h: sections and segments of a 64-bit little-endian ELF file, host binary or cubin. Nothing
 * is trusted: every offset is checked against the file before it is followed.
 */
#ifndef NOJIT_TOOLS_ELFBIN_H
#define NOJIT_TOOLS_ELFBIN_H

#include "image/problems.h"
#include "image/span.h"

enum {
    ELF_TYPE_EXEC = 2,
    ELF_TYPE_DYN = 3,
    ELF_SECTION_SYMTAB = 2,
    ELF_SECTION_NOBITS = 8,
    ELF_SEGMENT_LOAD = 1,
    ELF_FLAG_WRITE = 1,
    ELF_FLAG_ALLOC = 2,
    ELF_FLAG_EXEC = 4,
};

struct elf {
    struct span file;
    uint8_t osabi, abi;
    uint16_t type, machine;
    uint32_t flags;
    uint64_t section_off, segment_off;
    uint32_t section_count, segment_count;
    struct span names;
    uint64_t end; /* end of the last byte that a table or section uses */
};

struct elf_section {
    const char *name;
    uint32_t index, type, link, info;
    uint64_t flags, address, off, bytes, align, entry_bytes;
    struct span data; /* bytes of the section; empty if the file holds none */
};

struct elf_segment {
    uint32_t type, flags;
    uint64_t off, address, file_bytes;
};

/* Check the header, and the bounds of every section and segment. Return 0, or -1 with a sentence. */
int elf_open(struct span file, struct elf *out, char why[WHY_BYTES]);
/* Return section i < section_count of an opened file. */
struct elf_section elf_section(const struct elf *e, uint32_t i);
/* Return the number of sections of that name; *out is the last of them. */
uint32_t elf_find(const struct elf *e, const char *name, struct elf_section *out);
struct elf_segment elf_segment(const struct elf *e, uint32_t i);

#endif
