/* SPDX-License-Identifier: Apache-2.0
 *
 * harness.h: the harness over the kernel table: every key that gen lists, run on a device and
 * compared with its reference in double.
 *
 *   harness.c           options, the order of cases, crashes, the report
 *   harness_case.c      one case: guarded buffers, launch, what must not have changed
 *   harness_fill.c      inputs from the fill rules of docs/contracts.md
 *   harness_compare.c   stored types, comparison of outputs
 *   harness_selftest.c  wrong ops, each of which must fail
 */
#ifndef NOJIT_HARNESS_H
#define NOJIT_HARNESS_H

#include <stddef.h>
#include <stdint.h>

#include "kernel_case.h"
#include "nojit.h"

struct options {
    enum nj_device_kind device;
    const char *filter; /* glob on keys */
    uint64_t seed;
    int list, self_test;
    const char *json; /* file, or NULL */
};

/* A case with what is known of its key. */
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
    int device_lost;   /* nothing can run on this context any more */
    double worst;      /* largest error of its outputs */
    char message[400]; /* why it failed */
};

/* ---- harness_compare.c ---- */
size_t type_bytes(enum case_type type);
/* The nearest value that the stored type holds. */
double round_to_type(double x, enum case_type type, int lp_is_f16);
/* Between host values (double[], or int32_t[] for CASE_I32) and bytes as stored. Values must be
 * rounded already. */
void encode(unsigned char *bytes, const void *values, int64_t elements, enum case_type type,
            int lp_is_f16);
double decode(const unsigned char *bytes, int64_t index, enum case_type type, int lp_is_f16);
/* Compares an output with want. Returns its error, that of an output with a tolerance of its own as
 * the same share of the case's; above the tolerance, or where a NaN or an
 * infinity does not match, writes where into message, else leaves it alone. */
double compare_output(const struct case_arg *a, const unsigned char *got, const void *want,
                      double tolerance, int lp_is_f16, char *message, size_t message_bytes);

/* ---- harness_fill.c ---- */
void *allocate(size_t count, size_t bytes); /* zeroed; ends the program when there is no memory */
uint64_t stream_of(uint64_t seed, const char *key, const char *label, const char *arg);
/* Host values of one argument that depends on no other. */
void fill_plain(const struct case_arg *a, uint64_t stream, int64_t elements, void *out);
void fill_sorted(const struct case_arg *a, const int32_t *ids, int64_t ids_count, int32_t *out);
/* Host values, rounded to their stored types, of all arguments that the op reads: values[i] is
 * double[] or int32_t[], or NULL for an argument passed as NULL. Returns 0, or -1 with a message.
 */
int fill_case(const struct subject *s, uint64_t seed, int lp_is_f16, void **values, char *message,
              size_t message_bytes);
int arg_index(const struct kernel_case *c, const char *name); /* or -1 */

/* ---- harness_case.c ---- */
struct subject subject_of(const struct kernel_case *c); /* of a case of the table */
void run_case(nj_context *ctx, nj_stream *stream, const struct subject *s, uint64_t seed,
              struct result *out);
void set_pointer(const struct subject *s, unsigned char *params, uint32_t arg, const void *ptr);

/* ---- harness_selftest.c: exit status ---- */
int run_self_test(void);

/* ---- harness.c ---- */
/* Runs cases[0..count) of one key in children, so that a crash is that case's failure. */
void run_in_children(const struct subject *subjects, uint32_t count, uint64_t seed,
                     struct result *shared);
struct result *shared_results(uint32_t count);

#endif
