/* SPDX-License-Identifier: Apache-2.0
 *
 * cases.h: kernels held against their references in double, as the contracts' tests say: what the harness does with
 * all of them, and the self-test of a device with the smallest. Programs that call it are linked with NJ_ORACLES.
 *
 *   case_run.c       one case: guarded buffers, launch, what must not have changed
 *   case_fill.c      inputs from the fill rules of docs/contracts.md
 *   case_compare.c   stored types, comparison of outputs
 *   selftest_gemm.c  the same for GEMMs
 *   selftest.c       which cases a device is tried with
 *   selftest_count.c what comes of a trial
 */
#ifndef NOJIT_SELFTEST_CASES_H
#define NOJIT_SELFTEST_CASES_H

#include <stddef.h>
#include <stdint.h>

#include "kernel_case.h"
#include "nojit.h"

/* A case with the facts about its key. */
struct subject {
    const char *key, *op;
    const struct nj_param *params;
    uint16_t param_bytes, param_count;
    const struct case_names *names;
    const struct kernel_case *c;
};

enum status { NOT_RUN, PASSED, FAILED };
struct result {
    enum status status;
    int device_lost;   /* 1: nothing can run on this context any more */
    int no_memory;     /* 1: the host has no memory, which says nothing about the kernel */
    double worst;      /* largest error of its outputs */
    char message[400]; /* reason of the failure */
};

/* ---- case_compare.c ---- */
size_t nj_case_type_bytes(enum case_type type);
/* Return the nearest value that the stored type holds. */
double nj_case_round_to_type(double x, enum case_type type, int lp_is_f16);
/* Convert between host values (double[], or int32_t[] for CASE_I32) and bytes as stored. Values must be rounded
 * already. */
void nj_case_encode(unsigned char *bytes, const void *values, int64_t elements, enum case_type type,
                    int lp_is_f16);
double nj_case_decode(const unsigned char *bytes, int64_t index, enum case_type type,
                      int lp_is_f16);
/* Compare an output with want, and return its error; the error of an output with a tolerance of its own is scaled to
 * the case's tolerance. If the error exceeds the tolerance, or a NaN or an infinity does not match, describe the
 * place in message, else leave it alone. */
double nj_case_compare_output(const struct case_arg *a, const unsigned char *got, const void *want,
                              double tolerance, int lp_is_f16, char *message, size_t message_bytes);
/* Set wanted denormals to zero where the device has returned zero: Vulkan leaves it to the driver whether they are
 * flushed. */
void nj_case_flush(const struct case_arg *a, const unsigned char *got, double *want, int lp_is_f16);

/* ---- case_fill.c ---- */
void *nj_case_allocate(size_t count, size_t bytes); /* zeroed, or NULL */
uint64_t nj_case_stream_of(uint64_t seed, const char *key, const char *label, const char *arg);
/* Fill the host values of an argument that depends on no other. */
void nj_case_fill_plain(const struct case_arg *a, uint64_t stream, int64_t elements, void *out);
/* Fill an argument that is derived from ids. Returns 0, or -1: no memory. */
int nj_case_fill_sorted(const struct case_arg *a, const int32_t *ids, int64_t ids_count,
                        int32_t *out);
/* Fill the host values, rounded to their stored types, of all arguments that the op reads: values[i] is double[] or
 * int32_t[], or NULL for an argument passed as NULL. Returns 0, or -1 with a message. */
int nj_case_fill_case(const struct subject *s, uint64_t seed, int lp_is_f16, void **values,
                      char *message, size_t message_bytes);
int nj_case_arg_index(const struct kernel_case *c, const char *name); /* or -1 */

/* ---- case_run.c ---- */
struct subject nj_case_subject_of(const struct kernel_case *c); /* c is a case of the table */
void nj_case_run_case(nj_context *ctx, nj_stream *stream, const struct subject *s, uint64_t seed,
                      struct result *out);
void nj_case_set_pointer(const struct subject *s, unsigned char *params, uint32_t arg,
                         const void *ptr);

/* ---- selftest_gemm.c ---- */
/* Test the GEMMs. Returns 0, or a code whose sentence is in t. */
int nj_selftest_gemms(nj_context *ctx, nj_stream *s, struct nj_self_test *t);

/* ---- selftest_count.c ---- */
/* Count a trial and report it. Returns NJ_E_DEVICE if it failed and ends the test, else 0. */
int nj_selftest_count(nj_context *ctx, struct nj_self_test *t, const struct nj_trial *trial);
/* Record that a trial could not be made for lack of memory, and return NJ_E_NOMEM. */
int nj_selftest_no_memory(struct nj_self_test *t, const struct nj_trial *trial);

#endif
