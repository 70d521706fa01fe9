/* SPDX-License-Identifier: Apache-2.0
 *
 * kbench.h: how long kernels take. kbench.c has options and output, kbench_time.c the clock,
 * kbench_gemm.c the table of GEMMs.
 */
#ifndef NOJIT_KBENCH_H
#define NOJIT_KBENCH_H

#include "harness.h"

enum { LABEL_BYTES = 256 };

/* A benchmark case of a contract, with other dims where a shape says so. */
struct shaped {
    struct kernel_case c; /* points into what follows */
    struct case_arg args[ARGS_MAX];
    _Alignas(16) unsigned char params[BLOCK_MAX];
    char label[LABEL_BYTES];
};

/* Microseconds. */
struct timing {
    double median, p10, p90;
};

struct bench {
    nj_context *ctx;
    nj_stream *stream;
    nj_event *from, *to;
    void *flush; /* written before a run whose caches are to be cold */
    uint64_t seed;
    double copy_gbs;          /* rate of a long copy, bytes read and written */
    double product_gflops[3]; /* rate of a large GEMM, by enum nj_dtype; 0: none here */
    int32_t product_dim;      /* its M, N and K */
};

/* Opens the device, and measures both roofs. The sentence of a failure is the context's. */
int bench_open(struct bench *b, enum nj_device_kind device);
int bench_roofs(struct bench *b);
void bench_close(struct bench *b);

/* Copies a case and sets the dims that `shape` ("B=8 S=1024", "" for none) names and its op has;
 * NAME=null passes NULL for an argument. 0, or NJ_E_ARG with a sentence in `why`. */
int shape_case(const struct kernel_case *c, const char *shape, struct shaped *out, char *why,
               size_t why_bytes);
/* Reads the next "NAME=VALUE" at *at into name and value: 1, or 0 at the end, or -1. */
int shape_next(const char **at, char name[32], char value[32]);
/* Index of a dim or an argument among the parameters of a key, or -1. */
int shape_param(const struct subject *s, const char *name);

int bench_gemm(struct bench *b, const struct nj_gemm *g, struct timing *t);
/* Reads "M=2048 N=512 K=64"; 0, or -1 where it is none. */
int gemm_shape(const char *text, int32_t shape[3]);
/* Times GEMMs of these shapes, or of those that models have where there are none, and prints a table. */
int bench_gemms(struct bench *b, int count, const int32_t (*shapes)[3]);

int bench_case(struct bench *b, const struct shaped *s, struct timing *warm, struct timing *cold);
/* Times launches of a case on the host: nanoseconds from call to return. */
int bench_launches(struct bench *b, const struct shaped *s, struct timing *ns);
/* A copy of as many bytes as the case moves (2 GiB at most). */
int bench_copy(struct bench *b, const struct kernel_case *c, struct timing *t);
/* The least time that the roofs allow, in microseconds; whether bytes are what takes it. */
double bench_floor(const struct bench *b, const struct kernel_case *c, int *by_bytes);

#endif
