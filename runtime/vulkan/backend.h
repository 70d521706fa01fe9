/* SPDX-License-Identifier: Apache-2.0
 *
 * backend.h: what the files of the Vulkan backend share. Each calls those above it alone.
 *
 *   vulkan_library.c   opens the loader, makes an instance     vulkan_check.c      results as sentences
 *   vulkan_device.c    what a GPU has to have; opens one       vulkan_choose.c     which GPU is taken
 *   vulkan_commands.c  command buffers, submission             vulkan_memory.c     allocations, copies
 *   vulkan_stream.c    streams, events                         vulkan_cache.c      pipelines of earlier runs
 *   vulkan_shaders.c   pipelines of the embedded SPIR-V        vulkan_launch.c     kernels and GEMMs
 *   vulkan.c           the table, open and close
 */
#ifndef NOJIT_VULKAN_BACKEND_H
#define NOJIT_VULKAN_BACKEND_H

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include "../internal.h"

/* X(name without vk) of the functions that are used: those of the loader, then those of an instance. */
#define NJ_VK_LOADER_FUNCTIONS(X)                                                                  \
    X(CreateInstance)                                                                              \
    X(EnumerateInstanceVersion)
#define NJ_VK_FUNCTIONS(X)                                                                         \
    X(AllocateCommandBuffers)                                                                      \
    X(AllocateMemory)                                                                              \
    X(BeginCommandBuffer)                                                                          \
    X(BindBufferMemory)                                                                            \
    X(CmdBindPipeline)                                                                             \
    X(CmdCopyBuffer)                                                                               \
    X(CmdDispatchBase)                                                                             \
    X(CmdFillBuffer)                                                                               \
    X(CmdPipelineBarrier)                                                                          \
    X(CmdPushConstants)                                                                            \
    X(CmdResetQueryPool)                                                                           \
    X(CmdWriteTimestamp)                                                                           \
    X(CreateBuffer)                                                                                \
    X(CreateCommandPool)                                                                           \
    X(CreateComputePipelines)                                                                      \
    X(CreateDevice)                                                                                \
    X(CreatePipelineCache)                                                                         \
    X(CreatePipelineLayout)                                                                        \
    X(CreateQueryPool)                                                                             \
    X(CreateSemaphore)                                                                             \
    X(CreateShaderModule)                                                                          \
    X(DestroyBuffer)                                                                               \
    X(DestroyCommandPool)                                                                          \
    X(DestroyDevice)                                                                               \
    X(DestroyInstance)                                                                             \
    X(DestroyPipeline)                                                                             \
    X(DestroyPipelineCache)                                                                        \
    X(DestroyPipelineLayout)                                                                       \
    X(DestroyQueryPool)                                                                            \
    X(DestroySemaphore)                                                                            \
    X(DestroyShaderModule)                                                                         \
    X(DeviceWaitIdle)                                                                              \
    X(EndCommandBuffer)                                                                            \
    X(EnumerateDeviceExtensionProperties)                                                          \
    X(EnumeratePhysicalDevices)                                                                    \
    X(FreeMemory)                                                                                  \
    X(GetBufferDeviceAddress)                                                                      \
    X(GetBufferMemoryRequirements)                                                                 \
    X(GetDeviceQueue)                                                                              \
    X(GetPhysicalDeviceFeatures2)                                                                  \
    X(GetPhysicalDeviceMemoryProperties2)                                                          \
    X(GetPhysicalDeviceProperties2)                                                                \
    X(GetPhysicalDeviceQueueFamilyProperties)                                                      \
    X(GetPipelineCacheData)                                                                        \
    X(GetQueryPoolResults)                                                                         \
    X(MapMemory)                                                                                   \
    X(QueueSubmit)                                                                                 \
    X(ResetCommandBuffer)                                                                          \
    X(WaitSemaphores)

/* Limit on the operations of one submission, because a desktop's watchdog ends work that holds the GPU for seconds:
 * this many take 0.2 s on a GPU with 0.1 TFLOP/s. A byte of memory counts as four operations, since such a GPU moves
 * 25 GB/s. A GPU that was timed gets as many as it does in a tenth of a second, up to NJ_VK_SUBMIT_OPERATIONS_MOST.
 * NOJIT_VULKAN_SUBMIT sets another number. */
#define NJ_VK_SUBMIT_OPERATIONS 2e10
#define NJ_VK_SUBMIT_OPERATIONS_MOST 1e12
#define NJ_VK_SUBMIT_SECONDS 0.1
#define NJ_VK_BYTE_OPERATIONS 4.0

struct nj_vk_api {
#define NJ_ROW(name) PFN_vk##name name;
    NJ_VK_LOADER_FUNCTIONS(NJ_ROW)
    NJ_VK_FUNCTIONS(NJ_ROW)
#undef NJ_ROW
};

enum {
    NJ_VK_ALIGN = 256,
    NJ_VK_PUSH_BYTES = 128, /* bytes of push constants that every device has */
    /* Bytes of the grid in the push constants, after the parameter block. */
    NJ_VK_GRID_BYTES = 12,
    NJ_VK_SUBMIT_AFTER = 64, /* number of commands */
    NJ_VK_BATCHES = 8,       /* most batches of a stream under way at a time */
    NJ_VK_GEMMS = 3,         /* number of GEMM kinds */
    NJ_VK_TYPES = 3,         /* number of combinations of operand and result types */
    NJ_VK_TILES = 2          /* number of tile sizes of a GEMM */
};

/* One allocation: device memory, which callers know by its address, or mapped host memory. */
struct nj_vk_memory {
    struct nj_vk_memory *next;
    enum nj_memory kind;
    VkDeviceMemory memory;
    VkBuffer buffer;
    size_t offset, bytes;  /* place of the caller's bytes within the buffer */
    unsigned char *caller; /* address of the caller's bytes; for device memory a GPU address */
};

struct nj_vk_stream {
    struct nj_vk_stream *next;
    VkCommandPool pool;
    VkCommandBuffer commands[NJ_VK_BATCHES];
    uint64_t value[NJ_VK_BATCHES]; /* value of the semaphore when the batch is done */
    int at, open;                  /* batch that is being recorded, if it is open */
    int recorded;                  /* number of commands in it */
    double operations;             /* number of operations in it */
    /* Buffer for host memory that is not pinned; NULL until it is needed. */
    struct nj_vk_memory *staging;
    size_t staged; /* bytes of it that are in use until the stream is done */
};

struct nj_vk {
    struct nj_vk_api api;
    VkInstance instance;
    VkPhysicalDevice physical;
    VkPhysicalDeviceProperties properties; /* properties of `physical` */
    VkDevice device;
    VkQueue queue;
    uint32_t family;
    VkPhysicalDeviceMemoryProperties memory;
    /* Largest allocation that the driver guarantees; many allow more. */
    VkDeviceSize allocation_max;
    VkDeviceSize buffer_max;
    /* Most workgroups of a dispatch; most threads of a workgroup. */
    uint32_t groups_max[2], threads_max;
    float ns_per_tick;       /* 0: the queue has no timestamps */
    uint64_t ticks_most;     /* largest timestamp, after which they restart at 0 */
    int has_budget;          /* 1: VK_EXT_memory_budget is there */
    int has_compile_control; /* 1: a pipeline that had to be compiled can be refused */
    VkSemaphore done;        /* semaphore that counts submissions */
    uint64_t submitted;
    struct nj_vk_memory *allocations;
    struct nj_vk_stream *streams;
    nj_stream service; /* stream that zeroes new memory */
    VkPipelineLayout layout;
    VkPipelineCache cache;
    uint64_t key[2]; /* key of the cache file */
    /* 1: pipelines may be in the cache: the driver is asked for them without compiling */
    int cached;
    VkPipeline *pipelines; /* pipelines by kernel number */
    VkPipeline gemms[NJ_VK_GEMMS][NJ_VK_TYPES][NJ_VK_TILES];
    char lost[NJ_SENTENCE_BYTES]; /* error after which every call on the device fails */
};

static inline struct nj_vk *nj_vk_of(const nj_context *ctx)
{
    return ctx->state;
}
static inline struct nj_vk_stream *nj_vk_stream_of(const nj_stream *s)
{
    return s->handle;
}

int nj_vk_open_library(nj_context *ctx);

/* Return 0, or a code with a sentence that names the error; `what` says which call, with its sizes. */
int nj_vk_check(nj_context *ctx, VkResult result, const char *what);

/* Return 1, with the reason in why, if the shaders cannot run on the device. */
int nj_vk_lacks(const struct nj_vk *vk, VkPhysicalDevice device,
                const VkPhysicalDeviceProperties *p, char *why, size_t bytes);
int nj_vk_rank_of(
    VkPhysicalDeviceType type); /* discrete 0, integrated 1, virtual 2, on the CPU 3 */
void nj_vk_sizes(const struct nj_vk *vk, VkPhysicalDevice device, VkDeviceSize *memory,
                 VkDeviceSize *allocation, VkDeviceSize *buffer);
int nj_vk_open_device(nj_context *ctx); /* opens the device that was chosen */
void nj_vk_pace(nj_context *ctx, const struct nj_speed *speed);

/* Choose a GPU, and set vk->physical and vk->properties. */
int nj_vk_choose_device(nj_context *ctx, const struct nj_options *options);
int nj_vk_switched_off(nj_context *ctx); /* NJ_E_NO_DEVICE with NOJIT_VULKAN_DEVICE=none */
void nj_vk_list_devices(nj_context *ctx, void (*log)(void *user, const char *line), void *user);
size_t nj_vk_budget(nj_context *ctx, enum nj_memory kind);

/* Wait until the submission of that number is done. */
int nj_vk_wait(nj_context *ctx, uint64_t value);
int nj_vk_commands_create(nj_stream *s);
void nj_vk_commands_destroy(nj_stream *s);
/* Get the open command buffer of a stream, and note after each command that it was recorded: later commands see its
 * results. operations: those of the command. nj_vk_piece() notes a piece of a command whose other pieces follow;
 * nothing waits for it. */
int nj_vk_begin(nj_stream *s, VkCommandBuffer *out);
int nj_vk_recorded(nj_stream *s, double operations);
int nj_vk_piece(nj_stream *s, double operations);
int nj_vk_submit(nj_stream *s);
int nj_vk_finish(nj_stream *s); /* submit and wait */

int nj_vk_alloc(nj_context *ctx, enum nj_memory kind, size_t bytes, void **out);
void nj_vk_free(nj_context *ctx, enum nj_memory kind, void *ptr);
void nj_vk_free_all(nj_context *ctx);
int nj_vk_copy(nj_stream *s, void *dst, const void *src, size_t bytes);
int nj_vk_zero(nj_stream *s, void *dst, size_t bytes);

int nj_vk_stream_create(nj_stream *s);
void nj_vk_stream_destroy(nj_stream *s);
int nj_vk_stream_sync(nj_stream *s);
int nj_vk_event_create(nj_event *e);
void nj_vk_event_destroy(nj_event *e);
int nj_vk_event_record(nj_event *e, nj_stream *s);
int nj_vk_stream_wait(nj_stream *s, nj_event *e);
int nj_vk_event_sync(nj_event *e);
int nj_vk_event_elapsed_ms(nj_event *from, nj_event *to, float *ms);

/* Open or write the file of pipelines in a folder; NULL: there is none. The key is stored in the device's info, too. */
void nj_vk_cache_key(nj_context *ctx, const struct nj_index *index);
int nj_vk_cache_open(nj_context *ctx, const char *folder);
int nj_vk_cache_write(nj_context *ctx, const char *folder);

int nj_vk_load_shaders(nj_context *ctx, const struct nj_options *options);
void nj_vk_unload_shaders(nj_context *ctx);

int nj_vk_has_kernel(const nj_context *ctx, uint32_t id);
int nj_vk_launch(nj_stream *s, uint32_t id, const uint32_t grid[3], uint32_t shared_bytes,
                 const void *params);
int nj_vk_gemm_prepare(nj_context *ctx, struct nj_gemm_plan *plan);
int nj_vk_gemm_run(nj_stream *s, const struct nj_gemm_plan *plan, const struct nj_gemm_operands *x);

#endif
