/* SPDX-License-Identifier: Apache-2.0
 *
 * mapped.c: see mapped.h. Bytes that a file no longer has, or that its disk does not give, come as SIGBUS,
 * in whichever thread looks at them.
 */
#include "io/mapped.h"

#include "io/error.h"
#include "utf8.h"

#include <errno.h>
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

static void put(const char *text)
{
    const ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written; /* there is nobody else to tell */
}

static void on_loss(int sig, siginfo_t *info, void *context)
{
    const char *at = info->si_addr;
    const struct mapping *m = mappings;
    (void)context;
    while (m != NULL && (at < m->base || at >= m->base + m->bytes))
        m = m->next;
    if (m == NULL) { /* none of ours: the access is repeated, and ends the process as ever */
        signal(sig, SIG_DFL);
        return;
    }
    put("nojit: ");
    put(m->path);
    put(": can no longer be read: somebody has made the file shorter, or its disk fails; put it "
        "back "
        "and start again\n");
    _exit(1);
}

int mapped_begin(const char *path, int fd, size_t bytes, void **base)
{
    struct sigaction action = {.sa_sigaction = on_loss, .sa_flags = SA_SIGINFO};
    struct mapping *m = malloc(sizeof *m);
    char *copy = strdup(path);
    *base = NULL;
    void *at = m && copy ? mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    if (at == MAP_FAILED) {
        const int err = m && copy ? NJ_E_IO : NJ_E_NOMEM;
        fail(err, "%s: cannot map %zu bytes: %s", path, bytes,
             err == NJ_E_IO ? strerror(errno) : "out of memory");
        free(m);
        free(copy);
        return err;
    }
    make_printable(copy);
    *m = (struct mapping){at, bytes, copy, mappings};
    mappings = m;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
    *base = at;
    return NJ_OK;
}

void mapped_end(void *base)
{
    struct mapping **at = &mappings;
    while (*at != NULL && (*at)->base != base)
        at = &(*at)->next;
    struct mapping *m = *at;
    if (m == NULL)
        return;
    *at = m->next;
    munmap(m->base, m->bytes);
    free(m->path);
    free(m);
}
