/* SPDX-License-Identifier: Apache-2.0
 *
 * engine_struct.c: what every part of the engine starts and fails with.
 */
#include "engine/engine_impl.h"

#include "io/error.h"

struct work engine_work(struct engine *e)
{
    return (struct work){.ctx = e->ctx, .s = e->stream};
}

int engine_fail(const struct engine *e, int rc, const char *what)
{
    return fail_context(rc, e->ctx, what);
}
