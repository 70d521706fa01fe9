/* SPDX-License-Identifier: Apache-2.0
 *
 * buffers.h: the table of a run's buffers: the contents of each, when it is in use, and the region that counts it.
 */
#ifndef NOJIT_TRAINER_BUFFERS_H
#define NOJIT_TRAINER_BUFFERS_H

#include "state/placement.h"
#include "state/plan_layout.h"

/* The inputs and the state of a layout. */
struct layout {
    const struct net *student;
    struct teacher *teacher;
    const struct train_options *o;
    struct shape s;
    struct memory *m;
    struct plan *plan;
    struct placement device, host;
    const struct buffer *row; /* row being placed */
    struct {
        size_t from, to;
    } at[PLAN_REGIONS];     /* device regions; empty: absent, or within another region */
    bool has[PLAN_REGIONS]; /* a buffer of the region has been placed */
    size_t gradients;       /* offset of the gradients of all that is trained */
};

/* A row of the table that every array of a run is carved by. Buffers of a region share its memory if their
 * lifetimes do not meet, and the region is as large as that needs. A buffer that may lie within other regions goes
 * there if their memory is idle and has room, else into a region of its own. */
struct buffer {
    enum region region;
    unsigned phases; /* phases in which it is in use */
    void (*carve)(struct layout *l, struct carve *c);
    bool (*wanted)(const struct layout *l); /* says whether the run has it; NULL: always */
    /* Regions to try in this order; REGION_NONE: no other. */
    enum region within[2];
    bool optional;                    /* it is left out if it has no room within these */
    void (*narrow)(struct layout *l); /* says which part of it is idle when; or NULL */
    enum teacher_buffer teacher;      /* buffer of the teacher that carve_teacher() carves */
};
extern const struct buffer buffers[];
extern const int buffers_count;

#endif
