/* SPDX-License-Identifier: Apache-2.0
 *
 * stamp.h: what is kept of an access to a word of shared memory: time, kind, thread. See exec_record.c.
 */
#ifndef NOJIT_SIM_STAMP_H
#define NOJIT_SIM_STAMP_H

#include "exec.h"

enum { TIME_SHIFT = 13, KIND_SHIFT = 11, THREAD_MASK = 2047, TIME_MAX = (1 << 19) - 2 };
enum { READ_BY_ONE, READ_BY_WARP, READ_BY_MANY }; /* kinds of read[]; of wrote[]: sim_shared_use */

static inline uint32_t time_of(uint32_t stamp)
{
    return stamp >> TIME_SHIFT;
}
static inline uint32_t kind_of(uint32_t stamp)
{
    return stamp >> KIND_SHIFT & 3;
}
static inline uint32_t thread_of(uint32_t stamp)
{
    return stamp & THREAD_MASK;
}
static inline uint32_t actor_of(uint32_t stamp)
{
    return thread_of(stamp) / LANES;
}

#endif
