/* SPDX-License-Identifier: Apache-2.0
 *
 * codecheck.h: checks that the machine code in a container is what the launchers expect. pack checks before it writes,
 * blobcheck checks the finished binary.
 */
#ifndef NOJIT_TOOLS_CODECHECK_H
#define NOJIT_TOOLS_CODECHECK_H

#include "pack/keyfile.h"

/* One key on one arch, read from its cubin. */
struct code_fact {
    bool present;
    uint64_t hash;
    uint32_t code_bytes; /* size of the cubin */
    uint32_t registers, static_shared_bytes, stack_bytes;
    char ptxas[32];
};

/* A text that every PTX file contains and nothing else should. */
#define PTX_TARGET ".target sm_"

/* Return whether the key applies to the arch. */
static inline bool key_applies(const struct key *k, const struct nji_arch *a)
{
    if (k->spare && !a->spare)
        return false;
    return k->only ? strcmp(arch_name(a->sm, (char)a->suffix).text, k->only) == 0
                   : a->sm >= k->min_sm;
}

/* Check everything about the container of a key except its hash. facts[arch_count] is filled, problems are added. */
void code_check(struct span container, const struct key *k, const struct nji_arch *archs,
                uint32_t arch_count, struct code_fact *facts, struct report *r);
/* Report every arch of a key without a container as missing. */
void code_check_absent(const struct key *k, const struct nji_arch *archs, uint32_t arch_count,
                       struct report *r);

#endif
