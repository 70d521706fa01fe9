/* SPDX-License-Identifier: Apache-2.0
 *
 * launchers.h: which process of a run is this? Read from the variables that launchers set.
 */
#ifndef NOJIT_TRAINER_LAUNCHERS_H
#define NOJIT_TRAINER_LAUNCHERS_H

#include <stddef.h>

enum { RANKS_MAX = 4096, HOST_BYTES = 256, JOB_BYTES = 256, SECRET_BYTES = 16 };

struct place {
    int rank, size;
    int local_rank, local_size; /* among the processes of this host */
    char host[HOST_BYTES];      /* of rank 0 */
    int port;                   /* on which rank 0 listens */
    const char *launcher;       /* its name; NULL: there is none, and size is 1 */
    char job[JOB_BYTES];        /* which of the launcher's jobs this is; "": it does not say */
    /* what only the ranks of this run know, of --gpus or NOJIT_SECRET; zeros: they have no secret */
    unsigned char secret[SECRET_BYTES];
};

/* 0, or NJ_E_ARG: variables contradict each other, or something that size needs is missing. */
int launcher_find(struct place *out);

/* In how many seconds all ranks must have come, and how long one may be silent then; NJ_E_ARG as above. */
int launcher_seconds(int *connect, int *silence);

/* The first host of a list as Slurm writes it: "a01" of "a[01-03,7],b". NJ_E_FORMAT: it is none. */
int node_list_first(const char *list, char out[HOST_BYTES]);

#endif
