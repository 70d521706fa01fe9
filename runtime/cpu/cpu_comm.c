/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_comm.c: communicators of processes of one host, the reference of those on GPUs: shared memory
 * with a slot for each rank, through which everything goes in pieces, between barriers. Each rank
 * holds a lock on a byte of it, which the system gives back when the process ends, however it does:
 * that is how the others find out.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cpu.h"

enum {
    SLOT_BYTES = 1 << 20,
    WAIT_SECONDS = 120, /* time to wait for the other ranks to join */
    POLL_NS = 20000,
    POLLS_A_LOOK = 256 /* number of polls between two checks whether a rank is gone */
};

/* One rank's part of the shared object. */
struct place {
    _Atomic uint64_t passed;  /* number of barriers that the rank has reached */
    struct nj_transfer doing; /* its call, without the addresses */
    _Alignas(64) char slot[SLOT_BYTES];
};

struct group {
    struct place *place; /* shared places of the ranks, [ranks] */
    size_t bytes;
    int fd;
    uint64_t passed;
};

static const char *const kind_name[] = {[NJ_ALL_TO_ALL] = "an all-to-all",
                                        [NJ_ALL_GATHER] = "an all-gather",
                                        [NJ_BROADCAST] = "a broadcast"};

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
}

/* ---- who is there ---- */

static struct flock byte_of(int rank)
{
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = rank, .l_len = 1};
}

static int is_gone(const struct group *g, int rank)
{
    struct flock lock = byte_of(rank);

    return fcntl(g->fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

/* Wait until all ranks have reached as many barriers as this one. A rank that reached it and ended counts. */
static int barrier(nj_comm *c)
{
    struct group *g = c->handle;

    g->passed++;
    atomic_store(&g->place[c->rank].passed, g->passed);
    for (int rank = 0; rank < c->ranks; rank++)
        for (int polls = 1; atomic_load(&g->place[rank].passed) < g->passed; polls++) {
            if (polls % POLLS_A_LOOK == 0 && is_gone(g, rank) &&
                atomic_load(&g->place[rank].passed) < g->passed)
                return nj_fail(c->ctx, NJ_E_DEVICE, "rank %d of %d is gone", rank, c->ranks);
            nap();
        }
    return 0;
}

/* ---- made and ended ---- */

int nj_cpu_comm_id(nj_context *ctx, unsigned char *id)
{
    uint64_t number[2];

    if (getrandom(number, sizeof number, 0) != (ssize_t)sizeof number)
        return nj_fail(ctx, NJ_E_DEVICE, "the system has no random numbers: %s", strerror(errno));
    memset(id, 0, NJ_COMM_ID_BYTES);
    snprintf((char *)id, NJ_COMM_ID_BYTES, "/nojit-%016llx%016llx", (unsigned long long)number[0],
             (unsigned long long)number[1]);
    return 0;
}

/* Open the shared object. Rank 0 creates it and completes it before the others see it: they wait for its size. */
static int open_object(nj_comm *c, const char *name, struct group *g)
{
    struct stat st;

    if (c->rank == 0) {
        g->fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (g->fd < 0)
            return nj_fail(c->ctx, NJ_E_DEVICE, "shared memory cannot be made: %s",
                           strerror(errno));
        const int full = posix_fallocate(g->fd, 0, (off_t)g->bytes);
        if (full)
            return nj_fail(c->ctx, NJ_E_NOMEM, "%zu bytes of shared memory cannot be allocated: %s",
                           g->bytes, strerror(full));
        return 0;
    }
    for (long polls = 0; polls < WAIT_SECONDS * (1000000000L / POLL_NS); polls++) {
        if (g->fd < 0)
            g->fd = shm_open(name, O_RDWR | O_CLOEXEC, 0);
        if (g->fd >= 0 && fstat(g->fd, &st) == 0 && st.st_size == (off_t)g->bytes)
            return 0;
        nap();
    }
    return nj_fail(c->ctx, NJ_E_DEVICE, "rank 0 has made no group of %d ranks in %d seconds",
                   c->ranks, (int)WAIT_SECONDS);
}

static int map_object(nj_comm *c, struct group *g)
{
    struct flock lock = byte_of(c->rank);
    void *at = mmap(NULL, g->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, g->fd, 0);

    if (at == MAP_FAILED)
        return nj_fail(c->ctx, NJ_E_NOMEM, "%zu bytes of shared memory cannot be mapped: %s",
                       g->bytes, strerror(errno));
    g->place = at;
    if (fcntl(g->fd, F_OFD_SETLK, &lock) != 0)
        return nj_fail(c->ctx, NJ_E_ARG, "another process is rank %d", c->rank);
    return 0;
}

/* Pass the first barrier, which ranks that are still starting may take long to reach. */
static int meet(nj_comm *c, struct group *g)
{
    g->passed = 1;
    atomic_store(&g->place[c->rank].passed, 1);
    for (int rank = 0; rank < c->ranks; rank++)
        for (long polls = 0; atomic_load(&g->place[rank].passed) == 0; polls++) {
            if (polls > WAIT_SECONDS * (1000000000L / POLL_NS))
                return nj_fail(c->ctx, NJ_E_DEVICE, "rank %d of %d has not come in %d seconds",
                               rank, c->ranks, (int)WAIT_SECONDS);
            nap();
        }
    return 0;
}

int nj_cpu_comm_create(nj_comm *c, const unsigned char *id)
{
    struct group *g = calloc(1, sizeof *g);
    char name[NJ_COMM_ID_BYTES + 1] = "";
    int rc;

    if (!g)
        return nj_fail(c->ctx, NJ_E_NOMEM, "nj_comm_create: out of host memory");
    c->handle = g;
    g->fd = -1;
    g->bytes = (size_t)c->ranks * sizeof *g->place;
    memcpy(name, id, NJ_COMM_ID_BYTES);
    rc = open_object(c, name, g);
    if (rc == 0)
        rc = map_object(c, g);
    if (rc == 0)
        rc = meet(c, g);
    if (c->rank == 0) /* all ranks have it open, or the start has failed */
        shm_unlink(name);
    return rc;
}

void nj_cpu_comm_destroy(nj_comm *c)
{
    struct group *g = c->handle;

    if (!g)
        return;
    if (g->place)
        munmap(g->place, g->bytes);
    if (g->fd >= 0)
        close(g->fd);
    free(g);
    c->handle = NULL;
}

/* ---- transfers ---- */

/* Copy a piece of this rank's data, from offset `at` on, to its slot; in an all-to-all, one for each rank in turn. */
static void write_piece(const nj_comm *c, const struct nj_transfer *t, size_t at, size_t bytes)
{
    struct group *g = c->handle;
    char *slot = g->place[c->rank].slot;
    const char *from = (const char *)t->send + at;

    if (t->kind == NJ_ALL_TO_ALL)
        for (int rank = 0; rank < c->ranks; rank++)
            memcpy(slot + (size_t)rank * bytes, from + (size_t)rank * t->bytes, bytes);
    else if (t->kind == NJ_ALL_GATHER || c->rank == t->root)
        memcpy(slot, from, bytes);
}

static void read_piece(const nj_comm *c, const struct nj_transfer *t, size_t at, size_t bytes)
{
    const struct group *g = c->handle;
    const size_t mine = t->kind == NJ_ALL_TO_ALL ? (size_t)c->rank * bytes : 0;
    char *to = (char *)t->recv + at;

    if (t->kind == NJ_BROADCAST)
        memmove(to, g->place[t->root].slot, bytes);
    else
        for (int rank = 0; rank < c->ranks; rank++)
            memcpy(to + (size_t)rank * t->bytes, g->place[rank].slot + mine, bytes);
}

/* Check, before anything is read, that all ranks make the same call. */
static int check_doing(const nj_comm *c, const struct nj_transfer *t)
{
    const struct group *g = c->handle;

    for (int rank = 0; rank < c->ranks; rank++) {
        const struct nj_transfer *other = &g->place[rank].doing;
        if (other->kind != t->kind || other->bytes != t->bytes || other->root != t->root)
            return nj_fail(
                c->ctx, NJ_E_DEVICE, "rank %d does %s of %zu bytes where rank %d does %s of %zu",
                rank, kind_name[other->kind], other->bytes, c->rank, kind_name[t->kind], t->bytes);
    }
    return 0;
}

int nj_cpu_transfer(nj_comm *c, nj_stream *s, const struct nj_transfer *t)
{
    struct group *g = c->handle;
    const size_t most = t->kind == NJ_ALL_TO_ALL ? SLOT_BYTES / (size_t)c->ranks : SLOT_BYTES;
    int rc = 0;

    (void)s;
    g->place[c->rank].doing =
        (struct nj_transfer){.kind = t->kind, .bytes = t->bytes, .root = t->root};
    for (size_t at = 0; rc == 0 && at < t->bytes; at += most) {
        const size_t bytes = t->bytes - at < most ? t->bytes - at : most;
        write_piece(c, t, at, bytes);
        rc = barrier(c);
        if (rc == 0 && at == 0)
            rc = check_doing(c, t);
        if (rc == 0)
            read_piece(c, t, at, bytes);
        if (rc == 0)
            rc = barrier(c);
    }
    return rc;
}
