/* SPDX-License-Identifier: Apache-2.0
 *
 * work.h: how work is issued.
 */
#ifndef NOJIT_TRAINER_WORK_H
#define NOJIT_TRAINER_WORK_H

#include "nojit.h"

#include <stdbool.h>

/* Stream and state of the work being issued. The first error sticks and later work is skipped, so that model code
 * reads as equations. With `prepare` nothing is launched; matrix products are prepared instead, by the code that
 * will run them. */
struct work {
    nj_context *ctx;
    nj_stream *s;
    int rc;
    bool prepare;
    bool add; /* gradients of weights are added to the existing ones, not written over them */
};

#define OP(run, call)                                                                              \
    do {                                                                                           \
        if ((run)->rc == 0 && !(run)->prepare)                                                     \
            (run)->rc = (call);                                                                    \
    } while (0)

#endif
