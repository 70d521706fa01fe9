/* SPDX-License-Identifier: Apache-2.0
 *
 * mapped.c: see mapped.h. Reading bytes that a file no longer has, or that its disk fails to
 * deliver, raises SIGBUS in the thread that reads them.
 */
#include "formats/mapped.h"

#include "base/utf8.h"
#include "io/error.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct mapping {
    char *base;
    size_t bytes;
    char *path;
    struct mapping *next;
} * mappings;
/* Lock of the list, held while it is read or changed, which never touches mapped bytes: so a
 * thread that is in on_loss() cannot hold it already. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const struct mapping *mapping_of(const char *at)
{
    pthread_mutex_lock(&lock);
    const struct mapping *m = mappings;
    while (m != NULL && (at < m->base || at >= m->base + m->bytes))
        m = m->next;
    pthread_mutex_unlock(&lock);
    return m; /* stays valid: its owner unmaps it only after its own reads */
}

static void put(const char *text)
{
    const ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written; /* there is nobody else to tell */
}

static void on_loss(int sig, siginfo_t *info, void *context)
{
    const struct mapping *m = mapping_of(info->si_addr);
    (void)context;
    if (m == NULL) { /* not one of these mappings: the access recurs and ends the process */
        signal(sig, SIG_DFL);
        return;
    }
    put("nojit: ");
    put(m->path);
    put(": read error: the file was truncated while in use, or its disk is failing; restore it and "
        "run again\n");
    _exit(1);
}

static void handle_loss(void)
{
    struct sigaction action = {.sa_sigaction = on_loss, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}

int mapped_begin(const char *path, int fd, size_t bytes, void **base)
{
    struct mapping *m = malloc(sizeof *m);
    char *copy = strdup(path);
    *base = NULL;
    void *at = m && copy ? mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    if (at == MAP_FAILED) {
        const int rc = m && copy ? NJ_E_IO : NJ_E_NOMEM;
        fail(rc, "%s: cannot map %zu bytes: %s", path, bytes,
             rc == NJ_E_IO ? strerror(errno) : "out of memory");
        free(m);
        free(copy);
        return rc;
    }
    make_printable(copy);
    pthread_mutex_lock(&lock);
    *m = (struct mapping){at, bytes, copy, mappings};
    mappings = m;
    pthread_mutex_unlock(&lock);
    pthread_once(&once, handle_loss);
    *base = at;
    return 0;
}

void mapped_passed(const void *data, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const struct mapping *m = mapping_of(data);
    if (m == NULL)
        return;
    const size_t first = (size_t)((const char *)data - m->base);
    const size_t begin = (first + page - 1) / page * page, end = (first + bytes) / page * page;
    if (begin < end)
        (void)madvise(m->base + begin, end - begin, MADV_DONTNEED);
}

void mapped_end(void *base)
{
    pthread_mutex_lock(&lock);
    struct mapping **at = &mappings;
    while (*at != NULL && (*at)->base != base)
        at = &(*at)->next;
    struct mapping *m = *at;
    if (m != NULL)
        *at = m->next;
    pthread_mutex_unlock(&lock);
    if (m == NULL)
        return;
    munmap(m->base, m->bytes);
    free(m->path);
    free(m);
}
