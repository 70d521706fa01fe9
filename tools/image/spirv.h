/* SPDX-License-Identifier: Apache-2.0
 *
 * spirv.h: the properties of a SPIR-V module with one compute shader. Numbers are those of the SPIR-V specification.
 */
#ifndef NOJIT_TOOLS_SPIRV_H
#define NOJIT_TOOLS_SPIRV_H

#include "image/problems.h"
#include "image/span.h"

enum { SPIRV_MEMBERS_MAX = 64 };

struct spirv {
    uint32_t version; /* 0x10500: 1.5 */
    uint32_t entries; /* number of entry points; only a compute shader sets the rest */
    const char *entry;
    uint32_t local_size[3];
    uint32_t addressing; /* addressing model, as the module declares it */
    uint32_t shared_bytes;
    uint32_t member_count; /* members of the block of push constants */
    struct {
        uint32_t offset, bytes;
    } members[SPIRV_MEMBERS_MAX];
    uint32_t capability;   /* first capability that is not allowed; 0: none */
    uint32_t atomic;       /* opcode of the first atomic instruction; 0: none */
    const char *extension; /* first extension that is not allowed, or NULL */
    bool source;           /* whether it holds source text */
    bool descriptors;      /* whether it has a variable that the runtime would have to bind */
};

enum { SPIRV_PHYSICAL_STORAGE_BUFFER_64 = 5348 };

/* Read a module. Return 0, or -1 with a sentence if it is not one. */
int spirv_parse(struct span module, struct spirv *out, char why[WHY_BYTES]);

#endif
