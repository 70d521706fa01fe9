/* SPDX-License-Identifier: Apache-2.0
 *
 * delta.h: layout that the kernels of the gated delta rule share with their callers. A sequence is cut into chunks of
 * DELTA_CHUNK rows; for each chunk and value head, delta_solve computes DELTA_FACTORS numbers of each row. The rows of
 * a chunk beyond the sequence have zeros.
 */
#ifndef NOJIT_DELTA_H
#define NOJIT_DELTA_H

enum { DELTA_CHUNK = 64 };

enum delta_factor {
    DELTA_BETA, /* sigmoid(b), the strength of a row's update */
    DELTA_K_IN, /* norm of the key times the decay since the chunk's start; 0 in a document that began later */
    DELTA_Q_IN, /* the same of the query, over the root of the head size */
    DELTA_K_OUT, /* norm of the key times the decay up to the chunk's end; 0 in a document that ended before */
    DELTA_K_NORM, /* reciprocal of the length of the key */
    DELTA_Q_NORM, /* reciprocal of the length of the query */
    DELTA_CARRY, /* decay of the state over the chunk, the same in each row; 0 if the document ends in the chunk */
    DELTA_FACTORS
};

/* Logarithms of a row's decay since the start of its document or of the chunk, whichever is later, as the sum of two
 * floats: differences of large ones must be exact. */
enum delta_log { DELTA_LOG, DELTA_LOG_REST, DELTA_LOGS };

#define DELTA_EPS 1e-6f /* added to the squared length of queries and keys */

#endif
