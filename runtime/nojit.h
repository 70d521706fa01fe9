/* SPDX-License-Identifier: Apache-2.0
 *
 * nojit.h: load and run kernels that were compiled before the program started.
 *
 * A program links libnojit.a with the objects that `gen` and `pack` made from its kernel contracts.
 * Those bring the kernel table (nj_kernels), typed launchers (nojit_ops.h) and machine code, in
 * sections of the binary. nj_context_create() opens a device and loads and resolves every kernel;
 * after that nothing is ever compiled or loaded, and a missing kernel is an error, not a wait.
 *
 * Errors:  functions that can fail return 0 or a negative NJ_E_ code; nj_context_error() gives the
 *          sentence: what, where, what to do. Nothing here exits, aborts or prints (except through
 *          nj_options.log).
 * Threads: a context and its streams belong to one thread at a time.
 * Streams: functions that take a stream enqueue on it and return; results are there after
 *          nj_stream_sync(). On the CPU backend work is done when the call returns. A context
 *          outlives its streams, events, graphs and memory.
 */
#ifndef NOJIT_H
#define NOJIT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NOJIT_VERSION "0.1.0"

/* X(name, code, text). Codes are stable; new ones are added at the end. */
#define NJ_ERRORS(X)                                                                               \
    X(NJ_OK, 0, "success")                                                                         \
    X(NJ_E_ARG, -1, "invalid argument")                                                            \
    X(NJ_E_NOMEM, -2, "out of memory")                                                             \
    X(NJ_E_NO_DEVICE, -3, "no usable device")                                                      \
    X(NJ_E_DRIVER, -4, "the GPU driver cannot be used")                                            \
    X(NJ_E_LIBRARY, -5, "a required library cannot be used")                                       \
    X(NJ_E_NO_CODE, -6, "no machine code for this GPU")                                            \
    X(NJ_E_NO_KERNEL, -7, "no such kernel")                                                        \
    X(NJ_E_INDEX, -8, "the embedded kernel index is damaged")                                      \
    X(NJ_E_DEVICE, -9, "the device reported an error")                                             \
    X(NJ_E_GEMM, -10, "GEMM not prepared or not possible")                                         \
    X(NJ_E_UNSUPPORTED, -11, "not supported by this backend")                                      \
    X(NJ_E_IO, -12, "input or output failed")                                                      \
    X(NJ_E_FORMAT, -13, "malformed input")

enum nj_error {
#define NJ_ENUM(name, code, text) name = (code),
    NJ_ERRORS(NJ_ENUM)
#undef NJ_ENUM
};

/* Text of a code ("unknown error" for one that is not listed); name is "NJ_E_ARG" and so on.
 * Never NULL. */
const char *nj_error_text(int code);
const char *nj_error_name(int code);

typedef struct nj_context nj_context; /* one device, its loaded kernels, its memory */
typedef struct nj_stream nj_stream;   /* work in order on one context */
typedef struct nj_event nj_event;     /* a point in a stream, with its time */
typedef struct nj_graph nj_graph;     /* captured work, launched as one */
typedef struct nj_comm nj_comm;       /* one rank of several processes that share work */

/* Element types. NJ_LP is the 16-bit type of the device: bfloat16, or float16 on sm_75. NJ_F8 is
 * e4m3, for GEMM operands only. */
enum nj_dtype { NJ_F32 = 0, NJ_LP = 1, NJ_F8 = 2 };
/* Scales that GEMMs of NJ_F8 take: none; a float32 for each row; UE8M0 for each block of 32 elements of a row, as
 * nj_e4m3_blocks() makes them of powers of two for rows; a float32 for all rows. */
enum nj_f8_scales { NJ_F8_NONE = 0, NJ_F8_ROWS = 1, NJ_F8_BLOCKS = 2, NJ_F8_ONE = 3 };

/* Forbid the driver's JIT for this process: sets CUDA_DISABLE_PTX_JIT=1, CUDA_CACHE_DISABLE=1 and
 * CUDA_FORCE_PRELOAD_LIBRARIES=0, and VK_LOADER_LAYERS_DISABLE=~implicit~, so that the Vulkan loader
 * opens drivers and no layers of others. Call first thing in main(), before any thread or CUDA call.
 * The library never does it by itself. Returns 0 or NJ_E_ARG if the environment cannot be set. */
int nj_forbid_jit(void);
/* Lists the compilers for GPUs that are mapped into this process now: the names of their files, with ", " between two,
 * as many as fit. Returns 1 if there are some, 0 if there are none, or -1 where /proc/self/maps cannot be read. */
int nj_mapped_compilers(char *names, size_t bytes);

/* ---- context --------------------------------------------------------------------------------- */

enum nj_device_kind {
    NJ_DEVICE_AUTO = 0,
    NJ_DEVICE_CPU = 1,
    NJ_DEVICE_CUDA = 2,
    NJ_DEVICE_VULKAN = 3
};

struct nj_device_info;
struct nj_trial;
struct nj_self_test;
typedef void nj_tried_fn(void *user, const struct nj_device_info *device,
                         const struct nj_trial *trial);

struct nj_options {
    enum nj_device_kind
        device;  /* AUTO: CUDA if it works, else Vulkan if it is faster than the CPU */
    int ordinal; /* which GPU, counted as the driver does; default 0 */
    int verbose; /* 1: a line per module loaded, through log */
    /* 1: nj_gemm_prepare() times several algorithms for a shape that is not in a table read before,
     * and takes the fastest, which may be another one next time; 0: the library's first choice. */
    int gemm_tune;
    void (*log)(void *user, const char *line); /* what one should know, too; NULL: silent */
    void *log_user;
    void (*doing)(void *user,
                  const char *what); /* hears what it begins that may take long; or NULL */
    /* A folder, made if it and the one that it is in are not there, in which the pipelines of a Vulkan
     * driver and the results of self-tests are kept for the next time; NULL: nothing is read or written. */
    const char *cache_folder;
    /* Called when a GPU is open, unless cache_folder says that this one has passed with this driver and
     * this program, or NOJIT_SELF_TEST=off: nj_self_test(), or NULL for none. What fails is not opened. */
    int (*self_test)(nj_context *ctx, struct nj_self_test *t);
    /* 1: it is called whatever cache_folder and NOJIT_SELF_TEST say, also on the CPU, and goes on after a
     * kernel that fails. */
    int retest;
    /* Hears what was found of each kernel and GEMM; or NULL. */
    nj_tried_fn *tried;
    void *tried_user;
};

/* What a device stands on: SKIPPED: NOJIT_SELF_TEST=off; NOW: at this start; BEFORE: at an earlier one. */
enum nj_self_test_state {
    NJ_SELF_TEST_NONE,
    NJ_SELF_TEST_SKIPPED,
    NJ_SELF_TEST_NOW,
    NJ_SELF_TEST_BEFORE
};
struct nj_self_test_record {
    enum nj_self_test_state state;
    char at[24]; /* "2026-11-27T09:30:00Z" */
    float ms;
    uint32_t kernels, gemms; /* that were tried, and are right */
    uint32_t spares;         /* of kernels: those whose second set of machine code is taken */
    char spare_names[1024];  /* their keys, a space between two */
};

struct nj_device_info {
    char name[128];
    const char *backend; /* "cuda", "vulkan" or "cpu" */
    int sm;              /* 90 for sm_90; 0 without CUDA */
    int lp;              /* 1: kernels and GEMMs of NJ_LP; 0: float32 alone */
    int lp_is_f16;       /* 1: NJ_LP is float16 (sm_75), 0: bfloat16 */
    enum nj_f8_scales
        f8;         /* sm_90, and the CPU, which widens: ROWS; from sm_100: BLOCKS; sm_89: ONE */
    int integrated; /* GPU shares memory with the host */
    int software;   /* 1: a Vulkan driver that runs on the CPU, for tests */
    int multiprocessors;     /* CPU: threads */
    int driver_version;      /* CUDA version the driver supports, 13000 = 13.0; 0 on the CPU */
    char driver[64];         /* kernel driver release, "580.159.04", or "" */
    char gemm_library[512];  /* path of cuBLASLt or name of the BLAS */
    char gemm_build[65];     /* build id of cuBLASLt in hexadecimal; "" if it has none */
    size_t gemm_version;     /* 130100 = 13.1.0; 0 if unknown */
    char comm_library[512];  /* path of NCCL, once a communicator was asked for; else "" */
    char comm_build[65];     /* as gemm_build */
    size_t comm_version;     /* 22703 = 2.27.3; 0: not opened */
    uint32_t gemms_timed;    /* shapes whose algorithm was chosen by timing in this context */
    size_t memory_bytes;     /* in all */
    size_t budget_bytes;     /* what could be had when it was opened */
    size_t piece_bytes;      /* nj_alloc(): what the driver promises at a time, at most; 0: any */
    size_t array_bytes;      /* and what it may give; more is refused */
    uint32_t kernels_loaded; /* on CUDA every kernel that nj_kernels has for arch; 0 on the CPU */
    uint32_t modules_loaded;
    uint32_t pipelines_compiled; /* Vulkan: of kernels_loaded, those that the cache did not have */
    float pipelines_ms;          /* Vulkan: what all of them took */
    struct nj_self_test_record self_test;
    double submit_operations;      /* Vulkan: of one submission, at most */
    int paced;                     /* 1: that follows from the speed of this GPU */
    double gemm_flops, copy_bytes; /* of it, per second, timed at the first start; 0: not */
    char cache_key[33];  /* of GPU, driver and this program's code for it; "" on the CPU */
    int managed;         /* arenas come from managed memory */
    int jit_forbidden;   /* CUDA: 1: nj_forbid_jit()'s settings held when the driver was opened */
    char fallback[1024]; /* why AUTO did not take CUDA, and what it found of Vulkan; else "" */
    char arch[16];       /* whose machine code this GPU runs, "sm_90a"; "" on the CPU */

    /* CUDA: algorithms of cuBLASLt whose product was compared with a known one, bit for bit; of them those left out
     * because it was wrong; and those left out because cuBLASLt lists them and refuses to run them. Shapes whose
     * operands had no memory of their own, so that nothing was compared. */
    uint32_t gemms_checked, gemms_wrong, gemms_refused, gemms_unchecked;
    double gemm_ms, gemm_check_ms; /* what preparing GEMMs took; of it, comparing */
    char gemm_reports
        [400]; /* what is reported of this version of cuBLASLt on this arch, and what to do; else "" */
};

/* What a self-test found of a kernel, or of GEMMs of one kind and type. PASSED_SPARE: its second set of machine code is
 * right, which is taken from then on; ABSENT: the GPU's library has no such GEMM. */
enum nj_verdict { NJ_PASSED, NJ_PASSED_SPARE, NJ_ABSENT, NJ_FAILED };
struct nj_trial {
    const char *name; /* "accumulate.f32", "GEMM NT bfloat16" */
    const char *
        label; /* of the case with the largest error, or the one that failed: "N=37", "67 x 144 x 64" */
    int is_gemm;
    enum nj_verdict verdict;
    double error, tolerance; /* of a GEMM: as a share of its bound */
    float ms;
    const char *
        wrong; /* with what it failed: "y[3]: got 1, want 2, error 0.5, tolerance 1e-06"; else "" */
};

/* A self-test: what is wanted of it, and what came of it. */
struct nj_self_test {
    int all; /* 1: goes on after one that fails */
    nj_tried_fn *tried;
    void *user;
    uint32_t kernels, gemms, failed;
    uint32_t spares; /* of kernels: PASSED_SPARE */
    char why[700];   /* the first that failed */
};

/* Holds every kernel of an open device against its reference, by small cases, and GEMMs against sums in double: 0,
 * NJ_E_NOMEM, or NJ_E_DEVICE where one is wrong. A program that calls it is linked with NJ_ORACLES
 * (docs/toolchain.md). */
int nj_self_test(nj_context *ctx, struct nj_self_test *t);

/* Opens a device, loads and resolves every kernel. On Vulkan the driver gets all shaders of
 * this program here, and none later (when it compiles them is its business); a launch refuses ops
 * without one. NOJIT_VULKAN_DEVICE chooses among several GPUs: a number, a part of a name, or `none`.
 * *out is set even on failure (unless NJ_E_NOMEM), so that nj_context_error() can be read; destroy
 * it in both cases. options may be NULL (all zero). Returns 0, NJ_E_NOMEM, NJ_E_NO_DEVICE,
 * NJ_E_DRIVER, NJ_E_LIBRARY, NJ_E_NO_CODE, NJ_E_INDEX, NJ_E_DEVICE, NJ_E_ARG (an option,
 * NOJIT_MEMORY, NOJIT_SELF_TEST or NOJIT_VULKAN_DEVICE is not known). Where CUDA fails with NO_DEVICE, DRIVER,
 * LIBRARY or NO_CODE, AUTO takes Vulkan if a timed GEMM is faster there than on the CPU, else the CPU; other failures
 * of CUDA are returned. A Vulkan driver that runs on the CPU is taken only if NOJIT_VULKAN_DEVICE names it. */
int nj_context_create(nj_context **out, const struct nj_options *options);
void nj_context_destroy(nj_context *ctx); /* NULL is fine */
/* GPUs that the driver shows, 0 where it cannot be used. Opens the driver; no context is made. */
int nj_gpu_count(void);
/* 1: the GPU of the context reaches the memory of another one of this host, counted as the driver
 * does, over NVLink or PCIe. 0: it does not, or there is none; and on the CPU. */
int nj_gpu_reaches(nj_context *ctx, int ordinal);
/* What a GPU is connected by, 0 for what is not known. */
struct nj_links {
    int nvlinks;                    /* that are up */
    int pcie, pcie_lanes;           /* generation as it is now: less while the GPU is idle */
    int pcie_most, pcie_lanes_most; /* of this GPU in this slot */
};
/* Asks libnvidia-ml.so.1; all 0 where it does not answer, and on the CPU. */
void nj_gpu_links(nj_context *ctx, struct nj_links *out);
/* The last sentence, "" if none; valid until the next failure. */
const char *nj_context_error(const nj_context *ctx);
const struct nj_device_info *nj_context_device(const nj_context *ctx);
/* What can be had now: free device memory; the host's MemAvailable on the CPU, and on a GPU
 * that shares it less a sixteenth of all memory, since a host without any freezes. */
size_t nj_context_budget(nj_context *ctx);

/* ---- memory ---------------------------------------------------------------------------------- */

enum nj_memory { NJ_MEM_DEVICE = 0, NJ_MEM_HOST = 1 /* pinned, for copies */ };

/* Zeroed memory, 256-byte aligned; 0 bytes is fine. NJ_E_NOMEM names size and budget.
 * NOJIT_MEMORY=device|managed overrides the choice made for the device. On the CPU backend both
 * kinds are host memory. */
int nj_alloc(nj_context *ctx, enum nj_memory kind, size_t bytes, void **out);
void nj_free(nj_context *ctx, enum nj_memory kind, void *ptr); /* NULL is fine */

/* Copies between any two of: memory from nj_alloc, other host memory (which must stay valid and
 * unchanged until the stream has passed; memory that is not pinned may make the call wait, and
 * cannot be captured). */
int nj_copy(nj_stream *s, void *dst, const void *src, size_t bytes);
int nj_zero(nj_stream *s, void *dst, size_t bytes);

/* ---- streams, events, graphs ----------------------------------------------------------------- */

int nj_stream_create(nj_context *ctx, nj_stream **out);
void nj_stream_destroy(nj_stream *s);
/* Also reports errors of earlier asynchronous work: NJ_E_DEVICE. */
int nj_stream_sync(nj_stream *s);
nj_context *nj_stream_context(nj_stream *s);
/* 1: kernels that are enqueued from here on may be brought to the GPU before the one ahead of them
 * has ended, for which they wait before they touch memory (sm_90 and later). Worth it where kernels
 * take a few microseconds each; where they are long it costs more than it brings. */
void nj_stream_early(nj_stream *s, int on);

int nj_event_create(nj_context *ctx, nj_event **out);
void nj_event_destroy(nj_event *e);
int nj_event_record(nj_event *e, nj_stream *s);
/* Waits until the stream has passed the event, not for what was enqueued after it. */
int nj_event_sync(nj_event *e);
int nj_event_elapsed_ms(nj_event *from, nj_event *to, float *ms); /* waits for both */
/* What is enqueued on s from here on waits for what the event stands behind now, on whichever stream;
 * for nothing, if it was not recorded yet. On Vulkan the host waits. Not while s is captured: NJ_E_ARG. */
int nj_stream_wait(nj_stream *s, nj_event *e);

/* Capture what is enqueued on s between begin and end. NJ_E_UNSUPPORTED on the CPU and with
 * NOJIT_GRAPH=0: then run the work directly; the bits are the same. */
int nj_graph_begin(nj_stream *s);
int nj_graph_end(nj_stream *s, nj_graph **out);
int nj_graph_launch(nj_graph *g, nj_stream *s);
void nj_graph_destroy(nj_graph *g);

/* ---- GEMMs ------------------------------------------------------------------------- */

/* Row-major C[M,N] = scale op(A) op(B) + beta C, accumulated in float32. A, B have ab_dtype; C
 * c_dtype.
 *   NJ_GEMM_NT: A[M,K] B[N,K]^T  (forward: x W^T)      NJ_GEMM_NN: A[M,K] B[K,N]  (dx = dy W)
 *   NJ_GEMM_TN: A[K,M]^T B[K,N]  (dW = dy^T x)
 * ld*: elements from one row to the next of each array as stored.
 * NJ_F8 operands have scales that multiply their rows, as device_info.f8 says, where ROWS takes one for all rows as
 * well: NT only, N, K and every ld a multiple of 16 (with BLOCKS K of 32), and beta 0 with a 16-bit result. They are
 * e4m3; A may be e5m2, with one scale. */
enum nj_gemm_kind { NJ_GEMM_NT = 0, NJ_GEMM_NN = 1, NJ_GEMM_TN = 2 };
struct nj_gemm {
    enum nj_gemm_kind kind;
    enum nj_dtype ab_dtype, c_dtype;
    int32_t M, N, K;
    int64_t lda, ldb, ldc;
    float beta;    /* 0: C is not read; 1: accumulates */
    float scale;   /* 0 counts as 1 */
    int one_scale; /* NJ_F8: 1: a_scale and b_scale are one float each, of all rows */
    int a_e5m2;    /* NJ_F8: 1: A is e5m2; with one_scale alone */
};
/* Resolves the algorithm for a shape and runs it once, so that the library loads what it needs. On
 * CUDA that borrows device memory of the operands plus the workspace: prepare before allocating the
 * arena; and an algorithm whose product of known operands is wrong, or that the library lists and
 * refuses to run, is left out and said through log (NJ_E_GEMM: none is left). Where only memory for
 * the largest operand can be had, no product is looked at. The same shape again costs nothing.
 * NJ_E_ARG, NJ_E_UNSUPPORTED (NJ_LP on the CPU, NJ_F8 with scales that the device does not take),
 * NJ_E_NOMEM, NJ_E_GEMM, NJ_E_DEVICE. */
int nj_gemm_prepare(nj_context *ctx, const struct nj_gemm *shape);
/* c, a, b: 16-byte aligned. Allocates nothing. NJ_E_GEMM if the shape was not prepared. */
int nj_gemm_run(nj_stream *s, const struct nj_gemm *shape, void *c, const void *a, const void *b);
/* The same for NJ_F8 operands; a_scale[M] and b_scale[N], or with one_scale a_scale[1] and b_scale[1], of float32, or
 * blocks, are 16-byte aligned, too. */
int nj_gemm_run_scaled(nj_stream *s, const struct nj_gemm *shape, void *c, const void *a,
                       const void *a_scale, const void *b, const void *b_scale);
/* Algorithms that timing chose, for one kind of GPU and one version of the library. Read before
 * nj_gemm_prepare() they are taken again, without timing: the same file gives the same bits. read
 * adds to what is known (the first to say something about a shape counts) and returns how many were
 * added: 0 if there is no such file or it is for another GPU or version; else NJ_E_IO, NJ_E_NOMEM,
 * or NJ_E_FORMAT for what is no file or too large. write adds what the file has come to hold since
 * (under a lock, so that runs which write at the same time all keep their rows) and replaces it at
 * once by all that is known, or leaves it if nothing is; NJ_E_IO, or NJ_E_FORMAT for a file that is
 * not such a table. */
int nj_gemm_table_read(nj_context *ctx, const char *path);
int nj_gemm_table_write(nj_context *ctx, const char *path);
/* Device bytes of workspace that each stream keeps, taken by nj_stream_create(); count them in the
 * plan. */
size_t nj_gemm_workspace_bytes(const nj_context *ctx);
/* The same on any GPU, for plans without one: two streams may multiply at the same time. */
enum { NJ_CUDA_WORKSPACE_BYTES = 32 << 20 };

/* ---- ranks ----------------------------------------------------------------------------------- */

/* A communicator is one rank of a group of processes, each with a context of its own. The calls on
 * it are those of every rank, in the same order and with the same sizes; each is enqueued on a
 * stream, whose work before it is seen. Arrays are of device memory, 16-byte aligned. What fails on
 * one rank may leave the others waiting for it: end them all.
 *
 * On the CPU the ranks are processes of one host. One that ends, or calls something else, ends the
 * calls of the others with NJ_E_DEVICE; one that is stopped is waited for.
 *
 * On GPUs NCCL does it, 2.27 or newer, which the first call opens after setting NCCL_NVLS_ENABLE=0
 * and NCCL_RUNTIME_CONNECT=0 where the environment does not have them. A graph holds the calls of
 * all ranks or of none. The first all-to-all takes memory of its own: before that is measured, and
 * before one is captured, run one. A rank that is gone may leave work of the others unfinished for
 * ever: it is their programs that give up waiting. */
enum { NJ_COMM_ID_BYTES = 128, NJ_COMM_RANKS_MOST = 1024 };
/* Made once, by rank 0; the caller brings it to the others. */
int nj_comm_id(nj_context *ctx, unsigned char id[NJ_COMM_ID_BYTES]);
/* Returns when all ranks are there: NJ_E_DEVICE if they are not within two minutes; NJ_E_ARG,
 * NJ_E_LIBRARY, NJ_E_NOMEM. */
int nj_comm_create(nj_context *ctx, const unsigned char id[NJ_COMM_ID_BYTES], int rank, int ranks,
                   nj_comm **out);
/* What the library found wrong meanwhile: NJ_E_DEVICE. 0 while all is well, and on the CPU. */
int nj_comm_check(nj_comm *c);
/* Device memory as of nj_alloc(), from and to which NCCL 2.28 copies by the GPU's copy engines, so that
 * transfers leave the SMs to kernels beside them: all-to-all and all-gather, where all ranks are GPUs
 * of one host that reach each other's memory, with both arrays at the same places of what each rank has
 * allocated by the same call. Elsewhere it is memory like any other. All ranks call both, with the same
 * sizes and in the same order; freed when no work uses it any more, and before the communicator is
 * destroyed. */
int nj_comm_alloc(nj_comm *c, size_t bytes, void **out);
void nj_comm_free(nj_comm *c, void *ptr);
/* Not while work of it is under way, nor while a graph holds some. Waits for the other ranks to do
 * so, at most 10 seconds. After an error, end the process instead. NULL is fine. */
void nj_comm_destroy(nj_comm *c);
/* send: `bytes` for each rank, in their order; recv: as many from each. They do not overlap. */
int nj_all_to_all(nj_comm *c, nj_stream *s, void *recv, const void *send, size_t bytes);
/* recv: `bytes` of each rank, in their order. send may be this rank's place in it. */
int nj_all_gather(nj_comm *c, nj_stream *s, void *recv, const void *send, size_t bytes);
/* The bytes of rank `root` become those of all. */
int nj_broadcast(nj_comm *c, nj_stream *s, void *buffer, size_t bytes, int root);
/* The stream that is aside, which has come to where s is now and works beside it from then on: for calls
 * of the communicator and what belongs to them, kernels and copies. s has what they write after
 * nj_comm_join(), before which other work leaves their arrays alone; the next call of the communicator
 * on s joins first. Where nothing is ever aside, as on the CPU, it is s itself. Not in a graph. */
int nj_comm_aside(nj_comm *c, nj_stream *s, nj_stream **out);
/* nj_all_gather() on that stream. */
int nj_all_gather_aside(nj_comm *c, nj_stream *s, void *recv, const void *send, size_t bytes);
/* Bytes that the calls made so far bring from other ranks. */
uint64_t nj_comm_received(const nj_comm *c);
/* s waits for all that is aside; nothing, where nothing is. */
int nj_comm_join(nj_comm *c, nj_stream *s);

/* ---- kernels --------------------------------------------------------------------------------- */

/* Parameter block layout as the kernel sees it; typed launchers fill it. */
struct nj_param {
    uint16_t offset, bytes;
};
/* Dynamic shared memory on one arch, where its code wants more than the launcher asks for. */
struct nj_arch_shared {
    const char *arch; /* "sm_90a"; NULL ends a list */
    uint32_t bytes;
};
/* One entry per key, sorted by key; made by gen. cpu: the reference built in float, or NULL. */
struct nj_kernel {
    const char *key;   /* "attn_fwd.lp.d64" */
    const char *op;    /* "attn_fwd" */
    const char *entry; /* "nj_attn_fwd_lp_d64" */
    uint32_t threads;
    uint32_t max_shared_bytes; /* dynamic shared memory it may ask for */
    uint16_t param_bytes, param_count;
    const char *only; /* the one arch that has it ("sm_90a"), or NULL */
    const struct nj_param *params;
    const struct nj_arch_shared *arch_shared; /* or NULL */
    void (*cpu)(const void *params);
    /* Operations and bytes of a launch, as the contract counts them; NULL: not known. */
    void (*work)(const void *params, double *flops, double *bytes);
};
extern const struct nj_kernel nj_kernels[];
extern const uint32_t nj_kernel_count;

/* Enqueue kernel `id` (an index of nj_kernels). Used by generated launchers; grid is in blocks,
 * shared in bytes, params points to param_bytes bytes that are copied before the call returns. An
 * empty grid is no work. */
int nj_launch(nj_stream *s, uint32_t id, const uint32_t grid[3], uint32_t shared_bytes,
              const void *params);
/* For launchers: record "op: condition does not hold (N=3, C=5)" and return NJ_E_ARG; record a
 * missing variant with all wanted fields and the nearest keys and return NJ_E_NO_KERNEL. */
int nj_refuse(nj_stream *s, const char *op, const char *condition, const char *values);
int nj_no_kernel(nj_stream *s, const char *wanted_key);
/* For launchers: the tensor map of an array of rows, of which kernel `id` copies tiles of
 * NJ_TILE_COLUMNS columns into shared memory with a swizzle of 128 bytes. map stays zero without
 * rows, columns or array, and where the kernel cannot be launched, which nj_launch() says.
 * NJ_E_DEVICE names kernel and array. */
enum { NJ_TILE_MAP_BYTES = 128, NJ_TILE_COLUMNS = 64 };
struct nj_tiling {
    const char *name; /* of the array */
    const void *array;
    int64_t rows, columns; /* 16-bit elements, columns of a row adjacent */
    int tile_rows;
};
int nj_tile_map(nj_stream *s, uint32_t id, void *map, const struct nj_tiling *of);
/* Index of a key in nj_kernels, or -1. */
int nj_kernel_find(const char *key);
/* 1 if kernel `id` can be launched here: it is for this GPU, or the CPU has a function for it. Else 0,
 * as for -1. */
int nj_kernel_available(const nj_context *ctx, int id);

/* What the binary holds, read from its own index: usable without any GPU. */
struct nj_embedded {
    uint32_t keys, archs;
    char arch[32][16];      /* "sm_75", "sm_90a" */
    char assembler[32][40]; /* of each arch: "ptxas 13.0.88" */
    int spare[32];     /* 1: each kernel of this arch is there a second time, assembled at -O1 */
    char toolkit[512]; /* all of them: "ptxas 13.0.88, 13.3.73 for sm_120 sm_121" */
    uint64_t code_bytes, spare_bytes; /* spare code is compressed and not part of code_bytes */
    uint64_t index_hash;              /* of all that says */
};
/* 0, NJ_E_INDEX, or NJ_E_NO_CODE (linked without machine code: a program for the CPU alone). */
int nj_embedded_read(struct nj_embedded *out);
/* Return the assembler of an arch's code ("ptxas 13.0.88"), or the phrase for all if it holds none for that arch. */
const char *nj_embedded_assembler(const struct nj_embedded *e, const char *arch);
/* Describes a GPU that need not be here, as far as its SM decides it: backend, sm, lp, lp_is_f16, f8, and arch, whose
 * machine code it runs ("": this binary has none for it). The rest is 0. Returns what nj_embedded_read() does. */
int nj_device_of_sm(int sm, struct nj_device_info *out);

/* For `doctor`: where the driver, cuBLASLt and NCCL were looked for and what was found, a line each
 * through log. Opens what a run would, and no more: without a driver, and beyond the first of each
 * that will do, only files are read. */
void nj_library_search(void (*log)(void *user, const char *line), void *user);
/* The same of Vulkan: a line for each GPU that it shows, with what it lacks, or one that says why there
 * is none. */
void nj_vulkan_search(void (*log)(void *user, const char *line), void *user);

#ifdef __cplusplus
}
#endif
#endif
