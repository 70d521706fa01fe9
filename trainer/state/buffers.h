/* SPDX-License-Identifier: Apache-2.0
 *
 * buffers.h: the table of a run's buffers: what each holds, when it is in use, and which region counts it.
 */
#ifndef NOJIT_TRAINER_BUFFERS_H
#define NOJIT_TRAINER_BUFFERS_H

#include "state/placement.h"
#include "state/plan_layout.h"

/* What a layout is made of, and how far it is. */
struct layout {
    const struct net *student, *teacher; /* teacher NULL: none */
    const struct train_options *o;
    struct shape s;
    struct memory *m;
    struct plan *plan;
    struct placement device, host;
    const struct buffer *row; /* that is being placed */
    struct {
        size_t from, to;
    } at[PLAN_REGIONS];     /* regions of the device; empty: not there, or within another */
    bool has[PLAN_REGIONS]; /* a buffer of the region has been placed */
    size_t gradients;       /* offset of those of all that is trained */
};

/* Every array of a run is carved by one of these rows. Buffers of a region share its memory where their lifetimes do
 * not meet, and the region is as large as that needs. One that may lie within other regions goes there where their
 * memory is idle and has room, else into a region of its own. */
struct buffer {
    enum region region;
    unsigned phases; /* in which it is in use */
    void (*carve)(struct layout *l, struct carve *c);
    bool (*wanted)(const struct layout *l); /* NULL: always */
    enum region within[2];                  /* tried in this order; REGION_NONE: no other */
    bool optional;                          /* left out where it has no room within these */
    void (*narrow)(struct layout *l);       /* NULL, or says which part of it is idle when */
};
extern const struct buffer buffers[];
extern const int buffers_count;

#endif
