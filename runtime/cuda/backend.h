/* SPDX-License-Identifier: Apache-2.0
 *
 * backend.h: what the files of the CUDA backend share.
 *
 *   library.c       finds and opens the driver, cuBLASLt and NCCL (library.h)
 *   device.c        opens a GPU                                modules.c       loads and resolves every kernel
 *   cuda_context.c  its context, errors of the driver          identity.c      what a self-test holds for
 *   cuda_stream.c   memory, streams, events                    cuda_launch.c   kernels
 *   cuda_gemm.c     matrix products (cuda_gemm.h)              graph.c         capture
 *   nccl.c          communicators                              links.c         what a GPU is connected by
 */
#ifndef NOJIT_CUDA_BACKEND_H
#define NOJIT_CUDA_BACKEND_H

#include "../internal.h"
#include "api.h"

enum {
    NJ_CUDA_MIN_DRIVER = 13000,
};

struct nj_cuda {
    struct nj_driver driver;
    struct nj_cublaslt lt;
    struct nj_nccl nccl; /* functions of NCCL; set if info.comm_version is not 0 */
    int device, retained;
    void *context; /* primary context, shared with all other users of CUDA in the process */
    void *lt_handle;
    void *pinned; /* host memory of cuda_gemm_check.c, from the first GEMM on */
    void (*log)(void *user, const char *line); /* log of the options, or NULL */
    void *log_user;
    void **modules; /* modules by kernel number; NULL: not for this SM */
    void **functions;
    uint32_t *least_shared;       /* least bytes of dynamic shared memory, by kernel number */
    char lost[NJ_SENTENCE_BYTES]; /* first error after which the driver refuses all calls */
};

static inline struct nj_cuda *nj_cuda_of(const nj_context *ctx)
{
    return ctx->state;
}

/* Make the context current on this thread; check a result. Both return 0 or a code with a sentence that names the
 * error; `what` says which call, with its sizes. */
int nj_cuda_enter(nj_context *ctx);
int nj_cuda_check(nj_context *ctx, int result, const char *what);

int nj_cuda_open_driver(nj_context *ctx, struct nj_driver *out);
int nj_cuda_open_cublaslt(nj_context *ctx, struct nj_cublaslt *out);
int nj_cuda_open_nccl(nj_context *ctx, struct nj_nccl *out);
/* Open the management library; NJ_E_LIBRARY, without a sentence, if it is not there. */
int nj_cuda_open_nvml(struct nj_nvml *out);
int nj_cuda_load_modules(nj_context *ctx, const struct nj_options *options);
/* Replace a kernel's code by the code assembled at -O1. Returns NJ_E_NO_CODE where none is embedded, and leaves the
 * kernel as it is if it fails. No graph may hold the kernel. */
int nj_cuda_load_spare(nj_context *ctx, uint32_t id);
void nj_cuda_unload_modules(nj_context *ctx);
/* Set info.cache_key from the card, its driver, cuBLASLt and the hash of an index. */
void nj_cuda_cache_key(nj_context *ctx, uint64_t index_hash);

size_t nj_cuda_budget(nj_context *ctx, enum nj_memory kind);
int nj_cuda_clear(nj_context *ctx, uint64_t ptr, size_t bytes, const char *what);
int nj_cuda_alloc(nj_context *ctx, enum nj_memory kind, size_t bytes, void **out);
void nj_cuda_free(nj_context *ctx, enum nj_memory kind, void *ptr);
int nj_cuda_copy(nj_stream *s, void *dst, const void *src, size_t bytes);
int nj_cuda_zero(nj_stream *s, void *dst, size_t bytes);
int nj_cuda_stream_create(nj_stream *s);
void nj_cuda_stream_destroy(nj_stream *s);
int nj_cuda_stream_sync(nj_stream *s);
int nj_cuda_event_create(nj_event *e);
void nj_cuda_event_destroy(nj_event *e);
int nj_cuda_event_record(nj_event *e, nj_stream *s);
int nj_cuda_stream_wait(nj_stream *s, nj_event *e);
int nj_cuda_event_sync(nj_event *e);
int nj_cuda_event_elapsed_ms(nj_event *from, nj_event *to, float *ms);
int nj_cuda_graph_begin(nj_stream *s);
int nj_cuda_graph_end(nj_stream *s, nj_graph *g);
int nj_cuda_graph_launch(nj_graph *g, nj_stream *s);
void nj_cuda_graph_destroy(nj_graph *g);
int nj_cuda_tile_map(nj_stream *s, uint32_t id, void *map, const struct nj_tiling *of);
int nj_cuda_has_kernel(const nj_context *ctx, uint32_t id);
int nj_cuda_launch(nj_stream *s, uint32_t id, const uint32_t grid[3], uint32_t shared_bytes,
                   const void *params);
int nj_cuda_gemm_prepare(nj_context *ctx, struct nj_gemm_plan *plan);
int nj_cuda_gemm_run(nj_stream *s, const struct nj_gemm_plan *plan,
                     const struct nj_gemm_operands *x);
void nj_cuda_gemm_release(nj_context *ctx, struct nj_gemm_plan *plan);
int nj_cuda_comm_id(nj_context *ctx, unsigned char *id);
int nj_cuda_comm_create(nj_comm *c, const unsigned char *id);
int nj_cuda_comm_alloc(nj_comm *c, size_t bytes, void **out);
void nj_cuda_comm_free(nj_comm *c, void *memory);
int nj_cuda_comm_check(nj_comm *c);
void nj_cuda_comm_destroy(nj_comm *c);
int nj_cuda_transfer(nj_comm *c, nj_stream *s, const struct nj_transfer *t);
int nj_cuda_comm_aside(nj_comm *c, nj_stream *s, nj_stream **out);
int nj_cuda_comm_join(nj_comm *c, nj_stream *s);

#endif
