/* SPDX-License-Identifier: Apache-2.0
 *
 * nojit.h: load and run kernels that were compiled before the program started.
 *
 * A program links libnojit.a with the objects that `gen` and `pack` made from its kernel contracts.
 * They bring the kernel table (nj_kernels), typed launchers (nojit_ops.h) and machine code, in
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

/* The number in these two names is raised when anything in this header or in launcher.h changes that a compiled program
 * relies on, so that objects of both sides do not link. What may change without that: functions are added, and
 * nj_options, nj_device_info and nj_embedded, which travel with their size, grow at their end. */
#define nj_kernels nj_kernels_abi_1
#define nj_context_create_sized nj_context_create_abi_1

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

/* Return the text of a code ("unknown error" for one that is not listed), or its name ("NJ_E_ARG"). Never NULL. */
const char *nj_error_text(int code);
const char *nj_error_name(int code);

typedef struct nj_context nj_context; /* a device with its loaded kernels and memory */
typedef struct nj_stream nj_stream;   /* a queue of work that runs in order on one context */
typedef struct nj_event nj_event;     /* a point in a stream, with its time */
typedef struct nj_graph nj_graph;     /* captured work that is launched as one */
typedef struct nj_comm nj_comm;       /* one rank of several processes that share work */

/* Element types. NJ_LP is the 16-bit type of the device: bfloat16, or float16 on sm_75. NJ_F8 is
 * e4m3, for GEMM operands only. */
enum nj_dtype { NJ_F32 = 0, NJ_LP = 1, NJ_F8 = 2 };
/* Scales that GEMMs of NJ_F8 take: none; one float32 per row; one UE8M0 per block of 32 elements of a row (powers of
 * two, as nj_e4m3_blocks() makes them); or one float32 for all rows. */
enum nj_f8_scales { NJ_F8_NONE = 0, NJ_F8_ROWS = 1, NJ_F8_BLOCKS = 2, NJ_F8_ONE = 3 };

/* Forbid the driver's JIT for this process: set CUDA_DISABLE_PTX_JIT=1, CUDA_CACHE_DISABLE=1 and
 * CUDA_FORCE_PRELOAD_LIBRARIES=0, and VK_LOADER_LAYERS_DISABLE=~implicit~, so that the Vulkan loader opens drivers
 * and no implicit layers. Call it first in main(), before any thread or CUDA call; the library never does so by
 * itself. Returns 0, or NJ_E_ARG if the environment cannot be set. */
int nj_forbid_jit(void);
/* List the GPU compilers that are mapped into this process now: as many file names as fit, separated by ", ".
 * Returns 1 if there are any, 0 if there are none, or -1 if /proc/self/maps cannot be read. */
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
        device; /* device to open; AUTO: CUDA if it works, else Vulkan if it is faster than the CPU */
    int ordinal; /* number of the GPU, in the driver's order; default 0 */
    int verbose; /* 1: log a line for each module loaded */
    /* 1: nj_gemm_prepare() times several algorithms for a shape that is not in a table read before, and takes the
     * fastest, which may differ from run to run; 0: it takes the library's first choice. */
    int gemm_tune;
    /* Function that gets notices and verbose lines; NULL: silent. */
    void (*log)(void *user, const char *line);
    void *log_user;
    void (*doing)(void *user,
                  const char *what); /* listener for operations that may take long, or NULL */
    /* Folder for the pipelines of a Vulkan driver and the results of self-tests, kept for later runs. It is created
     * if necessary, with its parent. NULL: nothing is read or written. */
    const char *cache_folder;
    /* Self-test to run when a GPU is opened: nj_self_test(), or NULL for none. It is skipped if cache_folder says
     * that this GPU has passed with this driver and this program, or if NOJIT_SELF_TEST=off. A device that fails is
     * not opened. */
    int (*self_test)(nj_context *ctx, struct nj_self_test *t);
    /* 1: run the self-test whatever cache_folder and NOJIT_SELF_TEST say, on the CPU as well, and continue after a
     * kernel that fails. */
    int retest;
    /* Function that gets the result of each kernel and GEMM; or NULL. */
    nj_tried_fn *tried;
    void *tried_user;
};

/* Self-test that a device relies on. SKIPPED: NOJIT_SELF_TEST=off; NOW: run at this start; BEFORE: run at an earlier
 * one. */
enum nj_self_test_state {
    NJ_SELF_TEST_NONE,
    NJ_SELF_TEST_SKIPPED,
    NJ_SELF_TEST_NOW,
    NJ_SELF_TEST_BEFORE
};
struct nj_self_test_record {
    enum nj_self_test_state state;
    char at[24]; /* time of the test: "2026-11-27T09:30:00Z" */
    float ms;
    uint32_t kernels, gemms; /* number of kernels and GEMMs that were tested and are right */
    uint32_t spares;         /* number of those kernels that use their second set of machine code */
    char spare_names[1024];  /* keys of those kernels, separated by spaces */
};

struct nj_device_info {
    char name[128];
    const char *backend; /* "cuda", "vulkan" or "cpu" */
    int sm;              /* 90 for sm_90; 0 without CUDA */
    int lp;              /* 1: kernels and GEMMs of NJ_LP exist; 0: float32 only */
    int lp_is_f16;       /* 1: NJ_LP is float16 (sm_75), 0: bfloat16 */
    enum nj_f8_scales
        f8; /* scales of NJ_F8 GEMMs: sm_90, and the CPU (which widens): ROWS; from sm_100: BLOCKS; sm_89: ONE */
    int integrated;         /* 1: the GPU shares memory with the host */
    int software;           /* 1: a Vulkan driver that runs on the CPU, for tests */
    int multiprocessors;    /* number of multiprocessors; on the CPU, of threads */
    int driver_version;     /* CUDA version that the driver supports, 13000 = 13.0; 0 on the CPU */
    char driver[64];        /* kernel driver release, "580.159.04", or "" */
    char gemm_library[512]; /* path of cuBLASLt or name of the BLAS */
    char gemm_build[65];    /* build id of cuBLASLt in hexadecimal; "" if it has none */
    size_t gemm_version;    /* 130100 = 13.1.0; 0 if unknown */
    char comm_library[512]; /* path of NCCL once a communicator was asked for; else "" */
    char comm_build[65];    /* build id of NCCL, like gemm_build */
    size_t comm_version;    /* 22703 = 2.27.3; 0: not opened */
    /* Number of shapes whose algorithm was chosen by timing in this context. */
    uint32_t gemms_timed;
    size_t memory_bytes; /* total memory */
    size_t budget_bytes; /* memory that was available when the device was opened */
    size_t cell_bytes;   /* largest allocation that the driver guarantees; 0: no limit */
    size_t array_bytes;  /* largest allocation that nj_alloc() attempts; it refuses more */
    /* Number of kernels loaded: on CUDA every kernel that nj_kernels has for arch; 0 on the CPU. */
    uint32_t kernels_loaded;
    uint32_t modules_loaded;
    uint32_t pipelines_compiled; /* Vulkan: number of kernels_loaded that were not in the cache */
    float pipelines_ms;          /* Vulkan: time that all pipelines took */
    struct nj_self_test_record self_test;
    double submit_operations; /* Vulkan: largest number of operations of one submission */
    int paced;                /* 1: submit_operations follows from the speed of this GPU */
    /* Speed of the GPU per second, timed at the first start; 0: not timed. */
    double gemm_flops, copy_bytes;
    /* Hash of the GPU, the driver and this program's code for it; "" on the CPU. */
    char cache_key[33];
    int managed;       /* arenas come from managed memory */
    int jit_forbidden; /* CUDA: 1 if nj_forbid_jit()'s settings held when the driver was opened */
    /* Reason why AUTO did not take CUDA, and what it found of Vulkan; else "". */
    char fallback[1024];
    /* Architecture of the machine code that this GPU runs, "sm_90a"; "" on the CPU. */
    char arch[16];

    /* CUDA: number of cuBLASLt algorithms whose product was compared with a known one, bit for bit; of those left
     * out because the product was wrong; of those left out because cuBLASLt lists them and refuses to run them; and
     * number of shapes for which nothing was compared, because there was no memory for their operands. */
    uint32_t gemms_checked, gemms_wrong, gemms_refused, gemms_unchecked;
    /* Time spent on preparing GEMMs, and the part of it spent on comparing. */
    double gemm_ms, gemm_check_ms;
    char gemm_reports
        [400]; /* known reports about this version of cuBLASLt on this arch, and what to do; else "" */
};

/* Result of a self-test for a kernel, or for the GEMMs of one kind and type. PASSED_SPARE: the kernel's second set
 * of machine code is right and is used from then on; ABSENT: the GPU's library has no such GEMM. */
enum nj_verdict { NJ_PASSED, NJ_PASSED_SPARE, NJ_ABSENT, NJ_FAILED };
struct nj_trial {
    const char *name; /* "accumulate.f32", "GEMM NT bfloat16" */
    const char *
        label; /* label of the case with the largest error, or of the one that failed: "N=37", "67 x 144 x 64" */
    int is_gemm;
    enum nj_verdict verdict;
    /* Largest error and its tolerance; for a GEMM, as a fraction of its bound. */
    double error, tolerance;
    float ms;
    const char *
        wrong; /* description of the failure: "y[3]: got 1, want 2, error 0.5, tolerance 1e-06"; else "" */
};

/* A self-test: its settings and its results. */
struct nj_self_test {
    int all; /* 1: continue after a failure */
    nj_tried_fn *tried;
    void *user;
    uint32_t kernels, gemms, failed;
    uint32_t spares; /* number of kernels with the verdict PASSED_SPARE */
    char why[700];   /* description of the first failure */
};

/* Compare every kernel of an open device with its reference on small cases, and GEMMs with sums in double. Returns
 * 0, NJ_E_NOMEM, or NJ_E_DEVICE if one is wrong. A program that calls this is linked with NJ_ORACLES
 * (docs/toolchain.md). */
int nj_self_test(nj_context *ctx, struct nj_self_test *t);

/* Open a device, and load and resolve every kernel. On Vulkan the driver gets all shaders of this program here and
 * none later (when it compiles them is up to the driver); a launch refuses ops without a shader. NOJIT_VULKAN_DEVICE
 * chooses among several GPUs: a number, a part of a name, or `none`. *out is set even on failure (unless
 * NJ_E_NOMEM), so that nj_context_error() can be read; destroy it in both cases. options may be NULL (all zero).
 * Returns 0, NJ_E_NOMEM, NJ_E_NO_DEVICE, NJ_E_DRIVER, NJ_E_LIBRARY, NJ_E_NO_CODE, NJ_E_INDEX, NJ_E_DEVICE, or
 * NJ_E_ARG (an option, NOJIT_MEMORY, NOJIT_SELF_TEST or NOJIT_VULKAN_DEVICE is not known). If CUDA fails with
 * NO_DEVICE, DRIVER, LIBRARY or NO_CODE, AUTO takes Vulkan if a timed GEMM is faster there than on the CPU, else the
 * CPU; other failures of CUDA are returned. A Vulkan driver that runs on the CPU is taken only if
 * NOJIT_VULKAN_DEVICE names it. */
static inline int nj_context_create(nj_context **out, const struct nj_options *options);
void nj_context_destroy(nj_context *ctx); /* NULL is fine */
/* Return the number of GPUs that the driver shows, 0 if it cannot be used. Opens the driver; no context is made. */
int nj_gpu_count(void);
/* Return 1 if the context's GPU can access the memory of GPU `ordinal` of this host (the driver's number) over
 * NVLink or PCIe, else 0; always 0 on the CPU. */
int nj_gpu_reaches(nj_context *ctx, int ordinal);
/* Links of a GPU; 0 for a value that is not known. */
struct nj_links {
    int nvlinks; /* number of links that are up */
    /* Current generation and width; the generation is lower while the GPU is idle. */
    int pcie, pcie_lanes;
    int pcie_most, pcie_lanes_most; /* highest generation and width of this GPU in this slot */
};
/* Read the links from libnvidia-ml.so.1; all 0 if it does not answer, and on the CPU. */
void nj_gpu_links(nj_context *ctx, struct nj_links *out);
/* Return the sentence of the last error, "" if there was none; valid until the next failure. */
const char *nj_context_error(const nj_context *ctx);
const struct nj_device_info *nj_context_device(const nj_context *ctx);
/* Return the memory that is available now: free device memory; on the CPU, the host's MemAvailable; on a GPU that
 * shares the host's memory, that less a sixteenth of all memory, since a host without free memory freezes. */
size_t nj_context_budget(nj_context *ctx);

/* ---- memory ---------------------------------------------------------------------------------- */

enum nj_memory { NJ_MEM_DEVICE = 0, NJ_MEM_HOST = 1 /* pinned memory, for copies */ };

/* Allocate zeroed memory, 256-byte aligned; 0 bytes is fine. The sentence of NJ_E_NOMEM names size and budget.
 * NOJIT_MEMORY=device|managed overrides the choice made for the device. On the CPU backend both kinds are host
 * memory. */
int nj_alloc(nj_context *ctx, enum nj_memory kind, size_t bytes, void **out);
void nj_free(nj_context *ctx, enum nj_memory kind, void *ptr); /* NULL is fine */

/* Copy between any two of: memory from nj_alloc(), other host memory (which must stay valid and unchanged until the
 * stream has passed; memory that is not pinned may make the call wait, and cannot be captured). */
int nj_copy(nj_stream *s, void *dst, const void *src, size_t bytes);
int nj_zero(nj_stream *s, void *dst, size_t bytes);

/* ---- streams, events, graphs ----------------------------------------------------------------- */

int nj_stream_create(nj_context *ctx, nj_stream **out);
void nj_stream_destroy(nj_stream *s);
/* Wait for all work on the stream. Also reports errors of earlier asynchronous work: NJ_E_DEVICE. */
int nj_stream_sync(nj_stream *s);
nj_context *nj_stream_context(nj_stream *s);
/* Turn early starts on or off. 1: a kernel enqueued from here on may be scheduled on the GPU before the one ahead of
 * it has ended; it waits for that one before it touches memory (sm_90 and later). This pays off where kernels take a
 * few microseconds each, and costs more than it gains where they are long. */
void nj_stream_dependent_launches(nj_stream *s, int on);

int nj_event_create(nj_context *ctx, nj_event **out);
void nj_event_destroy(nj_event *e);
int nj_event_record(nj_event *e, nj_stream *s);
/* Wait until the stream has passed the event, not for later work on the stream. */
int nj_event_sync(nj_event *e);
int nj_event_elapsed_ms(nj_event *from, nj_event *to, float *ms); /* waits for both events */
/* Make later work on s wait for the work that the event stands for now, on whichever stream; an event that was never
 * recorded makes it wait for nothing. On Vulkan the host waits. Not allowed while s is captured: NJ_E_ARG. */
int nj_stream_wait(nj_stream *s, nj_event *e);

/* Capture the work enqueued on s between begin and end. NJ_E_UNSUPPORTED on the CPU and with NOJIT_GRAPH=0: then run
 * the work directly; the results are bitwise the same. */
int nj_graph_begin(nj_stream *s);
int nj_graph_end(nj_stream *s, nj_graph **out);
int nj_graph_launch(nj_graph *g, nj_stream *s);
void nj_graph_destroy(nj_graph *g);

/* ---- GEMMs ------------------------------------------------------------------------- */

/* A GEMM: row-major C[M,N] = scale op(A) op(B) + beta C, accumulated in float32. A and B have ab_dtype, C has
 * c_dtype.
 *   NJ_GEMM_NT: A[M,K] B[N,K]^T  (forward: x W^T)      NJ_GEMM_NN: A[M,K] B[K,N]  (dx = dy W)
 *   NJ_GEMM_TN: A[K,M]^T B[K,N]  (dW = dy^T x)
 * ld*: number of elements from one row to the next of each array as stored.
 * NJ_F8 operands have scales that multiply their rows, of the kind that device_info.f8 gives; a device with ROWS also
 * takes one scale for all rows. Only NT is possible, N, K and every ld must be multiples of 16 (with BLOCKS, K of 32),
 * and a 16-bit result needs beta 0. Operands are e4m3; A may be e5m2, with one scale. */
enum nj_gemm_kind { NJ_GEMM_NT = 0, NJ_GEMM_NN = 1, NJ_GEMM_TN = 2 };
struct nj_gemm {
    enum nj_gemm_kind kind;
    enum nj_dtype ab_dtype, c_dtype;
    int32_t M, N, K;
    int64_t lda, ldb, ldc;
    float beta;    /* 0: C is not read; 1: accumulates */
    float scale;   /* 0 counts as 1 */
    int one_scale; /* NJ_F8: 1: a_scale and b_scale are one float each, for all rows */
    int a_e5m2;    /* NJ_F8: 1: A is e5m2; only with one_scale */
};
/* Resolve the algorithm for a shape and run it once, so that the library loads what it needs. On CUDA this borrows
 * device memory for the operands and the workspace, so prepare before allocating the arena. An algorithm whose
 * product of known operands is wrong, or that the library lists and refuses to run, is left out and logged
 * (NJ_E_GEMM: none is left). If there is only memory for the largest operand, no product is checked. Preparing the
 * same shape again costs nothing. Errors: NJ_E_ARG, NJ_E_UNSUPPORTED (NJ_LP on the CPU, NJ_F8 with scales that the
 * device does not take), NJ_E_NOMEM, NJ_E_GEMM, NJ_E_DEVICE. */
int nj_gemm_prepare(nj_context *ctx, const struct nj_gemm *shape);
/* Enqueue a GEMM. c, a and b are 16-byte aligned. Allocates nothing. NJ_E_GEMM if the shape was not prepared. */
int nj_gemm_run(nj_stream *s, const struct nj_gemm *shape, void *c, const void *a, const void *b);
/* Arrays of a GEMM, 16-byte aligned. Operands of NJ_F8 have scales, others none: a_scale[M] and b_scale[N] (with
 * one_scale a_scale[1] and b_scale[1]), float32 or block scales. */
struct nj_gemm_operands {
    void *c;
    const void *a, *b;
    const void *a_scale, *b_scale; /* NULL except for NJ_F8 */
};
/* Enqueue a GEMM of operands of any type, as nj_gemm_run() does. */
int nj_gemm_run_scaled(nj_stream *s, const struct nj_gemm *shape, const struct nj_gemm_operands *x);
/* Read or write the algorithms that timing chose, for one kind of GPU and one version of the library. If they are
 * read before nj_gemm_prepare(), they are used again without timing: the same file gives the same bits.
 * nj_gemm_table_read() adds to what is known (the first entry for a shape counts) and returns how many entries were
 * added: 0 if there is no such file or it is for another GPU or version; else NJ_E_IO, NJ_E_NOMEM, or NJ_E_FORMAT
 * for something that is not a file or is too large. nj_gemm_table_write() adds the entries that the file has gained
 * since (under a lock, so that concurrent runs all keep their rows) and replaces it atomically by everything known,
 * or leaves it if nothing is known; NJ_E_IO, or NJ_E_FORMAT for a file that is not such a table. */
int nj_gemm_table_read(nj_context *ctx, const char *path);
int nj_gemm_table_write(nj_context *ctx, const char *path);
/* Return the bytes of device workspace that each stream keeps, taken by nj_stream_create(); count them in the plan. */
size_t nj_gemm_workspace_bytes(const nj_context *ctx);
/* Bytes of that workspace on any CUDA GPU, for plans without one. It is per stream because two streams may multiply
 * at the same time. */
enum { NJ_CUDA_WORKSPACE_BYTES = 32 << 20 };

/* ---- ranks ----------------------------------------------------------------------------------- */

/* A communicator is one rank of a group of processes, each with a context of its own. All ranks make the same calls
 * on it, in the same order and with the same sizes. Each call is enqueued on a stream, after the stream's earlier
 * work. Arrays are in device memory, 16-byte aligned. A failure on one rank may leave the others waiting for it: end
 * them all.
 *
 * On the CPU the ranks are processes of one host. If one ends, or makes a different call, the calls of the others
 * fail with NJ_E_DEVICE; a stopped process is waited for.
 *
 * On GPUs NCCL 2.27 or newer is used. The first call opens it after setting NCCL_NVLS_ENABLE=0 and
 * NCCL_RUNTIME_CONNECT=0 where the environment does not have them. A graph holds the calls of all ranks or of none.
 * The first all-to-all allocates memory of its own: run one before measuring memory, and before capturing one. If a
 * rank is gone, work of the others may never finish: their programs have to give up waiting. */
enum { NJ_COMM_ID_BYTES = 128, NJ_COMM_RANKS_MOST = 1024 };
/* Make an id. Rank 0 calls this once, and the caller brings the id to the other ranks. */
int nj_comm_id(nj_context *ctx, unsigned char id[NJ_COMM_ID_BYTES]);
/* Create a communicator, and return when all ranks have joined. NJ_E_DEVICE if they have not within two minutes;
 * NJ_E_ARG, NJ_E_LIBRARY, NJ_E_NOMEM. */
int nj_comm_create(nj_context *ctx, const unsigned char id[NJ_COMM_ID_BYTES], int rank, int ranks,
                   nj_comm **out);
/* Return NJ_E_DEVICE if the library has found an error meanwhile, else 0; always 0 on the CPU. */
int nj_comm_check(nj_comm *c);
/* Allocate device memory, as nj_alloc() does, that NCCL 2.28 and later copies with the GPU's copy engines, so that
 * transfers leave the SMs to kernels that run beside them. This holds for all-to-all and all-gather if all ranks are
 * GPUs of one host that can access each other's memory, and if both arrays have the same offsets in what each rank
 * has allocated by the same call. Elsewhere it is ordinary memory. All ranks call both functions, with the same
 * sizes and in the same order; free the memory when no work uses it any more, and before the communicator is
 * destroyed. */
int nj_comm_alloc(nj_comm *c, size_t bytes, void **out);
void nj_comm_free(nj_comm *c, void *ptr);
/* Destroy a communicator. None of its work may be under way, nor held by a graph. Waits up to 10 seconds for the
 * other ranks to do the same. After an error, end the process instead. NULL is fine. */
void nj_comm_destroy(nj_comm *c);
/* Exchange data between all ranks. send: `bytes` for each rank, in rank order; recv: as many from each. They do not
 * overlap. */
int nj_all_to_all(nj_comm *c, nj_stream *s, void *recv, const void *send, size_t bytes);
/* Gather data from all ranks. recv: `bytes` from each rank, in rank order. send may be this rank's place in recv. */
int nj_all_gather(nj_comm *c, nj_stream *s, void *recv, const void *send, size_t bytes);
/* Copy the buffer of rank `root` to all ranks. */
int nj_broadcast(nj_comm *c, nj_stream *s, void *buffer, size_t bytes, int root);
/* Get the side stream, which from the current point of s on works beside it; use it for calls of the communicator
 * and for the kernels and copies that belong to them. s sees what they write only after nj_comm_join(); until then
 * other work leaves their arrays alone. The next call of the communicator on s joins first. Where there is no side
 * stream, as on the CPU, *out is s. Not in a graph. */
int nj_comm_aside(nj_comm *c, nj_stream *s, nj_stream **out);
/* Call nj_all_gather() on the side stream. */
int nj_all_gather_aside(nj_comm *c, nj_stream *s, void *recv, const void *send, size_t bytes);
/* Return the number of bytes that the calls made so far bring from other ranks. */
uint64_t nj_comm_received(const nj_comm *c);
/* Make s wait for all work on the side stream; does nothing if there is none. */
int nj_comm_join(nj_comm *c, nj_stream *s);

/* ---- kernels --------------------------------------------------------------------------------- */

/* Place of one parameter in the block as the kernel sees it; typed launchers fill the block. */
struct nj_param {
    uint16_t offset, bytes;
};
/* Dynamic shared memory on one arch whose code wants more than the launcher asks for. */
struct nj_arch_shared {
    const char *arch; /* "sm_90a"; NULL ends a list */
    uint32_t bytes;
};
/* One entry per key, sorted by key; generated by gen. cpu: the reference compiled for float, or NULL. */
struct nj_kernel {
    const char *key;   /* "attn_fwd.lp.d64" */
    const char *op;    /* "attn_fwd" */
    const char *entry; /* "nj_attn_fwd_lp_d64" */
    uint32_t threads;
    uint32_t max_shared_bytes; /* most dynamic shared memory that a launch may ask for */
    uint16_t param_bytes, param_count;
    const char *only; /* the only arch that has the kernel ("sm_90a"), or NULL for all */
    const struct nj_param *params;
    const struct nj_arch_shared *arch_shared; /* list of exceptions, or NULL */
    void (*cpu)(const void *params);
    /* Compute the operations and bytes of a launch, as the contract counts them; NULL: not known. */
    void (*work)(const void *params, double *flops, double *bytes);
};
extern const struct nj_kernel nj_kernels[];
extern const uint32_t nj_kernel_count;

/* Enqueue kernel `id` (an index of nj_kernels). Used by generated launchers; grid is in blocks,
 * shared in bytes, params points to param_bytes bytes that are copied before the call returns. An
 * empty grid does nothing. */
int nj_launch(nj_stream *s, uint32_t id, const uint32_t grid[3], uint32_t shared_bytes,
              const void *params);
/* Record a refusal, for launchers. nj_refuse() records "op: condition does not hold (N=3, C=5)" and returns
 * NJ_E_ARG; nj_no_kernel() records a missing variant with all wanted fields and the nearest keys and returns
 * NJ_E_NO_KERNEL. */
int nj_refuse(nj_stream *s, const char *op, const char *condition, const char *values);
int nj_no_kernel(nj_stream *s, const char *wanted_key);
/* Make a tensor map, for launchers: kernel `id` copies tiles of the array, NJ_TILE_COLUMNS columns wide, into shared
 * memory with a swizzle of 128 bytes. map stays zero if there are no rows, columns or array, and if the kernel
 * cannot be launched, which nj_launch() reports. The sentence of NJ_E_DEVICE names kernel and array. */
enum { NJ_TILE_MAP_BYTES = 128, NJ_TILE_COLUMNS = 64 };
struct nj_tiling {
    const char *name; /* name of the array */
    const void *array;
    /* Shape of the array in 16-bit elements; the columns of a row are adjacent. */
    int64_t rows, columns;
    int tile_rows;
};
int nj_tile_map(nj_stream *s, uint32_t id, void *map, const struct nj_tiling *of);
/* Return the index of a key in nj_kernels, or -1. */
int nj_kernel_find(const char *key);
/* Return 1 if kernel `id` can be launched here (it is for this GPU, or the CPU has a function for it), else 0; 0 for
 * -1. */
int nj_kernel_available(const nj_context *ctx, int id);

/* Contents of the binary, read from its own index: usable without any GPU. */
struct nj_embedded {
    uint32_t keys, archs;
    char arch[32][16];      /* "sm_75", "sm_90a" */
    char assembler[32][40]; /* assembler of each arch: "ptxas 13.0.88" */
    int spare[32];     /* 1: each kernel of this arch is embedded a second time, assembled at -O1 */
    char toolkit[512]; /* all assemblers: "ptxas 13.0.88, 13.3.73 for sm_120 sm_121" */
    uint64_t code_bytes, spare_bytes; /* spare code is compressed and not part of code_bytes */
    uint64_t index_hash;              /* hash of all that the index says */
};
/* Read the index. Returns 0, NJ_E_INDEX, or NJ_E_NO_CODE (linked without machine code: a program for the CPU only). */
static inline int nj_embedded_read(struct nj_embedded *out);
/* Return the assembler of an arch's code ("ptxas 13.0.88"), or the phrase for all if it holds none for that arch. */
const char *nj_embedded_assembler(const struct nj_embedded *e, const char *arch);
/* Describe a GPU that need not be here, as far as its SM determines it: backend, sm, lp, lp_is_f16, f8 and arch ("":
 * this binary has no machine code for it). The rest is 0. Returns the same codes as nj_embedded_read(). */
static inline int nj_device_of_sm(int sm, struct nj_device_info *out);

/* Report, for `doctor`, where the driver, cuBLASLt and NCCL were looked for and what was found, a line each through
 * log. Opens only what a run would: without a driver, and beyond the first usable file of each library, files are
 * only read. */
void nj_library_search(void (*log)(void *user, const char *line), void *user);
/* Report the GPUs that Vulkan shows: a line for each, with what it lacks, or a line that says why there is none. */
void nj_vulkan_search(void (*log)(void *user, const char *line), void *user);

/* ---- structs that grow ----------------------------------------------------------------------- */

/* Do what the functions above without _sized do, for structs of the version of this header that the caller was
 * compiled against. The library reads and fills what both versions know; the rest is zero. NJ_E_ARG for a size that
 * the struct cannot have, and for an option that the library does not know. */
int nj_context_create_sized(nj_context **out, const struct nj_options *options, size_t bytes);
int nj_embedded_read_sized(struct nj_embedded *out, size_t bytes);
int nj_device_of_sm_sized(int sm, struct nj_device_info *out, size_t bytes);

static inline int nj_context_create(nj_context **out, const struct nj_options *options)
{
    return nj_context_create_sized(out, options, sizeof *options);
}

static inline int nj_embedded_read(struct nj_embedded *out)
{
    return nj_embedded_read_sized(out, sizeof *out);
}

static inline int nj_device_of_sm(int sm, struct nj_device_info *out)
{
    return nj_device_of_sm_sized(sm, out, sizeof *out);
}

#ifdef __cplusplus
}
#endif
#endif
