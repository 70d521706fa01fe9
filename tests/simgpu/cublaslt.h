/* SPDX-License-Identifier: Apache-2.0
 *
 * cublaslt.h: what the files of the simulated cuBLASLt share.
 */
#ifndef NOJIT_SIM_CUBLASLT_H
#define NOJIT_SIM_CUBLASLT_H

#include <stddef.h>
#include <stdint.h>

#include "../../runtime/cuda/api.h"
#include "hook.h"

#define LT_EXPORT __attribute__((visibility("default")))

enum { LT_F32 = 0, LT_F16 = 2, LT_BF16 = 14, LT_E4M3 = 28, LT_E5M2 = 29 };
enum { LT_COMPUTE_32F = 68, LT_BLOCKS = 2, LT_OUTER_VECTOR = 3, LT_EXECUTION_FAILED = 13 };

struct lt_layout {
    int type;
    uint64_t rows, columns;
    int64_t ld;
};

struct lt_desc {
    int32_t trans[2], mode[2]; /* settings of both operands */
    uint64_t scale[2];
    int8_t fast;
};

/* One product, as it is enqueued. Matrices are column-major; d is also what beta multiplies. */
struct lt_product {
    struct lt_desc desc;
    struct lt_layout a, b, d;
    const struct sim_hook *hook;
    uint64_t at_a, at_b, at_d; /* on the device */
    float alpha, beta;
    int wrong; /* rows and columns of the tile whose elements come out wrong; 0: none; -1: all */
};

size_t lt_type_bytes(int type); /* 0: a type that is not known */
static inline int lt_is_f8(int type)
{
    return type == LT_E4M3 || type == LT_E5M2;
}
sim_work_fn lt_multiply;

#endif
