/* SPDX-License-Identifier: Apache-2.0
 *
 * graphs.h: the parts of a step that are each enqueued as a whole, as a CUDA graph if the backend has them. A graph
 * is captured once; values that change from step to step lie in the step state on the device (step_state.h).
 */
#ifndef NOJIT_TRAINER_GRAPHS_H
#define NOJIT_TRAINER_GRAPHS_H

#include "state/engine_struct.h"

enum step_graph_kind {
    STEP_TEACHER, /* a pass of a teacher that runs before the micro-steps */
    STEP_MICRO,   /* a whole micro-step; index: chunks of the head in use */
    /* Parts of a micro-step, if groups of layers are exchanged during the backward pass. */
    STEP_FORWARD,  /* index: a group of layers */
    STEP_HEAD,     /* index: chunks of the head in use */
    STEP_BACKWARD, /* index: a part, from the last group of layers to the embedding */
    STEP_CLIP,
    STEP_UPDATE,
    STEP_GRAPH_KINDS
};

struct step_graph {
    enum step_graph_kind kind;
    int index;
    bool add; /* gradients are added to those of the micro-batches before */
};

/* Make room for the graphs of an engine whose shape is known; NJ_E_NOMEM if there is none. */
int step_graphs_open(struct engine *e);
void step_graphs_close(struct engine *e);

/* Capture the graph unless it exists already. Its work is not enqueued. */
int step_graph_capture(struct engine *e, struct step_graph g);
/* Enqueue the work: as a graph, which is captured when it is first needed, or directly where it cannot be one. */
int step_graph_launch(struct engine *e, struct step_graph g);

#endif
