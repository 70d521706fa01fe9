/* SPDX-License-Identifier: Apache-2.0
 *
 * cupti_kernels.c: where the milliseconds of a step go. A library that the driver loads into a run
 * (CUDA_INJECTION64_PATH); it records when each kernel, copy and fill ran, graphs included, and at exit writes a table
 * to $KERNEL_TABLE, whose %p is the number of the process: the time of each phase of a step, how long of it the GPU was
 * idle, and how long it copied while no kernel ran; then what a step spends in each kernel. (copy to a GPU) is what
 * this process sent to another GPU.
 *
 * $KERNEL_PHASES names the phases in the order of a step, NAME:MARK,NAME:MARK; a phase ends with the last run of a
 * kernel whose name holds MARK before one of the next phase's MARK comes, and a step with its last phase. Without it
 * they are those of training: kd_head or tv_head, clip_scale, adamw. One phase is enough, for decoding
 * token:nj_sample. The first $KERNEL_SKIP steps (default 5, at least 1) are left out.
 */
#include <cupti.h>

#include "kernel_steps.h"

#include <unistd.h>

enum { BUFFER_BYTES = 8 << 20 };

static struct timeline timeline;

int InitializeInjection(void);

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *bytes, size_t *most)
{
    *buffer = aligned_alloc(8, BUFFER_BYTES);
    *bytes = BUFFER_BYTES;
    *most = 0;
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t bytes,
                                 size_t valid)
{
    CUpti_Activity *record = NULL;
    (void)context;
    (void)stream;
    (void)bytes;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
            const CUpti_ActivityKernel10 *k = (const void *)record;
            timeline_add(&timeline, k->name, k->start, k->end);
        } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
            const CUpti_ActivityMemcpy6 *k = (const void *)record;
            timeline_add(&timeline, "(copy)", k->start, k->end);
        } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY2) {
            const CUpti_ActivityMemcpyPtoP4 *k = (const void *)record;
            timeline_add(&timeline, "(copy to a GPU)", k->start, k->end);
        } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
            const CUpti_ActivityMemset4 *k = (const void *)record;
            timeline_add(&timeline, "(fill)", k->start, k->end);
        }
    }
    free(buffer);
}

static FILE *open_table(void)
{
    char path[4096];
    const char *name = getenv("KERNEL_TABLE"), *mark = name != NULL ? strstr(name, "%p") : NULL;
    if (name == NULL)
        return stderr;
    if (mark == NULL)
        return fopen(name, "w");
    snprintf(path, sizeof path, "%.*s%ld%s", (int)(mark - name), name, (long)getpid(), mark + 2);
    return fopen(path, "w");
}

static void report(void)
{
    const char *skip = getenv("KERNEL_SKIP"), *phases = getenv("KERNEL_PHASES");
    FILE *f = open_table();
    cuptiActivityFlushAll(1);
    if (f == NULL)
        return;
    if (phases == NULL || *phases == '\0')
        phases = "forward passes and head:_head,"
                 "backward pass and gradients:clip_scale,"
                 "update:adamw";
    timeline_write(&timeline, phases, skip != NULL ? (int)strtol(skip, NULL, 10) : 5, f);
    timeline_free(&timeline);
    if (f != stderr)
        fclose(f);
}

int InitializeInjection(void)
{
    if (cuptiActivityRegisterCallbacks(give_buffer, take_buffer) != CUPTI_SUCCESS)
        return 0;
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY);
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY2);
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET);
    atexit(report);
    return 1;
}
