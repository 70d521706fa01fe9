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
 *   compilers.c  those that are mapped
 */
#ifndef NOJIT_INTERNAL_H
#define NOJIT_INTERNAL_H

#include <sys/uio.h>

#include "base/try.h"
#include "index.h"
#include "nojit.h"

#define NJ_SENTENCE_BYTES 1024

struct nj_gemm_plan;
struct nj_gemm_operands {
    void *c;
    const void *a, *b;
    const void *a_scale, *b_scale; /* NULL but for NJ_F8 */
};

/* What ranks do together. */
enum nj_transfer_kind { NJ_ALL_TO_ALL, NJ_ALL_GATHER, NJ_BROADCAST };
struct nj_transfer {
    enum nj_transfer_kind kind;
    void *recv;
    const void *send;
    size_t bytes;
    int root;
};

struct nj_speed {
    double gemm_flops, copy_bytes; /* per second; bytes are read and written */
};

/* One function per concern. All but tile_map, load_spare, pace and what says so of communicators are set; what a
 * backend cannot do returns NJ_E_UNSUPPORTED with a sentence. */
struct nj_backend {
    const char *name;
    int (*open)(nj_context *ctx,
                const struct nj_options *options); /* close is called even if it fails */
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

    /* Replace the code of a kernel by its spare code, assembled at -O1. NJ_E_NO_CODE: there is none here. Or NULL. */
    int (*load_spare)(nj_context *ctx, uint32_t id);

    /* With info.paced: work is submitted in pieces that fit this speed. */
    void (*pace)(nj_context *ctx, const struct nj_speed *speed);

    int (*comm_id)(nj_context *ctx, unsigned char *id);
    int (*comm_create)(nj_comm *c,
                       const unsigned char *id); /* destroy is called even if it fails */
    int (*comm_alloc)(nj_comm *c, size_t bytes, void **out); /* NULL: as alloc */
    void (*comm_free)(nj_comm *c, void *memory);
    int (*comm_check)(nj_comm *c); /* or NULL */
    void (*comm_destroy)(nj_comm *c);
    int (*transfer)(nj_comm *c, nj_stream *s, const struct nj_transfer *t);
    int (*comm_aside)(nj_comm *c, nj_stream *s, nj_stream **out); /* NULL: nothing is ever aside */
    int (*comm_join)(nj_comm *c, nj_stream *s);                   /* alike */
};
extern const struct nj_backend nj_backend_cpu;
extern const struct nj_backend nj_backend_cuda;
extern const struct nj_backend nj_backend_vulkan;

/* A prepared shape; state belongs to the backend. chosen: choice is what the backend is to take, or
 * has taken by timing; what the bytes mean is its own business. */
enum { NJ_GEMM_TEXT_BYTES = 160, NJ_GEMM_CHOICE_BYTES = 72 };
struct nj_gemm_plan {
    struct nj_gemm shape;
    void *state;
    unsigned char choice[NJ_GEMM_CHOICE_BYTES];
    int chosen;
};
/* Open addressing; slots is a power of two and at most half full. */
struct nj_gemm_table {
    struct nj_gemm_plan **slot;
    size_t slots, count;
};
void nj_gemm_table_free(nj_context *ctx);
/* Choices by shape as text: read from a file or made by timing. */
struct nj_gemm_choice_row {
    char shape[NJ_GEMM_TEXT_BYTES];
    unsigned char choice[NJ_GEMM_CHOICE_BYTES];
};
struct nj_gemm_choices {
    struct nj_gemm_choice_row **row; /* as they came */
    size_t count, capacity;
    void *by_shape; /* the same rows, as a tree of search.h */
};
const unsigned char *nj_gemm_choice(const nj_context *ctx, const char *shape); /* or NULL */
int nj_gemm_choose(nj_context *ctx, const char *shape, const unsigned char *choice);
void nj_gemm_choices_free(nj_context *ctx);
/* "NT lp->f32 M=128 N=896 K=64 ld 64,64,896 beta 1 scale 1", for NJ_GEMM_TEXT_BYTES. */
void nj_gemm_describe(const struct nj_gemm *g, char *out, size_t bytes);
/* What multiplies op(A) op(B). */
float nj_gemm_scale(const struct nj_gemm *g);
size_t nj_dtype_bytes(enum nj_dtype dtype);
/* Of a float32 GEMM with these sides, by the device's clock; and of copies within its memory, too. */
enum { NJ_SPEED_SIDE = 1024 };
int nj_gemm_speed(nj_context *ctx, double *gflops);
int nj_speed(nj_context *ctx, struct nj_speed *out);
/* Of a device that is open: 0, or the sentence of its self-test, where that is wanted. With info.paced it is timed. */
int nj_tested(nj_context *ctx, const struct nj_options *options);
/* The backend's load_spare. */
int nj_spare_load(nj_context *ctx, uint32_t id);
/* Tells options->doing, if there is one, what begins. */
void nj_doing(const struct nj_options *options, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- files of the cache folder ---- */
/* The path of this device's file of a kind ("tested"). 0: there is none, as it has no key or no folder is given. */
int nj_kept_path(const nj_context *ctx, const char *folder, const char *kind, char *out,
                 size_t bytes);
/* Makes the folder, and replaces the file at once by the parts; a failure leaves what was there: what is kept is a
 * convenience. */
void nj_kept_write(const char *path, const struct iovec *part, int count);

struct nj_context {
    const struct nj_backend *backend; /* NULL while none is open */
    void *state;                      /* of the backend */
    struct nj_device_info info;
    struct nj_gemm_table gemms;
    struct nj_gemm_choices choices;
    const char *last_key; /* last enqueued: an asynchronous error came from it or before it */
    int graphs_off;       /* NOJIT_GRAPH=0 */
    int gemm_tune;        /* of nj_options; 0 during a self-test */
    char error[NJ_SENTENCE_BYTES];
};
struct nj_stream {
    nj_context *ctx;
    void *handle;    /* of the backend */
    void *workspace; /* of GEMMs on this stream */
    int early;       /* kernels may begin before the one ahead of them has ended */
    int captured;    /* work becomes a graph */
};
struct nj_event {
    nj_context *ctx;
    void *handle;
    int64_t ns; /* CPU: when it was recorded */
};
struct nj_graph {
    nj_context *ctx;
    void *handle;
};
struct nj_comm {
    nj_context *ctx;
    int rank, ranks;
    uint64_t received; /* bytes */
    void *handle;      /* of the backend, as all below */
    nj_stream aside;
    nj_event begun, ended;         /* of what is there */
    int under_way;                 /* and s has not waited for it */
    struct nj_comm_memory *memory; /* of nj_comm_alloc() */
};

/* NJ_E_NOMEM if that much cannot be had now. */
int nj_budget_check(nj_context *ctx, enum nj_memory kind, size_t bytes);
/* Records the sentence and returns code. */
int nj_fail(nj_context *ctx, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

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
/* Checks every offset, string and hash, so that the rest may follow them. 0, or NJ_E_INDEX with the
 * reason in why (of NJ_SENTENCE_BYTES). */
int nj_index_open(const void *index, size_t index_bytes, const void *blobs, size_t blobs_bytes,
                  struct nj_index *out, char *why);
/* The index in this binary. Also NJ_E_NO_CODE: linked without blobs.S. */
int nj_index_embedded(struct nj_index *out, char *why);
/* The same of the shaders for Vulkan, whose one arch has SM 0. */
int nj_shaders_embedded(struct nj_index *out, char *why);
const struct nji_entry *nj_index_find(const struct nj_index *index, const char *key);
/* The arch of the index whose code runs on this SM: the exact one, else the highest lower minor of
 * the same major. Index into archs, or -1. */
int nj_index_arch_for(const struct nj_index *index, int sm);
/* "sm_90a"; out has 16 bytes. */
void nj_arch_name(const struct nji_arch *arch, char *out);
/* "sm_75, sm_90a"; cut at bytes. */
void nj_arch_list(const struct nj_index *index, char *out, size_t bytes);

/* ---- host ---- */
/* Bytes of a field of /proc/meminfo ("MemAvailable"), 0 if it cannot be read. */
size_t nj_meminfo(const char *field);
/* 1: the environment forbids the driver's JIT, and the code that it kept of an earlier one. */
int nj_jit_is_forbidden(void);

#endif
