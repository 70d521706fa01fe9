/* SPDX-License-Identifier: Apache-2.0
 *
 * unfinished.c: see unfinished.h. A signal handler may not allocate, so folders are read with
 * the system call itself.
 */
#include "io/unfinished.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io/path.h"

enum { MOST = 8, DEPTH = 4, PASSES = 3 };

/* Files and folders being written. If there are more at a time, they are not recorded, and stay
 * as after a kill. */
static struct {
    volatile sig_atomic_t there;
    char path[PATH_BYTES + 256];
} unfinished[MOST];

/* Directory entry as getdents64() writes it. */
struct entry {
    uint64_t inode;
    int64_t offset;
    unsigned short bytes;
    unsigned char type;
    char name[];
};

static void remove_at(int at, const char *name, int depth);

static void remove_entries(int folder, int depth)
{
    _Alignas(struct entry) char buffer[2048];
    long got;
    while ((got = syscall(SYS_getdents64, folder, buffer, sizeof buffer)) > 0)
        for (long i = 0; i < got;) {
            const struct entry *e = (const void *)(buffer + i);
            i += e->bytes;
            if (strcmp(e->name, ".") != 0 && strcmp(e->name, "..") != 0)
                remove_at(folder, e->name, depth);
        }
}

/* Remove a file or folder, in several passes, as other threads may still write. Links are
 * removed, not followed. */
static void remove_at(int at, const char *name, int depth)
{
    if (unlinkat(at, name, 0) == 0 || depth == 0)
        return;
    const int folder = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    for (int i = 0; folder >= 0 && i < PASSES; i++) {
        lseek(folder, 0, SEEK_SET);
        remove_entries(folder, depth - 1);
        if (unlinkat(at, name, AT_REMOVEDIR) == 0)
            break;
    }
    if (folder >= 0)
        close(folder);
}

void unfinished_remove(void)
{
    for (int i = 0; i < MOST; i++)
        if (unfinished[i].there)
            remove_at(AT_FDCWD, unfinished[i].path, DEPTH);
}

static void note(const char *path)
{
    for (int i = 0; i < MOST; i++)
        if (!unfinished[i].there) {
            const int n = snprintf(unfinished[i].path, sizeof unfinished[i].path, "%s", path);
            unfinished[i].there = n < (int)sizeof unfinished[i].path;
            return;
        }
}

/* Signals that ask a process to end. */
static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXCPU};
enum { ENDS = sizeof ends / sizeof *ends };

static void fill(sigset_t *set)
{
    sigemptyset(set);
    for (int i = 0; i < ENDS; i++)
        sigaddset(set, ends[i]);
}

/* Block signals until the path is recorded. */
int unfinished_make(const char *path, int (*make_one)(const char *path))
{
    sigset_t held, before;
    fill(&held);
    pthread_sigmask(SIG_BLOCK, &held, &before);
    const int made = make_one(path), error = errno;
    if (made >= 0)
        note(path);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return made;
}

void unfinished_done(const char *path)
{
    for (int i = 0; i < MOST; i++)
        if (unfinished[i].there && strcmp(unfinished[i].path, path) == 0)
            unfinished[i].there = false;
}

/* Remove unfinished files and raise the signal again: its default action is restored and takes
 * effect when the handler has returned. */
static void on_signal(int sig)
{
    const int error = errno;
    unfinished_remove();
    raise(sig);
    errno = error;
}

void unfinished_catch(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND}, before;
    fill(&action.sa_mask);
    for (int i = 0; i < ENDS; i++)
        if (sigaction(ends[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(ends[i], &action, NULL);
    signal(SIGXFSZ, SIG_IGN);
}
