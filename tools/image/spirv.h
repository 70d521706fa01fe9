/* SPDX-License-Identifier: Apache-2.0
 *
 * spirv.h: what a SPIR-V module says about its one compute shader. Numbers are those of the SPIR-V
 * specification.
 */
#ifndef NOJIT_TOOLS_SPIRV_H
#define NOJIT_TOOLS_SPIRV_H

#include "image/problems.h"
#include "image/span.h"

enum { SPIRV_MEMBERS_MAX = 64 };

struct spirv {
    uint32_t version; /* 0x10500: 1.5 */
    uint32_t entries; /* entry points; only a compute shader sets the rest */
    const char *entry;
    uint32_t local_size[3];
    uint32_t addressing; /* addressing of the memory model */
    uint32_t shared_bytes;
    uint32_t member_count; /* members of the block of push constants */
    struct {
        uint32_t offset, bytes;
    } members[SPIRV_MEMBERS_MAX];
    uint32_t capability;   /* the first that is not allowed; 0: none */
    uint32_t atomic;       /* the first atomic instruction's opcode; 0: none */
    const char *extension; /* the first that is not allowed, or NULL */
    bool source;           /* holds text of a source */
    bool descriptors;      /* a variable that the runtime would have to bind */
};

enum { SPIRV_PHYSICAL_STORAGE_BUFFER_64 = 5348 };

/* Reads a module. Returns 0, or -1 with a sentence if it is not one. */
int spirv_parse(struct span module, struct spirv *out, char why[WHY_BYTES]);

#endif
