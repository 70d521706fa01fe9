/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_steps.h: makes a table from the kernels and copies that ran on a GPU, and when: the time of each phase of a
 * step, how much of it the GPU was idle or copied without computing, and the time of a step in each kernel. Included by
 * cupti_kernels.c, which records, and by tests/unit/test_kernel_steps.c.
 */
#ifndef NOJIT_KERNEL_STEPS_H
#define NOJIT_KERNEL_STEPS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES = 512, PHASES = 8 };

struct span {
    uint64_t start, end; /* times in ns */
    int name;
};

struct timeline {
    struct span *spans;
    size_t count, capacity;
    char *names[NAMES]; /* names of kernels; those of copies begin with "(copy" */
    int name_count;
};

/* Phases of a step. A phase ends with the last run of a kernel whose name holds `mark`, before a run of the next
 * phase's mark. */
struct phases {
    char text[256];
    const char *name[PHASES], *mark[PHASES];
    int count;
};

static int timeline_name(struct timeline *t, const char *name)
{
    for (int i = 0; i < t->name_count; i++)
        if (strcmp(t->names[i], name) == 0)
            return i;
    if (t->name_count == NAMES)
        return NAMES - 1;
    t->names[t->name_count] = strdup(name);
    return t->name_count++;
}

static void timeline_add(struct timeline *t, const char *name, uint64_t start, uint64_t end)
{
    if (t->count == t->capacity) {
        t->capacity = t->capacity > 0 ? 2 * t->capacity : 1 << 16;
        t->spans = realloc(t->spans, t->capacity * sizeof *t->spans);
        if (t->spans == NULL)
            abort();
    }
    t->spans[t->count++] = (struct span){start, end, timeline_name(t, name)};
}

static void timeline_free(struct timeline *t)
{
    for (int i = 0; i < t->name_count; i++)
        free(t->names[i]);
    free(t->spans);
    *t = (struct timeline){0};
}

/* Read the phases, "NAME:MARK,NAME:MARK", in the order of a step. */
static void phases_read(struct phases *p, const char *text)
{
    char *at = p->text;
    *p = (struct phases){0};
    snprintf(p->text, sizeof p->text, "%s", text);
    for (char *item; p->count < PHASES && (item = strsep(&at, ",")) != NULL; p->count++) {
        p->name[p->count] = strsep(&item, ":");
        p->mark[p->count] = item != NULL ? item : p->name[p->count];
    }
}

static int by_start(const void *a, const void *b)
{
    const uint64_t x = ((const struct span *)a)->start, y = ((const struct span *)b)->start;
    return (x > y) - (x < y);
}

/* Find the spans, sorted by start, that end a phase: the first phase of a step, the second, and so on to the last
 * one of the last whole step. If there is only one phase, consecutive runs of its mark count as one. Return their
 * number. */
static size_t find_ends(const struct timeline *t, const struct phases *p, size_t *ends)
{
    size_t found = 0, last = SIZE_MAX; /* the latest run of the mark of this phase */
    for (size_t i = 0; i < t->count; i++) {
        const int phase = (int)(found % (size_t)p->count), next = (phase + 1) % p->count;
        const char *name = t->names[t->spans[i].name];
        const bool apart = p->count > 1 || i != last + 1;
        if (last != SIZE_MAX && apart && strstr(name, p->mark[next]) != NULL) {
            ends[found++] = last;
            last = i;
        } else if (strstr(name, p->mark[phase]) != NULL) {
            last = i;
        }
    }
    if (last != SIZE_MAX)
        ends[found++] = last;
    return found - found % (size_t)p->count;
}

/* How long work of a kind ran, by phase. Spans are added by their start; time that several cover counts once. */
struct cover {
    uint64_t reached;
    size_t phase;
    double ns[PHASES];
};

/* Phase i lies between at[i] and at[i + 1]. */
static void cover_add(struct cover *c, const struct span *s, const uint64_t *at, size_t count,
                      int phases)
{
    uint64_t from = s->start > c->reached ? s->start : c->reached;
    while (from < s->end && c->phase < count) {
        const uint64_t end = at[c->phase + 1], to = s->end < end ? s->end : end;
        if (from < to) {
            c->ns[c->phase % (size_t)phases] += (double)(to - from);
            from = to;
        }
        if (from >= end)
            c->phase++;
    }
    c->reached = from;
}

struct kernel {
    const char *name;
    double ns;
    size_t runs;
};

static int by_time(const void *a, const void *b)
{
    const double x = ((const struct kernel *)a)->ns, y = ((const struct kernel *)b)->ns;
    return (x < y) - (x > y);
}

static void write_kernels(const struct timeline *t, uint64_t from, uint64_t to, double steps,
                          FILE *f)
{
    struct kernel kernel[NAMES] = {0};
    for (int i = 0; i < t->name_count; i++)
        kernel[i].name = t->names[i];
    for (size_t i = 0; i < t->count; i++) {
        const struct span *s = &t->spans[i];
        if (s->start < from || s->start >= to)
            continue;
        kernel[s->name].ns += (double)(s->end - s->start);
        kernel[s->name].runs++;
    }
    qsort(kernel, (size_t)t->name_count, sizeof *kernel, by_time);
    for (int i = 0; i < t->name_count && kernel[i].runs > 0; i++)
        fprintf(f, "%9.3f ms %5.1f %% %7.1f runs  %s\n", kernel[i].ns / steps * 1e-6,
                100 * kernel[i].ns / (double)(to - from), (double)kernel[i].runs / steps,
                kernel[i].name);
}

/* Write the table of steps. at: where the first of `count` phases begins, then where each ends. */
static void write_steps(const struct timeline *t, const struct phases *p, const uint64_t *at,
                        size_t count, FILE *f)
{
    struct cover all = {.reached = at[0]}, kernels = {.reached = at[0]};
    const double steps = (double)(count / (size_t)p->count), whole = (double)(at[count] - at[0]);
    double length[PHASES] = {0}, busy = 0;
    for (size_t i = 0; i < t->count; i++) {
        const struct span *s = &t->spans[i];
        cover_add(&all, s, at, count, p->count);
        if (strncmp(t->names[s->name], "(copy", 5) != 0)
            cover_add(&kernels, s, at, count, p->count);
    }
    for (size_t i = 0; i < count; i++)
        length[i % (size_t)p->count] += (double)(at[i + 1] - at[i]);
    for (int i = 0; i < p->count; i++)
        busy += all.ns[i];
    fprintf(f, "%.0f steps, %.3f ms per step, GPU idle %.2f %%\n", steps, whole / steps * 1e-6,
            100 * (1 - busy / whole));
    for (int i = 0; i < p->count; i++)
        fprintf(f, "%9.3f ms, %.3f idle, %.3f copies alone  %s\n", length[i] / steps * 1e-6,
                (length[i] - all.ns[i]) / steps * 1e-6, (all.ns[i] - kernels.ns[i]) / steps * 1e-6,
                p->name[i]);
    write_kernels(t, at[0], at[count], steps, f);
}

/* Write the table without the first `skip` steps, at least one: recording may have begun within a step. */
static void timeline_write(struct timeline *t, const char *phases, int skip, FILE *f)
{
    struct phases p;
    size_t *ends = calloc(t->count + 1, sizeof *ends);
    uint64_t *at = calloc(t->count + 1, sizeof *at);
    phases_read(&p, phases);
    if (ends == NULL || at == NULL)
        abort();
    if (t->count > 0)
        qsort(t->spans, t->count, sizeof *t->spans, by_start);
    const size_t found = find_ends(t, &p, ends), left_out = (size_t)(skip > 1 ? skip : 1);
    const size_t first = left_out * (size_t)p.count;
    for (size_t i = 0; i < found; i++) {
        at[i] = t->spans[ends[i]].end;
        if (i > 0 && at[i] < at[i - 1])
            at[i] = at[i - 1];
    }
    if (found > first)
        write_steps(t, &p, at + first - 1, found - first, f);
    else
        fprintf(f, "too few steps to show\n");
    free(at);
    free(ends);
}

#endif
