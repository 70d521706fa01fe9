/* SPDX-License-Identifier: Apache-2.0
 *
 * address_space.c: refuses to start where address space is too short for OpenBLAS. Its constructor
 * maps a buffer for each thread of OpenMP and, where it gets none, tries again forever, before
 * main() and forevery command.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { BUFFER_MIB = 128, THREADS_MOST = 64 /* values of OpenBLAS as Debian builds it */ };

/* Return the number at the start of a variable's value, or 0. getenv() knows no variable yet. */
static long number_in(char **environment, const char *name)
{
    const size_t length = strlen(name);

    for (; *environment; environment++)
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return strtol(*environment + length + 1, NULL, 10);
    return 0;
}

/* Return for how many threads OpenBLAS takes a buffer: those of OpenMP, which cannot be asked yet, up to one per
 * processor. */
static int threads(char **environment)
{
    const long wanted = number_in(environment, "OMP_NUM_THREADS");
    cpu_set_t cpus;
    long n = 1;

    if (sched_getaffinity(0, sizeof cpus, &cpus) == 0)
        n = CPU_COUNT(&cpus);
    if (wanted > 0 && wanted < n)
        n = wanted;
    return (int)(n < THREADS_MOST ? n : THREADS_MOST);
}

/* Refuse a small address space. Run before any constructor, from .preinit_array. */
static void refuse_short_address_space(int argc, char **argv, char **environment)
{
    const size_t bytes = (size_t)threads(environment) * BUFFER_MIB << 20;
    struct rlimit limit;
    void *room;

    (void)argc;
    (void)argv;
    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
        return;
    room = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) {
        dprintf(STDERR_FILENO,
                "nojit: the limit of %llu MiB on address space (ulimit -v) has no room for the "
                "%zu MiB that OpenBLAS takes, %d for each thread; raise it, or set OMP_NUM_THREADS "
                "to fewer threads\n",
                (unsigned long long)limit.rlim_cur >> 20, bytes >> 20, BUFFER_MIB);
        _exit(EXIT_FAILURE);
    }
    munmap(room, bytes);
}

__attribute__((section(".preinit_array"), used)) static void (*const before_constructors)(
    int, char **, char **) = refuse_short_address_space;
