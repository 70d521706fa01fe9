/* SPDX-License-Identifier: Apache-2.0
 *
 * kbench.h: timing of kernels. kbench.c has options and output, kbench_time.c the clock, kbench_gemm.c the table of
 * GEMMs.
 */
#ifndef NOJIT_KBENCH_H
#define NOJIT_KBENCH_H

#include "harness.h"

enum { LABEL_BYTES = 256 };

/* A benchmark case of a contract, with other dims where a shape says so. */
struct shaped {
    struct kernel_case c; /* its pointers lead into the arrays below */
    struct case_arg args[ARGS_MAX];
    _Alignas(16) unsigned char params[BLOCK_MAX];
    char label[LABEL_BYTES];
};

/* Times in microseconds. */
struct timing {
    double median, p10, p90;
};

struct bench {
    nj_context *ctx;
    nj_stream *stream;
    nj_event *from, *to;
    void *flush; /* memory that is written before a run with cold caches */
    uint64_t seed;
    double copy_gbs;          /* rate of a long copy, bytes read plus bytes written */
    double product_gflops[3]; /* rate of a large GEMM, by enum nj_dtype; 0: the device has none */
    int32_t product_dim;      /* M, N and K of that GEMM */
};

/* Open the device, and measure both roofs. The sentence of a failure is the context's. */
int bench_open(struct bench *b, enum nj_device_kind device);
int bench_roofs(struct bench *b);
void bench_close(struct bench *b);

/* Copy a case and set the dims that `shape` names ("B=8 S=1024"; "": none) and its op has; NAME=null passes NULL for an
 * argument. Return 0, or NJ_E_ARG with a sentence in `why`. */
int shape_case(const struct kernel_case *c, const char *shape, struct shaped *out, char *why,
               size_t why_bytes);
/* Read the next "NAME=VALUE" at *at into name and value. Return 1, 0 at the end, or -1. */
int shape_next(const char **at, char name[32], char value[32]);
/* Return the index of a dim or argument among the parameters of a key, or -1. */
int shape_param(const struct subject *s, const char *name);

int bench_gemm(struct bench *b, const struct nj_gemm *g, struct timing *t);
/* Parse "M=2048 N=512 K=64". Return 0, or -1 if the text is not of this form. */
int gemm_shape(const char *text, int32_t shape[3]);
/* Time GEMMs of these shapes, or without any those of common models, and print a table. */
int bench_gemms(struct bench *b, int count, const int32_t (*shapes)[3]);

int bench_case(struct bench *b, const struct shaped *s, struct timing *warm, struct timing *cold);
/* Time launches of a case on the host: nanoseconds from call to return. */
int bench_launches(struct bench *b, const struct shaped *s, struct timing *ns);
/* Time a copy of as many bytes as the case moves (2 GiB at most). */
int bench_copy(struct bench *b, const struct kernel_case *c, struct timing *t);
/* Return the least time that the roofs allow, in microseconds, and whether memory is the limit. */
double bench_floor(const struct bench *b, const struct kernel_case *c, int *by_bytes);

#endif
