/* SPDX-License-Identifier: Apache-2.0
 *
 * interrupt.c: interrupt.so, for LD_PRELOAD: counts the system calls that change files in a folder,
 * and before one of them ends the process, lets it fail, or lets the disk be full. A filter in the
 * kernel hands each such call over as SIGSYS, so that those are seen, too, which libc makes within
 * itself (fclose, fflush, remove).
 *
 * INTERRUPT_IN=FOLDER: calls on files in it count, from 1.
 * INTERRUPT_LOG=FILE gets a line for each: number, bytes to write, name, path, its
 *     new path; with tabs between them.
 * INTERRUPT_AT=N: before call N the process gets the signal INTERRUPT_WITH (SIGKILL); if that is
 *     negative, the call fails with this error (-28 is ENOSPC).
 * INTERRUPT_FULL=BYTES: what would be written from call N on beyond so many bytes, in all files
 *     together, fails with ENOSPC.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#if defined __x86_64__
#define RESULT(c) ((c)->uc_mcontext.gregs[REG_RAX])
#define ARGUMENT(c, i)                                                                             \
    ((long)(c)->uc_mcontext.gregs[(const int[]){REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8}[i]])
#else
#define RESULT(c) ((c)->uc_mcontext.regs[0])
#define ARGUMENT(c, i) ((long)(c)->uc_mcontext.regs[i])
#endif

/* A sixth argument, which none of the calls has, marks those of this file: the filter lets them pass. */
enum { PASS = 0x6e6f6a69, PATH_BYTES = 4096 };

static const struct call {
    int number;
    const char *name;
    int path, new_path; /* their arguments, or -1; without a path it is of the descriptor */
    int flags;          /* argument with those of open, or -1 */
    int bytes;          /* argument with the bytes to write, or -1 */
} calls[] = {
    {SYS_write, "write", -1, -1, -1, 2},
    {SYS_pwrite64, "write", -1, -1, -1, 2},
    {SYS_ftruncate, "truncate", -1, -1, -1, -1},
    {SYS_fsync, "flush", -1, -1, -1, -1},
    {SYS_fdatasync, "flush", -1, -1, -1, -1},
    {SYS_openat, "open", 1, -1, 2, -1},
    {SYS_mkdirat, "mkdir", 1, -1, -1, -1},
    {SYS_unlinkat, "remove", 1, -1, -1, -1},
    {SYS_renameat, "rename", 1, 3, -1, -1},
    {SYS_renameat2, "rename", 1, 3, -1, -1},
    {SYS_linkat, "link", 1, 3, -1, -1},
    /* In no checkpoint; the script fails if one appears. */
    {SYS_writev, "unknown", -1, -1, -1, -1},
    {SYS_pwritev, "unknown", -1, -1, -1, -1},
    {SYS_fallocate, "unknown", -1, -1, -1, -1},
    {SYS_truncate, "unknown", 0, -1, -1, -1},
    {SYS_symlinkat, "unknown", 2, -1, -1, -1},
#ifdef SYS_open
    {SYS_open, "open", 0, -1, 1, -1},
    {SYS_creat, "open", 0, -1, -1, -1},
    {SYS_mkdir, "mkdir", 0, -1, -1, -1},
    {SYS_unlink, "remove", 0, -1, -1, -1},
    {SYS_rmdir, "remove", 0, -1, -1, -1},
    {SYS_rename, "rename", 0, 1, -1, -1},
    {SYS_link, "link", 0, 1, -1, -1},
    {SYS_symlink, "unknown", 1, -1, -1, -1},
#endif
};
enum { CALLS = sizeof calls / sizeof *calls };

static const char *folder;
static int log_file = -1;
static long count, at, with, written, room;

static long number_of(const char *name, long absent)
{
    const char *text = getenv(name);
    return text != NULL ? strtol(text, NULL, 10) : absent;
}

static size_t path_of_descriptor(long fd, char *buffer)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", (int)fd);
    const ssize_t n = readlink(link, buffer, PATH_BYTES - 1);
    buffer[n > 0 ? n : 0] = '\0';
    return strlen(buffer);
}

/* The path that is argument i; before it there may be the descriptor of the folder that it begins at. */
static const char *path_of(const ucontext_t *u, int i, char *buffer)
{
    const char *path = (const char *)(uintptr_t)ARGUMENT(u, i);
    if (path[0] == '/' || i == 0 || (int)ARGUMENT(u, i - 1) == AT_FDCWD)
        return path;
    const size_t n = path_of_descriptor(ARGUMENT(u, i - 1), buffer);
    snprintf(buffer + n, PATH_BYTES - n, "/%s", path);
    return buffer;
}

/* The file that a call is about, if that lies in the folder. */
static const char *file_of(const struct call *c, const ucontext_t *u, char *buffer)
{
    const char *path = buffer;
    if (c->path >= 0)
        path = path_of(u, c->path, buffer);
    else
        path_of_descriptor(ARGUMENT(u, 0), buffer);
    const size_t length = strlen(folder);
    const bool inside = strncmp(path, folder, length) == 0 && strchr("/", path[length]) != NULL;
    return inside ? path : NULL;
}

static long make_call(const struct call *c, const ucontext_t *u, long third)
{
    const long rc = syscall(c->number, ARGUMENT(u, 0), ARGUMENT(u, 1), third, ARGUMENT(u, 3),
                            ARGUMENT(u, 4), (long)PASS);
    return rc < 0 ? -errno : rc;
}

static void note(const struct call *c, const ucontext_t *u, const char *path, long bytes)
{
    char line[3 * PATH_BYTES], buffer[PATH_BYTES];
    const char *to = c->new_path >= 0 ? path_of(u, c->new_path, buffer) : "";
    const int n =
        snprintf(line, sizeof line, "%ld\t%ld\t%s\t%s\t%s\n", count, bytes, c->name, path, to);
    if (log_file >= 0)
        (void)syscall(SYS_write, (long)log_file, line, (long)n, 0L, 0L, (long)PASS);
}

static long disturbed(const struct call *c, const ucontext_t *u)
{
    char buffer[PATH_BYTES];
    const long third = ARGUMENT(u, 2);
    const bool reads =
        c->flags >= 0 && (ARGUMENT(u, c->flags) & (O_ACCMODE | O_CREAT | O_TRUNC)) == O_RDONLY;
    const char *path = reads ? NULL : file_of(c, u, buffer);
    if (path == NULL)
        return make_call(c, u, third);
    const long bytes = c->bytes >= 0 ? ARGUMENT(u, c->bytes) : 0;
    count++;
    note(c, u, path, bytes);
    if (room == LONG_MAX && count == at) {
        if (with < 0)
            return with;
        raise((int)with);
    }
    if (c->bytes < 0 || count < at)
        return make_call(c, u, third);
    /* As a disk does it, the part that has room is written. */
    if (bytes > 0 && written == room)
        return -ENOSPC;
    const long rc = make_call(c, u, bytes < room - written ? bytes : room - written);
    written += rc > 0 ? rc : 0;
    return rc;
}

static void on_call(int sig, siginfo_t *info, void *context)
{
    const int error = errno;
    const struct call *c = calls;
    (void)sig;
    while (c->number != info->si_syscall)
        c++;
    const long rc = disturbed(c, context);
    RESULT((ucontext_t *)context) = (__typeof__(RESULT((ucontext_t *)context)))rc;
    errno = error;
}

static void hand_over(void)
{
    struct sock_filter filter[2 * CALLS + 4] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[5])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PASS, 2 * CALLS + 1, 0),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    };
    size_t n = 3;
    for (size_t i = 0; i < CALLS; i++) {
        filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                                   (unsigned)calls[i].number, 0, 1);
        filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    }
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {.len = (unsigned short)n, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("interrupt.so: no filter of system calls");
        _exit(77);
    }
}

__attribute__((constructor)) static void begin(void)
{
    const char *log = getenv("INTERRUPT_LOG");
    folder = getenv("INTERRUPT_IN");
    at = number_of("INTERRUPT_AT", 0);
    with = number_of("INTERRUPT_WITH", SIGKILL);
    room = number_of("INTERRUPT_FULL", LONG_MAX);
    if (log != NULL)
        log_file = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (folder == NULL || (log != NULL && log_file < 0)) {
        fprintf(stderr, "interrupt.so: INTERRUPT_IN is not set, or no INTERRUPT_LOG\n");
        _exit(77);
    }
    /* The handler of a signal that comes here makes calls, too. */
    struct sigaction action = {.sa_sigaction = on_call, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigemptyset(&action.sa_mask);
    sigaction(SIGSYS, &action, NULL);
    hand_over();
}
