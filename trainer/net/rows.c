/* SPDX-License-Identifier: Apache-2.0
 *
 * rows.c: the arrays of a micro-batch on the device.
 */
#include "net/rows.h"

#include "base/checked.h"

enum { POSITIONS, POSITIONS_AND_END, TARGETS, KEY };

void rows_carve(int positions, int targets, unsigned uses, struct carve *c, struct rows *out)
{
    const size_t elements[] = {
        [POSITIONS] = (size_t)positions,
        [POSITIONS_AND_END] = size_add((size_t)positions, 1),
        [TARGETS] = (size_t)targets,
        [KEY] = 2,
    };
    *out = (struct rows){0};
#define DEVICE(name, type, use, count)                                                             \
    if (uses & USE_##use)                                                                          \
        out->name = carve_take(c, size_mul(elements[count], sizeof(type)));
#include "batch/batch.def"
}

struct rows rows_of_teacher(const struct rows *rows)
{
    struct rows out = *rows;
    if (rows->teacher_valid) {
        out.valid = rows->teacher_valid;
#define READ(name) out.name = rows->teacher_##name;
#include "batch/batch.def"
    }
    return out;
}
