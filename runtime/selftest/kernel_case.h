/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_case.h: one test case of one key, as gen writes them (build/gen/cases.c) and as the
 * harness and the kernel bench read them. Every expression of the contract is evaluated: what is
 * here are numbers.
 */
#ifndef NOJIT_KERNEL_CASE_H
#define NOJIT_KERNEL_CASE_H

#include "nojit.h"

/* Limits of the harness, kbench and tests: number of arguments, and bytes of a parameter block. */
enum { ARGS_MAX = 32, BLOCK_MAX = 4096 };

enum case_dir { CASE_IN, CASE_OUT, CASE_INOUT };
enum case_type { CASE_F32, CASE_LP, CASE_I32, CASE_F8, CASE_BF16, CASE_E5M2 };
enum case_compare {
    CASE_COMPARE_ALL,
    CASE_COMPARE_SUM,
    CASE_COMPARE_NONE,
    CASE_COMPARE_MOST,
    CASE_COMPARE_EXACT
};
enum case_fill {
    CASE_FILL_NORMAL,
    CASE_FILL_UNIFORM,
    CASE_FILL_POSITIVE,
    CASE_FILL_ZERO,
    CASE_FILL_ID,            /* fill_value: exclusive bound */
    CASE_FILL_ID_OR_IGNORED, /* fill_value: exclusive bound */
    CASE_FILL_ROW_OR_NONE,   /* fill_value: exclusive bound */
    CASE_FILL_SEQUENCE,      /* fill_value: rows of a sequence */
    CASE_FILL_POSITION,      /* fill_value: modulus; first is added */
    CASE_FILL_DOC_START,     /* fill_value: rows of a sequence */
    CASE_FILL_ORDER,         /* fill_name: the id array */
    CASE_FILL_RUNS,          /* fill_name: the id array */
    CASE_FILL_STATE,
    CASE_FILL_INV_FREQ, /* first: number of the first frequency that is 0; 0: none is */
    CASE_FILL_HALVES,
    CASE_FILL_WHOLE,  /* fill_value: exclusive bound */
    CASE_FILL_STARTS, /* fill_value: end of the last group */
    CASE_FILL_LOW_BYTES,
    CASE_FILL_REF, /* fill_name: the op whose reference computes it */
};

struct case_arg {
    const char *name;
    enum case_dir dir;
    enum case_type type;
    int null; /* 1: this case passes NULL */
    int64_t elements;
    uint32_t align;
    enum case_fill fill;
    int64_t fill_value;
    const char *fill_name; /* or NULL */
    double scale;
    double tolerance; /* tolerance of the argument; 0: the case's */
    enum case_compare compare;
    int64_t first; /* CASE_FILL_POSITION, CASE_FILL_INV_FREQ */
    int every_row; /* 1: a benchmark leaves out no row, since it counts the bytes of all */
};

/* Values of the contract's expressions for each argument and for the whole case. */
struct case_sizes {
    int64_t elements[ARGS_MAX], fill_value[ARGS_MAX];
    double flops, bytes;
};

struct kernel_case {
    uint32_t kernel;   /* index of nj_kernels */
    const char *label; /* "N=37 C=896" */
    int bench;         /* 1: for benchmarks, not for tests */
    /* arguments, one per pointer of the kernel: args[i] is parameter i of the block */
    const struct case_arg *args;
    uint32_t arg_count;
    const unsigned char *params; /* param block with dims and scalars set and pointers zero */
    double tolerance;
    double flops, bytes;
    /* Unpack params and call the typed launcher. */
    int (*launch)(nj_stream *s, const void *params);
    /* Run the reference in double: same block layout, pointers to double and int32_t arrays; f32 scalars stay float. */
    void (*oracle)(const void *params);
    /* Compute the sizes for the dims in the block, whatever they are. */
    void (*sizes)(const void *params, struct case_sizes *out);
};

extern const struct kernel_case nj_cases[];
extern const uint32_t nj_case_count;

/* A reference that a fill names, with what is needed to call it by name with the arguments of the case at hand. */
struct oracle_op {
    const char *op;
    uint16_t param_bytes, param_count, pointer_count; /* pointers come first */
    const struct nj_param *params;
    const char *const
        *names; /* names of all params: arguments, dims, scalars, and axes as "D" after them */
    uint16_t axis_count; /* integer axes, passed as int */
    void (*call)(const void *params, const int *axes);
    /* Compute the elements of each `dir: out` argument; the other entries of out[] stay as they are. */
    void (*outputs)(const void *params, const int *axes, int64_t *out);
    const char *backward_of; /* or NULL */
};
extern const struct oracle_op nj_oracle_ops[];
extern const uint32_t nj_oracle_op_count;
/* Names of a key's params in block order (arguments, dims, scalars), and its integer axes. Indexed
 * like nj_kernels. */
struct case_names {
    const char *const *params;
    uint16_t dim_count, axis_count;
    const char *const *axis_names;
    const int *axis_values;
};
extern const struct case_names nj_case_names[];

#endif
