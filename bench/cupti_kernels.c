/* SPDX-License-Identifier: Apache-2.0
 *
 * cupti_kernels.c: where the milliseconds of a step go. A library that the driver loads into a run
 * (CUDA_INJECTION64_PATH); it records when each kernel, copy and fill ran, graphs included, and at
 * exit writes a table to $KERNEL_TABLE, whose %p is the number of the process: what a step spends in
 * each, and how long the GPU was idle. A
 * step ends with the last run of the kernel whose name holds $KERNEL_MARK (default adamw); the first
 * $KERNEL_SKIP steps (default 5) are left out.
 */
#include <cupti.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER_BYTES = 8 << 20, NAMES = 512 };

struct span {
    uint64_t start, end;
    int name;
};
static struct span *spans;
static size_t count, capacity;
static char *names[NAMES];
static int name_count;

int InitializeInjection(void);

static int name_index(const char *name)
{
    for (int i = 0; i < name_count; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    if (name_count == NAMES)
        return NAMES - 1;
    names[name_count] = strdup(name);
    return name_count++;
}

static void add(const char *name, uint64_t start, uint64_t end)
{
    if (count == capacity) {
        capacity = capacity > 0 ? 2 * capacity : 1 << 16;
        spans = realloc(spans, capacity * sizeof *spans);
        if (spans == NULL)
            abort();
    }
    spans[count++] = (struct span){start, end, name_index(name)};
}

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
            add(k->name, k->start, k->end);
        } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
            const CUpti_ActivityMemcpy6 *k = (const void *)record;
            add("(copy)", k->start, k->end);
        } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
            const CUpti_ActivityMemset4 *k = (const void *)record;
            add("(fill)", k->start, k->end);
        }
    }
    free(buffer);
}

static int by_start(const void *a, const void *b)
{
    const uint64_t x = ((const struct span *)a)->start, y = ((const struct span *)b)->start;
    return (x > y) - (x < y);
}

static double totals[NAMES];
static size_t runs[NAMES];

static int by_total(const void *a, const void *b)
{
    const double x = totals[*(const int *)a], y = totals[*(const int *)b];
    return (x < y) - (x > y);
}

static bool is_mark(size_t i)
{
    const char *mark = getenv("KERNEL_MARK");
    return strstr(names[spans[i].name], mark != NULL ? mark : "adamw") != NULL;
}

/* First span after `skip` steps, and one past the last span of the last whole step. */
static int steps_between(int skip, size_t *first, size_t *last)
{
    int steps = 0;
    *first = *last = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_mark(i) || (i + 1 < count && is_mark(i + 1)))
            continue;
        steps++;
        *(steps <= skip ? first : last) = i + 1;
    }
    return steps - skip;
}

static void write_table(FILE *f, int steps, size_t first, size_t last)
{
    const uint64_t begin = spans[first - 1].end, end = spans[last - 1].end;
    uint64_t reached = begin;
    double busy = 0;
    int order[NAMES];
    for (size_t i = first; i < last; i++) {
        const uint64_t from = spans[i].start > reached ? spans[i].start : reached;
        if (spans[i].end > from) {
            busy += (double)(spans[i].end - from);
            reached = spans[i].end;
        }
        totals[spans[i].name] += (double)(spans[i].end - spans[i].start);
        runs[spans[i].name]++;
    }
    const double whole = (double)(end - begin);
    fprintf(f, "%d steps, %.3f ms per step, GPU idle %.2f %%\n", steps, whole / steps * 1e-6,
            100 * (1 - busy / whole));
    for (int i = 0; i < name_count; i++)
        order[i] = i;
    qsort(order, (size_t)name_count, sizeof *order, by_total);
    for (int i = 0; i < name_count && totals[order[i]] > 0; i++)
        fprintf(f, "%9.3f ms %5.1f %% %7.1f runs  %s\n", totals[order[i]] / steps * 1e-6,
                100 * totals[order[i]] / whole, (double)runs[order[i]] / steps, names[order[i]]);
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
    const char *skip = getenv("KERNEL_SKIP");
    FILE *f = open_table();
    size_t first, last;
    cuptiActivityFlushAll(1);
    if (f == NULL)
        return;
    qsort(spans, count, sizeof *spans, by_start);
    const int steps = steps_between(skip != NULL ? (int)strtol(skip, NULL, 10) : 5, &first, &last);
    if (steps > 0 && first > 0)
        write_table(f, steps, first, last);
    else
        fprintf(f, "too few steps to show\n");
    if (f != stderr)
        fclose(f);
}

int InitializeInjection(void)
{
    if (cuptiActivityRegisterCallbacks(give_buffer, take_buffer) != CUPTI_SUCCESS)
        return 0;
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY);
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET);
    atexit(report);
    return 1;
}
