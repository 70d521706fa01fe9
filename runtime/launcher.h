/* SPDX-License-Identifier: Apache-2.0
 *
 * launcher.h: the parts that all generated launchers share. gen writes a table for each op, and a function that
 * evaluates the expressions of its contract; the rest of a launch is here, and refusals are in launcher.c.
 */
#ifndef NOJIT_LAUNCHER_H
#define NOJIT_LAUNCHER_H

#include "base/tensor_type.h"
#include "nojit.h"

/* ---- arithmetic of contracts ----
 * A result that does not fit saturates, so that the limits on grids refuse it. A division by zero gives 0: launchers
 * refuse a zero divisor before they use the result. */

static inline int64_t i64_size(enum nj_dtype T)
{
    return T == NJ_LP ? 2 : 4;
}

static inline int64_t i64_add(int64_t a, int64_t b)
{
    int64_t r;
    return !__builtin_add_overflow(a, b, &r) ? r : a < 0 ? INT64_MIN : INT64_MAX;
}

static inline int64_t i64_sub(int64_t a, int64_t b)
{
    int64_t r;
    return !__builtin_sub_overflow(a, b, &r) ? r : a < 0 ? INT64_MIN : INT64_MAX;
}

static inline int64_t i64_mul(int64_t a, int64_t b)
{
    int64_t r;
    return !__builtin_mul_overflow(a, b, &r) ? r : (a < 0) != (b < 0) ? INT64_MIN : INT64_MAX;
}

static inline int64_t i64_div(int64_t a, int64_t b)
{
    return b == 0 ? 0 : a == INT64_MIN && b == -1 ? INT64_MAX : a / b;
}

static inline int64_t i64_rem(int64_t a, int64_t b)
{
    return b == 0 || b == -1 ? 0 : a % b;
}

static inline int64_t i64_ceil_div(int64_t a, int64_t b)
{
    return b <= 0 ? 0 : a / b + (a % b > 0);
}

static inline int64_t i64_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t i64_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- the table of an op ---- */

enum { NJ_AXES_MAX = 3 }; /* axes besides T */

struct nj_variant {
    enum nj_dtype T;
    int axes[NJ_AXES_MAX];
    int id; /* index in nj_kernels, or -1: not in this build */
};

/* A pointer in the struct of arguments, with the sentences for refusing it. */
struct nj_pointer {
    uint16_t offset;
    uint16_t align;       /* bytes; 0: the size of T */
    const char *not_null; /* NULL: the pointer is optional */
    const char *not_aligned;
};

enum nj_number_type { NJ_NUMBER_I32, NJ_NUMBER_I64, NJ_NUMBER_F32 };
/* A dim or a scalar in the struct of arguments. */
struct nj_number {
    const char *name;
    uint16_t offset;
    enum nj_number_type type;
};

struct nj_op {
    const char *name;
    const char *axes[NJ_AXES_MAX]; /* names of the axes; NULL after the last */
    int variant_count, pointer_count, number_count;
    int cluster; /* blocks along the grid's first size that make a cluster; 1: none */
    const char *whole_clusters; /* sentence for a grid that is not a multiple of it */
    const struct nj_variant *variants;
    const struct nj_pointer *pointers;
    const struct nj_number *numbers;
};

/* The values of one launch; axes has NJ_AXES_MAX entries, 0 for those that the op lacks. */
struct nj_call {
    nj_stream *stream;
    const struct nj_op *op;
    enum nj_dtype T;
    const int *axes;
    const void *args; /* struct nj_<op>; NULL is refused */
};

/* ---- checks ---- */

/* Return the index of a variant in nj_kernels, or -1. */
static inline int nj_variant_find(const struct nj_op *op, enum nj_dtype T, const int *axes)
{
    for (int i = 0; i < op->variant_count; i++) {
        const struct nj_variant *v = &op->variants[i];
        if (v->T == T && v->axes[0] == axes[0] && v->axes[1] == axes[1] && v->axes[2] == axes[2])
            return v->id;
    }
    return -1;
}

/* Return the condition that the pointers of a call break, or NULL. */
static inline const char *nj_pointers_broken(const struct nj_call *call)
{
    for (int i = 0; i < call->op->pointer_count; i++) {
        const struct nj_pointer *p = &call->op->pointers[i];
        const void *const *at =
            (const void *const *)(const void *)((const char *)call->args + p->offset);
        const uintptr_t align = p->align ? p->align : (uintptr_t)i64_size(call->T);
        if (*at == NULL && p->not_null != NULL)
            return p->not_null;
        if (((uintptr_t)*at & (align - 1)) != 0)
            return p->not_aligned;
    }
    return NULL;
}

/* Return the condition that a grid breaks, or NULL. */
static inline const char *nj_grid_broken(const struct nj_op *op, const int64_t blocks[3])
{
    if (blocks[0] < 0 || blocks[0] > INT32_MAX || blocks[1] < 0 || blocks[1] > 65535 ||
        blocks[2] < 0 || blocks[2] > 65535)
        return "the grid fits the device: at most 2147483647, 65535, 65535 blocks";
    if (blocks[0] % op->cluster != 0)
        return op->whole_clusters;
    return NULL;
}

/* ---- the launch ---- */

/* Launch kernel `id` with a block of parameters, which is the struct of arguments or begins with it. */
static inline int nj_launch_blocks(nj_stream *stream, int id, const int64_t blocks[3],
                                   int64_t shared, const void *block)
{
    const uint32_t grid[3] = {(uint32_t)blocks[0], (uint32_t)blocks[1], (uint32_t)blocks[2]};
    return nj_launch(stream, (uint32_t)id, grid, (uint32_t)shared, block);
}

/* Record that a condition does not hold, with the values of the call, and return NJ_E_ARG. */
int nj_call_refuse(const struct nj_call *call, const char *condition);
/* Record that this build has no such variant and return NJ_E_NO_KERNEL. */
int nj_call_no_kernel(const struct nj_call *call);

#endif
