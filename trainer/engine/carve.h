/* SPDX-License-Identifier: Apache-2.0
 *
 * carve.h: memory carved from one arena.
 */
#ifndef NOJIT_TRAINER_CARVE_H
#define NOJIT_TRAINER_CARVE_H

#include <stddef.h>

/* Memory is carved from one arena. With base NULL it is only counted, by checked.h: SIZE_MAX is more than
 * can be addressed. */
enum { CARVE_ALIGN = 256 };
struct carve {
    char *base;
    size_t used;
};
void *carve_take(struct carve *c, size_t bytes);

#endif
