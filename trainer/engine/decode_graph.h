/* SPDX-License-Identifier: Apache-2.0
 *
 * decode_graph.h: what engine.c knows of decode.c.
 */
#ifndef NOJIT_TRAINER_DECODE_GRAPH_H
#define NOJIT_TRAINER_DECODE_GRAPH_H

struct decode_graph;
void decode_graphs_free(struct decode_graph *g);

#endif
