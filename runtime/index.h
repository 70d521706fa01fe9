/* SPDX-License-Identifier: Apache-2.0
 *
 * index.h: the index of embedded kernels, as `pack` writes it and as the runtime and blobcheck read it.
 *
 * Three allocated, read-only sections of the final binary:
 *   .nojit.index   struct nji_header, then, without gaps: archs, entries sorted by key_hash, records, params, strings
 *   .nojit.blobs   fatbin containers (ELF entries only), each 64-byte aligned: one of each entry, then the spare ones
 *   .nojit.keys    text written by gen: what the launchers will ask for, a line per key (see below)
 * The records of an entry are in the order of archs, which ascend by sm; no two archs have the same sm.
 * Reserved fields are zero. Bytes between containers are zero, fewer than 64. Sections are 64-byte aligned.
 * All little-endian; all references are offsets, so the bytes mean the same in the file and in memory.
 *
 * A line of .nojit.keys, tab-separated, lines sorted by key, final newline:
 *   key  entry  threads  max_shared_bytes  min_sm  param_bytes  offset:bytes,offset:bytes,...
 * In the place of min_sm: the name of an arch (sm_90a) that has the key alone; its SM is min_sm then.
 */
#ifndef NOJIT_INDEX_H
#define NOJIT_INDEX_H

#include <stdint.h>

#define NJI_MAGIC UINT64_C(0x0031494454494a4e) /* "NJITDI1", NUL, as bytes */
#define NJI_VERSION 2

struct nji_header {
    uint64_t magic;
    uint32_t version;
    uint32_t entry_count;
    uint32_t arch_count;   /* archs of the build */
    uint32_t record_count; /* arch records of all entries */
    uint32_t entries_off;  /* struct nji_entry[entry_count], ascending key_hash */
    uint32_t archs_off;    /* struct nji_arch[arch_count] */
    uint32_t records_off;  /* struct nji_record[record_count] */
    uint32_t params_off;   /* struct nji_param[], shared by all entries */
    uint32_t strings_off;  /* NUL-terminated strings */
    uint32_t index_bytes;  /* bytes of the whole index */
    uint32_t param_count;  /* number of parameters of all entries */
    uint32_t reserved;
    uint64_t blobs_bytes; /* bytes of the whole .nojit.blobs section */
    uint64_t index_hash;  /* XXH3-64 of the index with this field zero */
};

struct nji_arch {
    uint16_t sm;    /* 90 */
    uint8_t suffix; /* 0, 'a' or 'f' */
    uint8_t lp_is_f16;
    uint32_t shared_limit; /* most shared memory of a block, in bytes */
    uint32_t
        assembler_str; /* offset in strings: "ptxas 13.0.88", "" without code; for shaders "glslc 2023.2" */
    uint8_t spare; /* 1: each entry of this arch also has spare code for it */
    uint8_t reserved[3];
};

struct nji_entry {
    uint64_t key_hash; /* XXH3-64 of the key */
    uint64_t blob_off; /* offset in .nojit.blobs */
    /* Bytes of the fatbin container; 0 if no arch of the build has the key. */
    uint64_t blob_bytes;
    uint64_t blob_hash; /* XXH3-64 of the container */
    /* Offset, bytes and hash of a container of spare code: the kernel assembled at -O1. Zero if no arch of the build
     * asks for it. */
    uint64_t spare_off, spare_bytes, spare_hash;
    uint32_t key_str, entry_str; /* offsets in strings */
    uint32_t threads, max_shared_bytes;
    uint32_t first_record, record_count; /* one record per arch that holds the key */
    uint32_t first_param;
    uint16_t param_count, param_bytes;
    uint16_t min_sm;
    uint16_t reserved[3];
};

struct nji_record {
    uint64_t code_hash; /* XXH3-64 of the cubin */
    uint32_t code_bytes;
    uint16_t arch; /* index into archs */
    uint16_t registers;
    uint32_t static_shared_bytes;
    uint32_t stack_bytes,
        spill_bytes; /* bytes per thread; spill_bytes: as ptxas -v reported them, stores or loads */
    uint32_t reserved;
};

struct nji_param {
    uint16_t offset, bytes;
};

_Static_assert(sizeof(struct nji_header) == 72, "index header");
_Static_assert(sizeof(struct nji_entry) == 96, "index entry");
_Static_assert(sizeof(struct nji_record) == 32, "index record");
_Static_assert(sizeof(struct nji_arch) == 16, "index arch");

#endif
