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

/* X(name without vk) of the functions used: those of the loader, then those of an instance. */
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

/* A desktop's watchdog ends what holds the GPU for seconds: this many operations are 0.2 s of a GPU with
 * 0.1 TFLOP/s. A byte of memory counts as four, as such a GPU has 25 GB/s. A GPU that was timed gets as many as it does
 * in a tenth of a second, but not without end. NOJIT_VULKAN_SUBMIT sets another number. */
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
    NJ_VK_PUSH_BYTES = 128,  /* that every device has */
    NJ_VK_GRID_BYTES = 12,   /* of push constants, behind the parameter block */
    NJ_VK_SUBMIT_AFTER = 64, /* commands */
    NJ_VK_BATCHES = 8,       /* of a stream, under way at a time */
    NJ_VK_GEMMS = 3,         /* kinds */
    NJ_VK_TYPES = 3,         /* of operands and result */
    NJ_VK_TILES = 2          /* of a GEMM */
};

/* One allocation: device memory, which callers know by its address, or mapped host memory. */
struct nj_vk_memory {
    struct nj_vk_memory *next;
    enum nj_memory kind;
    VkDeviceMemory memory;
    VkBuffer buffer;
    size_t offset, bytes;  /* of what the caller has, within the buffer */
    unsigned char *caller; /* what the caller has; of device memory an address of the GPU */
};

struct nj_vk_stream {
    struct nj_vk_stream *next;
    VkCommandPool pool;
    VkCommandBuffer commands[NJ_VK_BATCHES];
    uint64_t value[NJ_VK_BATCHES]; /* that the semaphore has when the batch is done */
    int at, open;                  /* batch that is recorded to, if it is open */
    int recorded;                  /* commands in it */
    double operations;             /* in it */
    struct nj_vk_memory *staging;  /* for host memory that is not pinned; NULL until it is needed */
    size_t staged;                 /* bytes of it that are in use until the stream is done */
};

struct nj_vk {
    struct nj_vk_api api;
    VkInstance instance;
    VkPhysicalDevice physical;
    VkPhysicalDeviceProperties properties; /* of it */
    VkDevice device;
    VkQueue queue;
    uint32_t family;
    VkPhysicalDeviceMemoryProperties memory;
    VkDeviceSize allocation_max; /* that the driver promises; many give more */
    VkDeviceSize buffer_max;
    uint32_t groups_max[2], threads_max; /* of a dispatch, of a workgroup */
    float ns_per_tick;                   /* 0: the queue has no timestamps */
    uint64_t ticks_most;                 /* of them; what follows is 0 again */
    int has_budget;                      /* VK_EXT_memory_budget */
    int has_compile_control;             /* a pipeline that had to be compiled can be refused */
    VkSemaphore done;                    /* counts submissions */
    uint64_t submitted;
    struct nj_vk_memory *allocations;
    struct nj_vk_stream *streams;
    nj_stream service; /* zeroes new memory */
    VkPipelineLayout layout;
    VkPipelineCache cache;
    uint64_t key[2]; /* of its file */
    int cached;      /* pipelines may be in it: the driver is asked for them without compiling */
    VkPipeline *pipelines; /* by kernel number */
    VkPipeline gemms[NJ_VK_GEMMS][NJ_VK_TYPES][NJ_VK_TILES];
    char lost[NJ_SENTENCE_BYTES]; /* the error after which the device answers nothing */
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

/* 0, or a code with a sentence that names the error; what says which call, with its sizes. */
int nj_vk_check(nj_context *ctx, VkResult result, const char *what);

/* 1, with the sentence, if the shaders cannot run on it. */
int nj_vk_lacks(const struct nj_vk *vk, VkPhysicalDevice device,
                const VkPhysicalDeviceProperties *p, char *why, size_t bytes);
int nj_vk_rank_of(
    VkPhysicalDeviceType type); /* discrete 0, integrated 1, virtual 2, on the CPU 3 */
void nj_vk_sizes(const struct nj_vk *vk, VkPhysicalDevice device, VkDeviceSize *memory,
                 VkDeviceSize *allocation, VkDeviceSize *buffer);
int nj_vk_open_device(nj_context *ctx); /* the one that was chosen */
void nj_vk_pace(nj_context *ctx, const struct nj_speed *speed);

/* Sets vk->physical and vk->properties. */
int nj_vk_choose_device(nj_context *ctx, const struct nj_options *options);
int nj_vk_switched_off(nj_context *ctx); /* NJ_E_NO_DEVICE with NOJIT_VULKAN_DEVICE=none */
void nj_vk_list_devices(nj_context *ctx, void (*log)(void *user, const char *line), void *user);
size_t nj_vk_budget(nj_context *ctx, enum nj_memory kind);

/* Waits until the submission of that number is done. */
int nj_vk_wait(nj_context *ctx, uint64_t value);
int nj_vk_commands_create(nj_stream *s);
void nj_vk_commands_destroy(nj_stream *s);
/* The open command buffer of a stream, and after a command was recorded: what follows sees its
 * results. operations: of the command. After a piece of one, whose other pieces follow, nothing waits. */
int nj_vk_begin(nj_stream *s, VkCommandBuffer *out);
int nj_vk_recorded(nj_stream *s, double operations);
int nj_vk_piece(nj_stream *s, double operations);
int nj_vk_submit(nj_stream *s);
int nj_vk_finish(nj_stream *s); /* submits and waits */

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

/* The file of pipelines in a folder, or NULL for none. The key goes to the device's info, too. */
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
