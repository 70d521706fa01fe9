/* SPDX-License-Identifier: Apache-2.0
 *
 * cubin.h: the properties of a cubin and of its one kernel.
 */
#ifndef NOJIT_TOOLS_CUBIN_H
#define NOJIT_TOOLS_CUBIN_H

#include "image/problems.h"
#include "image/span.h"

enum { CUBIN_MAX_PARAMS = 256 };

struct cubin_param {
    uint16_t offset, bytes;
};

/* A parsed cubin; strings point into the file. */
struct cubin {
    uint32_t sm;         /* SM of the machine code */
    uint32_t virtual_sm; /* SM of the PTX it came from */
    /* .nv.compat: 1 for an `a` target, else 0; -1 where it is not recorded (before sm_90) */
    int arch_specific;
    char target[16];   /* target in ptxas's recorded command line: "sm_90a" */
    char level;        /* from the same command line: '1' for -O1; '3' if it names none */
    char ptxas[32];    /* "13.0.88" */
    const char *entry; /* symbol of the first kernel; NULL: there is none */
    uint32_t kernels;
    const char *undefined; /* a symbol that is not defined, or NULL */
    uint64_t code_bytes;   /* size of the kernel's instructions */
    uint32_t registers, stack_bytes,
        static_shared_bytes; /* bytes without those that sm_90 and later reserve */
    uint32_t max_threads;    /* launch bound; 0: none */
    uint32_t param_bytes, bank_param_bytes, param_count;
    struct cubin_param params[CUBIN_MAX_PARAMS];
};

/* Parse a cubin. Return 0, or -1 with a sentence. */
int cubin_parse(struct span file, struct cubin *out, char why[WHY_BYTES]);

#endif
