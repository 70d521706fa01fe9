/* SPDX-License-Identifier: Apache-2.0
 *
 * placement.h: buffers placed in an arena by their lifetimes. Two buffers share memory only if no phase of a run needs
 * both; each goes to the first place that is free while it is in use.
 */
#ifndef NOJIT_TRAINER_PLACEMENT_H
#define NOJIT_TRAINER_PLACEMENT_H

#include "net/carve.h"

/* Phases of a run; a lifetime is a set of them. Between two steps a run loads, decodes or saves; a step goes
 * through the others in this order, from PHASE_TEACHER to PHASE_BACKWARD once per micro-batch. */
enum {
    PHASE_LOAD = 1 << 0,   /* weights arrive from files or from another rank */
    PHASE_DECODE = 1 << 1, /* text is generated */
    PHASE_PASS = 1 << 2,   /* the teacher runs over several micro-batches at once */
    PHASE_TEACHER = 1 << 3,
    /* The student runs, until the rows that the LM head reads are gathered. */
    PHASE_FORWARD = 1 << 4,
    PHASE_LOSS = 1 << 5, /* logits and objective of a chunk of rows are computed */
    PHASE_LOSS_BACK =
        1 << 6,              /* the LM head's gradients are computed; the next PHASE_LOSS follows */
    PHASE_BACKWARD = 1 << 7, /* begins with the gradient of all rows that the LM head has read */
    PHASE_EXCHANGE = 1 << 8, /* gradients of several ranks are added */
    PHASE_UPDATE = 1 << 9,
    PHASES = (1 << 10) - 1
};

enum { PLACEMENT_SPANS = 64 };
struct placement {
    struct carve arena;
    int count;
    struct span {
        size_t from, to; /* offsets in the arena */
        unsigned phases; /* phases in which it is in use */
    } span[PLACEMENT_SPANS];
};
/* Take a buffer's arrays from c. It may be called more than once; the last call counts. */
typedef void carve_buffer(void *user, struct carve *c);

/* Place a buffer at or after offset `from`, but not behind the end of the arena, which is extended if needed. */
void placement_add(struct placement *p, size_t from, unsigned phases, carve_buffer *carve,
                   void *user);
/* Place a buffer in memory of [from, to) that is already allocated and contiguous. Return false if there is no
 * room. */
bool placement_lend(struct placement *p, size_t from, size_t to, unsigned phases,
                    carve_buffer *carve, void *user);
/* Declare that a part of the buffer placed last is in use in these phases only. */
void placement_narrow(struct placement *p, size_t from, size_t to, unsigned phases);

#endif
