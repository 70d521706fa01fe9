/* SPDX-License-Identifier: Apache-2.0
 *
 * lock.c: see lock.h. The file is removed with the end of its run, so that a folder holds results alone; a killed run
 * leaves it behind, unlocked, which does no harm. Locks of open file descriptions hold between containers of one
 * kernel, and over NFS between hosts.
 */
#include "record/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/error.h"
#include "record/run_files.h"

/* Write "process 42 on host" of an open lock into who. Return whether it is a lock of ours; an empty one is, as a run
 * may have been killed before it wrote. */
static bool read_lock(int fd, char *who, size_t bytes)
{
    char text[256];
    const ssize_t n = pread(fd, text, sizeof text - 1, 0);
    if (n < 0)
        return false;
    text[n] = '\0';
    text[strcspn(text, "\n")] = '\0';
    const size_t length = strlen(OWN_LOCK_MARK);
    const bool ours = n == 0 || strncmp(text, OWN_LOCK_MARK, length) == 0;
    snprintf(who, bytes, "%s", ours && n > 0 ? text + length : "another process");
    return ours;
}

static int refuse_busy(const char *dir, const char *who)
{
    return fail(NJ_E_IO, "%s: locked by %s; wait for that run to finish or choose another folder",
                dir, who);
}

int lock_check(const char *dir)
{
    char path[4200], who[256];
    struct stat info;
    snprintf(path, sizeof path, "%s/lock", dir);
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return 0; /* lock_take() says what is wrong */
    struct flock asked = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    const bool ours =
        fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && read_lock(fd, who, sizeof who);
    const bool busy = ours && fcntl(fd, F_OFD_GETLK, &asked) == 0 && asked.l_type != F_UNLCK;
    close(fd);
    return busy ? refuse_busy(dir, who) : 0;
}

/* Return whether the open file still has its name: a run that has the lock removes the file before it releases the
 * lock. */
static bool is_named(const struct lock *l)
{
    struct stat by_name, open_one;
    return lstat(l->path, &by_name) == 0 && fstat(l->fd, &open_one) == 0 &&
           by_name.st_dev == open_one.st_dev && by_name.st_ino == open_one.st_ino;
}

static int write_lock(const struct lock *l)
{
    char text[256], host[128] = "this host";
    (void)gethostname(host, sizeof host - 1);
    const int n =
        snprintf(text, sizeof text, OWN_LOCK_MARK "process %ld on %s\n", (long)getpid(), host);
    if (ftruncate(l->fd, 0) == 0 && pwrite(l->fd, text, (size_t)n, 0) == n)
        return 0;
    return fail(NJ_E_IO, "%s: cannot be written: %s", l->path, strerror(errno));
}

/* Lock the file, which is open; *again: whether it lost its name meanwhile. */
static int lock_open_file(struct lock *l, const char *dir, bool *again)
{
    char who[256];
    struct flock wanted = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (!read_lock(l->fd, who, sizeof who))
        return fail(NJ_E_ARG, "%s: not a nojit lock file; move it away", l->path);
    l->held = fcntl(l->fd, F_OFD_SETLK, &wanted) == 0;
    if (!l->held && (errno == EAGAIN || errno == EACCES)) {
        (void)read_lock(l->fd, who, sizeof who); /* the holder may have written it just now */
        return refuse_busy(dir, who);
    }
    if (!l->held)
        snprintf(l->why, sizeof l->why, "%s", strerror(errno));
    *again = !is_named(l);
    const int rc = *again ? 0 : write_lock(l);
    if (rc != 0 && l->held) /* else it may be another run's */
        (void)unlink(l->path);
    return rc;
}

int lock_take(struct lock *l, const char *dir)
{
    int rc = 0;
    bool again = true;
    *l = (struct lock){.fd = -1};
    for (int n = 0; rc == 0 && again && n < 100; n++) {
        snprintf(l->path, sizeof l->path, "%s/lock", dir);
        rc = own_open(l->path, O_RDWR | O_CREAT, &l->fd);
        if (rc == 0)
            rc = lock_open_file(l, dir, &again);
        if ((rc != 0 || again) && l->fd >= 0)
            close(l->fd);
    }
    if (rc == 0 && again)
        rc = fail(NJ_E_IO,
                  "%s: cannot be locked: other processes keep replacing it; choose another folder",
                  l->path);
    if (rc != 0)
        l->path[0] = '\0';
    return rc;
}

void lock_release(struct lock *l)
{
    if (l->path[0] == '\0')
        return;
    if (is_named(l))
        (void)unlink(l->path);
    close(l->fd);
    l->path[0] = '\0';
}
