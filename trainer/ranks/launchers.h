/* SPDX-License-Identifier: Apache-2.0
 *
 * launchers.h: finds out which process of a run this is, from the variables that launchers set.
 */
#ifndef NOJIT_TRAINER_LAUNCHERS_H
#define NOJIT_TRAINER_LAUNCHERS_H

#include <stddef.h>

enum { RANKS_MAX = 4096, HOST_BYTES = 256, JOB_BYTES = 256, SECRET_BYTES = 16 };

struct place {
    int rank, size;
    int local_rank, local_size; /* position and number of the run's processes on this host */
    char host[HOST_BYTES];      /* host of rank 0 */
    int port;                   /* port on which rank 0 listens */
    const char *launcher;       /* name of the launcher; NULL: there is none, and size is 1 */
    char job[JOB_BYTES];        /* name of this job of the launcher; "": it does not say */
    /* secret that only the ranks of this run know, from --gpus or NOJIT_SECRET; all zeros: none */
    unsigned char secret[SECRET_BYTES];
};

/* Find this process's place. Return 0, or NJ_E_ARG if variables contradict each other or one
 * that size needs is missing. */
int launcher_find(struct place *out);

/* Read the number of seconds within which all ranks must have connected, and how long one may be
 * silent after that; NJ_E_ARG as above. */
int launcher_seconds(int *connect, int *silence);

/* Extract the first host of a list as Slurm writes it: "a01" of "a[01-03,7],b". NJ_E_FORMAT: it
 * is not such a list. */
int node_list_first(const char *list, char out[HOST_BYTES]);

#endif
