/* SPDX-License-Identifier: Apache-2.0
 *
 * refused_memory.h: an allocator that refuses on demand. The linker redirects the allocations of a program and of its
 * static libraries (Jansson, libyaml, Oniguruma) to it (--wrap). Allocations inside libc (except getline) and libgomp,
 * which are shared libraries, are not counted.
 */
#ifndef NOJIT_TESTS_REFUSED_MEMORY_H
#define NOJIT_TESTS_REFUSED_MEMORY_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static bool armed;
static bool for_good; /* all later allocations fail, too; otherwise only one */
static long until;    /* allocations that still succeed */
static long live;     /* blocks allocated and not freed while armed */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t align, size_t bytes);
int __real_posix_memalign(void **out, size_t align, size_t bytes);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t bytes);
ssize_t __real_getdelim(char **line, size_t *room, int end, FILE *f);
void __real_free(void *block);

ssize_t __wrap___getdelim(char **line, size_t *room, int end, FILE *f);
ssize_t __wrap_getdelim(char **line, size_t *room, int end, FILE *f);
ssize_t __wrap_getline(char **line, size_t *room, FILE *f);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes);
int __wrap_posix_memalign(void **out, size_t align, size_t bytes);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t bytes);
void __wrap_free(void *block);

static bool refused(void)
{
    if (!armed)
        return false;
    until--;
    if (until == -1 || (for_good && until < 0)) {
        errno = ENOMEM;
        return true;
    }
    return false;
}

static void *counted(void *block)
{
    live += armed && block;
    return block;
}

void *__wrap_malloc(size_t bytes)
{
    return refused() ? NULL : counted(__real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return refused() ? NULL : counted(__real_calloc(count, bytes));
}

void *__wrap_realloc(void *old, size_t bytes)
{
    if (refused())
        return NULL;
    void *block = __real_realloc(old, bytes);
    live += armed && block && !old;
    return block;
}

void *__wrap_aligned_alloc(size_t align, size_t bytes)
{
    return refused() ? NULL : counted(__real_aligned_alloc(align, bytes));
}

int __wrap_posix_memalign(void **out, size_t align, size_t bytes)
{
    if (refused())
        return ENOMEM;
    const int rc = __real_posix_memalign(out, align, bytes);
    live += armed && rc == 0;
    return rc;
}

char *__wrap_strdup(const char *text)
{
    return refused() ? NULL : counted(__real_strdup(text));
}

char *__wrap_strndup(const char *text, size_t bytes)
{
    return refused() ? NULL : counted(__real_strndup(text, bytes));
}

/* libc allocates the line. A line that fits into the existing buffer counts as an allocation, too. */
ssize_t __wrap_getdelim(char **line, size_t *room, int end, FILE *f)
{
    const bool none = *line == NULL;
    if (refused())
        return -1;
    const ssize_t got = __real_getdelim(line, room, end, f);
    live += armed && none && *line;
    return got;
}

/* glibc's headers replace getline() by this. */
ssize_t __wrap___getdelim(char **line, size_t *room, int end, FILE *f)
{
    return __wrap_getdelim(line, room, end, f);
}

ssize_t __wrap_getline(char **line, size_t *room, FILE *f)
{
    return __wrap_getdelim(line, room, '\n', f);
}

void __wrap_free(void *block)
{
    live -= armed && block;
    __real_free(block);
}

/* Refuse allocation n, counted from 0 from this call on, and every later one if stays_so. */
static void refuse_from(long n, bool stays_so)
{
    live = 0;
    until = n;
    for_good = stays_so;
    armed = true;
}

#endif
