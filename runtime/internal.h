/* SPDX-License-Identifier: Apache-2.0
 *
 * internal.h: what the files of the runtime share: the context, the table that a backend fills, and
 * the index as it is read. Public functions check their arguments and then go through ctx->backend;
 * a backend never checks again and never sees a stream of another context.
 *
 *   context.c  choice of backend       index.c   embedded kernels    gemm.c   prepared products
 *   stream.c   memory, streams, ...    launch.c  kernels by number   error_text.c  codes, sentences
 *   comm.c     ranks                   device_speed.c  of GEMMs, copies   device_check.c  whether kernels are right
 *   process.c  environment, host memory   gemm_table.c  chosen algorithms, in a file   kept.c  other files
 *   compilers.c  those that are mapped     sized.c  structs of other versions
 */
#ifndef NOJIT_INTERNAL_H
#define NOJIT_INTERNAL_H

#include <sys/uio.h>

#include "base/try.h"
#include "index.h"
#include "nojit.h"

#define NJ_SENTENCE_BYTES 1024

struct nj_gemm_plan;

/* Collective operations of ranks. */
enum nj_transfer_kind { NJ_ALL_TO_ALL, NJ_ALL_GATHER, NJ_BROADCAST };
struct nj_transfer {
    enum nj_transfer_kind kind;
    void *recv;
    const void *send;
    size_t bytes;
    int root;
};

struct nj_speed {
    double gemm_flops, copy_bytes; /* rates per second; copy_bytes counts bytes read and written */
};

/* Functions of a backend. All are set but tile_map, load_spare, pace and those of communicators that say so; an
 * operation that a backend lacks returns NJ_E_UNSUPPORTED with a sentence. */
struct nj_backend {
    const char *name;
    int (*open)(nj_context *ctx,
                const struct nj_options *options); /* close is called even if this fails */
    void (*close)(nj_context *ctx);
    size_t (*budget)(nj_context *ctx, enum nj_memory kind);
    size_t (*gemm_workspace_bytes)(const nj_context *ctx);

    int (*alloc)(nj_context *ctx, enum nj_memory kind, size_t bytes, void **out);
    void (*free)(nj_context *ctx, enum nj_memory kind, void *ptr);
    int (*copy)(nj_stream *s, void *dst, const void *src, size_t bytes);
    int (*zero)(nj_stream *s, void *dst, size_t bytes);

    int (*stream_create)(nj_stream *s);
    void (*stream_destroy)(nj_stream *s);
    int (*stream_sync)(nj_stream *s);
    int (*event_create)(nj_event *e);
    void (*event_destroy)(nj_event *e);
    int (*event_record)(nj_event *e, nj_stream *s);
    int (*stream_wait)(nj_stream *s, nj_event *e);
    int (*event_sync)(nj_event *e);
    int (*event_elapsed_ms)(nj_event *from, nj_event *to, float *ms);
    int (*graph_begin)(nj_stream *s);
    int (*graph_end)(nj_stream *s, nj_graph *g);
    int (*graph_launch)(nj_graph *g, nj_stream *s);
    void (*graph_destroy)(nj_graph *g);

    int (*tile_map)(nj_stream *s, uint32_t id, void *map, const struct nj_tiling *of); /* or NULL */
    int (*has_kernel)(const nj_context *ctx, uint32_t id);
    int (*launch)(nj_stream *s, uint32_t id, const uint32_t grid[3], uint32_t shared_bytes,
                  const void *params);
    int (*gemm_prepare)(nj_context *ctx, struct nj_gemm_plan *plan);
    int (*gemm_run)(nj_stream *s, const struct nj_gemm_plan *plan,
                    const struct nj_gemm_operands *x);
    void (*gemm_release)(nj_context *ctx, struct nj_gemm_plan *plan);

    /* Replace the code of a kernel by its spare code, assembled at -O1. NJ_E_NO_CODE: none is embedded. May be NULL. */
    int (*load_spare)(nj_context *ctx, uint32_t id);

    /* With info.paced: submit work in pieces that fit this speed. May be NULL. */
    void (*pace)(nj_context *ctx, const struct nj_speed *speed);

    int (*comm_id)(nj_context *ctx, unsigned char *id);
    int (*comm_create)(nj_comm *c,
                       const unsigned char *id); /* destroy is called even if this fails */
    int (*comm_alloc)(nj_comm *c, size_t bytes, void **out); /* NULL: alloc is used */
    void (*comm_free)(nj_comm *c, void *memory);
    int (*comm_check)(nj_comm *c); /* or NULL */
    void (*comm_destroy)(nj_comm *c);
    int (*transfer)(nj_comm *c, nj_stream *s, const struct nj_transfer *t);
    /* NULL: there is no side stream */
    int (*comm_aside)(nj_comm *c, nj_stream *s, nj_stream **out);
    int (*comm_join)(nj_comm *c, nj_stream *s); /* NULL: there is no side stream */
};
extern const struct nj_backend nj_backend_cpu;
extern const struct nj_backend nj_backend_cuda;
extern const struct nj_backend nj_backend_vulkan;

/* A prepared shape; state belongs to the backend. chosen: `choice` is the algorithm that the backend must take, or
 * that it has found by timing; only the backend knows what the bytes mean. */
enum { NJ_GEMM_TEXT_BYTES = 160, NJ_GEMM_CHOICE_BYTES = 72 };
struct nj_gemm_plan {
    struct nj_gemm shape;
    void *state;
    unsigned char choice[NJ_GEMM_CHOICE_BYTES];
    int chosen;
};
/* Hash table with open addressing; slots is a power of two, and at most half of them are used. */
struct nj_gemm_table {
    struct nj_gemm_plan **slot;
    size_t slots, count;
};
void nj_gemm_table_free(nj_context *ctx);
/* Choices by shape as text, read from a file or found by timing. */
struct nj_gemm_choice_row {
    char shape[NJ_GEMM_TEXT_BYTES];
    unsigned char choice[NJ_GEMM_CHOICE_BYTES];
};
struct nj_gemm_choices {
    struct nj_gemm_choice_row **row; /* rows in order of arrival */
    size_t count, capacity;
    void *by_shape; /* the same rows as a search tree of search.h */
};
/* Return the choice for a shape, or NULL if none is known. */
const unsigned char *nj_gemm_choice(const nj_context *ctx, const char *shape);
int nj_gemm_choose(nj_context *ctx, const char *shape, const unsigned char *choice);
void nj_gemm_choices_free(nj_context *ctx);
/* Write a shape as text, "NT lp->f32 M=128 N=896 K=64 ld 64,64,896 beta 1 scale 1", for NJ_GEMM_TEXT_BYTES. */
void nj_gemm_describe(const struct nj_gemm *g, char *out, size_t bytes);
/* Return the factor of op(A) op(B). */
float nj_gemm_scale(const struct nj_gemm *g);
size_t nj_dtype_bytes(enum nj_dtype dtype);
/* Measure the speed of a float32 GEMM with these sides, by the device's clock; nj_speed() also measures copies
 * within device memory. */
enum { NJ_SPEED_SIDE = 1024 };
int nj_gemm_speed(nj_context *ctx, double *gflops);
int nj_speed(nj_context *ctx, struct nj_speed *out);
/* Run the self-test of an open device if it is wanted. Returns 0, or a code with the test's sentence. With
 * info.paced the device is timed. */
int nj_tested(nj_context *ctx, const struct nj_options *options);
/* Call the backend's load_spare. */
int nj_spare_load(nj_context *ctx, uint32_t id);
/* Tell options->doing, if it is set, what begins. */
void nj_doing(const struct nj_options *options, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- files of the cache folder ---- */
/* Write the path of this device's file of a kind ("tested"). Returns 0 if there is none, because the device has no
 * key or no folder is given. */
int nj_kept_path(const nj_context *ctx, const char *folder, const char *kind, char *out,
                 size_t bytes);
/* Create the folder if necessary, and replace the file atomically by the parts. A failure leaves the old file and is
 * ignored, since the cache is only a convenience. */
void nj_kept_write(const char *path, const struct iovec *part, int count);

struct nj_context {
    const struct nj_backend *backend; /* NULL while none is open */
    void *state;                      /* state of the backend */
    struct nj_device_info info;
    struct nj_gemm_table gemms;
    struct nj_gemm_choices choices;
    /* Key of the last kernel enqueued: an asynchronous error came from it or from an earlier one. */
    const char *last_key;
    int graphs_off; /* 1: NOJIT_GRAPH=0 */
    int gemm_tune;  /* value of nj_options; 0 during a self-test */
    char error[NJ_SENTENCE_BYTES];
};
struct nj_stream {
    nj_context *ctx;
    void *handle;           /* handle of the backend */
    void *workspace;        /* workspace of the GEMMs on this stream */
    int dependent_launches; /* kernels may begin before the one ahead of them has ended */
    int captured;           /* 1: work becomes part of a graph */
};
struct nj_event {
    nj_context *ctx;
    void *handle;
    int64_t ns; /* CPU: time at which the event was recorded */
};
struct nj_graph {
    nj_context *ctx;
    void *handle;
};
struct nj_comm {
    nj_context *ctx;
    int rank, ranks;
    uint64_t received; /* number of bytes received */
    void *handle;      /* handle of the backend, to which all fields below belong */
    nj_stream aside;
    nj_event begun, ended;         /* begin and end of the work on the side stream */
    int under_way;                 /* 1: the side stream has work that s has not waited for */
    struct nj_comm_memory *memory; /* list of what nj_comm_alloc() has allocated */
};

/* Return NJ_E_NOMEM if that much memory is not available now. */
int nj_budget_check(nj_context *ctx, enum nj_memory kind, size_t bytes);
/* Record a sentence and return code. */
int nj_fail(nj_context *ctx, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- structs whose size the program passes ---- */
/* Copy a struct of the program, and zero what it does not have. Returns NULL, or what is wrong with it: "has a size
 * that it cannot have". */
const char *nj_sized_read(void *ours, size_t our_bytes, const void *theirs, size_t bytes);
/* Fill a struct of the program, and zero what only the program has. Returns 0, or NJ_E_ARG for a size that the struct
 * cannot have. */
int nj_sized_write(void *theirs, size_t bytes, const void *ours, size_t our_bytes);

/* ---- index ---- */
struct nj_index {
    const struct nji_header *header;
    const struct nji_entry *entries;
    const struct nji_arch *archs;
    const struct nji_record *records;
    const struct nji_param *params;
    const char *strings;
    const unsigned char *blobs;
};
/* Check every offset, string and hash, so that later readers may trust them. Returns 0, or NJ_E_INDEX with the
 * reason in why (of NJ_SENTENCE_BYTES). */
int nj_index_open(const void *index, size_t index_bytes, const void *blobs, size_t blobs_bytes,
                  struct nj_index *out, char *why);
/* Open the index in this binary. Also returns NJ_E_NO_CODE: linked without blobs.S. */
int nj_index_embedded(struct nj_index *out, char *why);
/* Open the index of the Vulkan shaders in this binary; its only arch has SM 0. */
int nj_shaders_embedded(struct nj_index *out, char *why);
const struct nji_entry *nj_index_find(const struct nj_index *index, const char *key);
/* Return the arch of the index whose code runs on this SM: the exact one, else the highest lower minor of the same
 * major. The result is an index into archs, or -1. */
int nj_index_arch_for(const struct nj_index *index, int sm);
/* Write a name such as "sm_90a"; out has 16 bytes. */
void nj_arch_name(const struct nji_arch *arch, char *out);
/* Write a list such as "sm_75, sm_90a", cut at bytes. */
void nj_arch_list(const struct nj_index *index, char *out, size_t bytes);

/* ---- host ---- */
/* Return the bytes of a field of /proc/meminfo ("MemAvailable"), 0 if it cannot be read. */
size_t nj_meminfo(const char *field);
/* Return 1 if the environment forbids the driver's JIT and its cache of earlier compilations. */
int nj_jit_is_forbidden(void);

#endif
