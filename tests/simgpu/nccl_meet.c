/* SPDX-License-Identifier: Apache-2.0
 *
 * nccl_meet.c: ranks of the simulated NCCL meet in a file that the id names, wait for each other, and
 * say the first fault of any of them. Who is gone shows by the lock that the system takes back.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "nccl.h"

enum { POLL_NS = 20000, POLLS_A_LOOK = 256, WAIT_SECONDS = 120 };

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
}

static long seconds_to_wait(void)
{
    const char *told = getenv("NOJIT_SIM_NCCL_WAIT");
    return told ? strtol(told, NULL, 10) : WAIT_SECONDS;
}

static long now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

/* ---- faults ---- */

char nccl_last_error[NCCL_SAY_BYTES];

int nccl_say(const struct sim_hook *hook, int result, const char *format, ...)
{
    char text[NCCL_SAY_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (hook && strcmp(text, nccl_last_error) != 0)
        hook->say("NCCL: %s", text);
    memcpy(nccl_last_error, text, sizeof text);
    return result;
}

int nccl_fault(struct nccl_comm *c, const char *format, ...)
{
    struct nccl_group *g = c->group;
    int none = 0;
    if (atomic_compare_exchange_strong(&g->faulty, &none, 1)) {
        va_list args;
        va_start(args, format);
        vsnprintf(g->fault, sizeof g->fault, format, args);
        va_end(args);
        atomic_store(&g->faulty, 2);
    }
    nccl_is_faulty(c);
    return NCCL_REMOTE_ERROR;
}

int nccl_is_faulty(struct nccl_comm *c)
{
    if (atomic_load(&c->group->faulty) == 0)
        return 0;
    while (atomic_load(&c->group->faulty) == 1)
        nap();
    return nccl_say(c->hook, 1, "%s", c->group->fault);
}

int nccl_told(struct nccl_comm *c, uint64_t call)
{
    const char *told = getenv("NOJIT_SIM_NCCL_FAULT");
    char what[8] = "";
    unsigned long long at;
    int rank;
    if (!told || sscanf(told, "%d:%llu:%7s", &rank, &at, what) != 3 || rank != c->rank ||
        at != call)
        return 0;
    if (strcmp(what, "die") == 0)
        raise(SIGKILL);
    while (strcmp(what, "hang") == 0 && !nccl_is_faulty(c)) /* until the others have given up */
        nap();
    return nccl_fault(c, "rank %d, call %llu: fails as it was told", rank, at);
}

void nccl_be_late(const struct nccl_comm *c)
{
    const char *told = getenv("NOJIT_SIM_NCCL_LATE");
    int rank, ms;
    if (told && sscanf(told, "%d:%d", &rank, &ms) == 2 && rank == c->rank)
        nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}

/* ---- who is there ---- */

static struct flock byte_of(int rank)
{
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = rank, .l_len = 1};
}

static int is_gone(const struct nccl_comm *c, int rank)
{
    struct flock lock = byte_of(rank);
    return rank != c->rank && fcntl(c->fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

int nccl_join(struct nccl_comm *c, int version)
{
    struct flock lock = byte_of(c->rank);
    struct stat st;
    c->fd = open(c->path, O_RDWR | O_CLOEXEC);
    if (c->fd < 0 || fstat(c->fd, &st) || (uint64_t)st.st_size < sizeof *c->group)
        return nccl_say(c->hook, NCCL_INVALID_ARGUMENT, "the id is none that was made here");
    void *at = mmap(NULL, sizeof *c->group, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, 0);
    if (at == MAP_FAILED)
        return nccl_say(c->hook, NCCL_INTERNAL_ERROR, "the group cannot be mapped");
    c->group = at;
    c->since = now_seconds();
    if (fcntl(c->fd, F_OFD_SETLK, &lock))
        return nccl_say(c->hook, NCCL_INVALID_USAGE, "another process is rank %d", c->rank);
    if (nccl_told(c, 0))
        return NCCL_REMOTE_ERROR;
    struct nccl_place *place = &c->group->place[c->rank];
    place->version = version;
    place->ranks = c->ranks;
    atomic_store(&place->state, NCCL_HERE);
    if (atomic_fetch_add(&c->group->joined, 1) + 1 == c->ranks)
        unlink(c->path);
    return 0;
}

static int compare_ranks(struct nccl_comm *c, int rank)
{
    const struct nccl_place *a = &c->group->place[c->rank], *b = &c->group->place[rank];
    if (a->ranks != b->ranks)
        return nccl_fault(c, "rank %d is of %d ranks, rank %d of %d", c->rank, a->ranks, rank,
                          b->ranks);
    if (a->version != b->version)
        return nccl_fault(c, "rank %d has version %d of NCCL, rank %d has %d", c->rank, a->version,
                          rank, b->version);
    return 0;
}

/* All are there, and alike: what one of them does wrong after that shows later. */
int nccl_joined(struct nccl_comm *c)
{
    for (int rank = 0; rank < c->ranks && !c->ready; rank++) {
        if (atomic_load(&c->group->place[rank].state) == NCCL_ABSENT) {
            if (nccl_is_faulty(c))
                return NCCL_REMOTE_ERROR;
            return now_seconds() - c->since <= seconds_to_wait()
                       ? NCCL_IN_PROGRESS
                       : nccl_fault(c, "rank %d has not come; rank %d waits for it", rank, c->rank);
        }
        if (compare_ranks(c, rank))
            return NCCL_REMOTE_ERROR;
    }
    if (c->ready && nccl_is_faulty(c))
        return NCCL_REMOTE_ERROR;
    c->ready = 1;
    return 0;
}

int nccl_leave(struct nccl_comm *c)
{
    if (nccl_is_faulty(c))
        return NCCL_REMOTE_ERROR;
    atomic_store(&c->group->place[c->rank].state, NCCL_ENDED);
    for (int rank = 0; rank < c->ranks; rank++)
        if (atomic_load(&c->group->place[rank].state) != NCCL_ENDED)
            return is_gone(c, rank) && atomic_load(&c->group->place[rank].state) != NCCL_ENDED
                       ? nccl_fault(c, "rank %d is gone; rank %d ends its communicator", rank,
                                    c->rank)
                       : NCCL_IN_PROGRESS;
    return 0;
}

void nccl_close(struct nccl_comm *c)
{
    if (c->group)
        munmap(c->group, sizeof *c->group);
    if (c->fd >= 0)
        close(c->fd);
    free(c);
}

/* ---- waiting ---- */

static int look_at(struct nccl_comm *c, int rank, uint64_t passed, long since, const char *what)
{
    const struct nccl_place *place = &c->group->place[rank];
    const int gone = is_gone(c, rank), state = atomic_load(&place->state);
    const unsigned long long call = c->calls;
    if (nccl_is_faulty(c))
        return NCCL_REMOTE_ERROR;
    if (atomic_load(&place->passed) >= passed)
        return 0;
    if (gone)
        return nccl_fault(c, "rank %d is gone; rank %d waits for it in call %llu, %s", rank,
                          c->rank, call, what);
    if (state == NCCL_ENDED)
        return nccl_fault(
            c, "rank %d has ended its communicator; rank %d waits for it in call %llu, %s", rank,
            c->rank, call, what);
    if (now_seconds() - since > seconds_to_wait())
        return nccl_fault(c, "rank %d has not come to call %llu, %s, which rank %d waits in", rank,
                          call, what, c->rank);
    return 0;
}

int nccl_wait(struct nccl_comm *c, uint64_t passed, const char *what)
{
    const long since = now_seconds();
    atomic_store(&c->group->place[c->rank].passed, passed);
    for (int rank = 0; rank < c->ranks; rank++)
        for (int polls = 1; atomic_load(&c->group->place[rank].passed) < passed; polls++) {
            if (polls % POLLS_A_LOOK == 0 && look_at(c, rank, passed, since, what))
                return NCCL_REMOTE_ERROR;
            nap();
        }
    return 0;
}
