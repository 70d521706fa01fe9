/* SPDX-License-Identifier: Apache-2.0
 *
 * batch.c: memory and rows of a micro-batch on the host.
 */
#include "batch/batch.h"

#include "base/check.h"
#include "base/checked.h"
#include "base/try.h"
#include "io/error.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Return the next `bytes` of the memory; NULL if the array is not wanted, or memory is only counted. */
static void *take(char *memory, size_t *used, bool wanted, size_t bytes)
{
    char *at = memory && wanted ? memory + *used : NULL;
    *used = size_add(*used, wanted ? bytes : 0);
    return at;
}

/* Point the arrays into memory, or only count their bytes if it is NULL. */
static size_t lay_out(struct batch *b, unsigned uses, char *memory)
{
    const size_t rows = (size_t)b->B, positions = size_mul(rows, (size_t)b->S);
    size_t used = 0;
#define HOST(name, type, use, values, empty)                                                       \
    _Static_assert(sizeof(type) == 4, "an array after " #name " would not be aligned");            \
    b->name = take(memory, &used, uses & USE_##use, size_mul(positions, sizeof(type)));
#define GIVEN_ROW(name, type, use)                                                                 \
    b->name = take(memory, &used, uses & USE_##use, size_mul(rows, sizeof(type)));
#include "batch/batch.def"
    return used;
}

int batch_allocate(struct batch *out, int B, int S, unsigned uses)
{
    *out = (struct batch){.B = B, .S = S};
    out->bytes = lay_out(out, uses, NULL);
    out->memory = calloc(1, size_add(out->bytes, 1));
    if (!out->memory)
        return fail(NJ_E_NOMEM, "out of memory for batches of %d x %d", B, S);
    lay_out(out, uses, out->memory);
    return 0;
}

int batch_resize(struct batch *b, int B, int S, unsigned uses)
{
    struct batch other;
    TRY(batch_allocate(&other, B, S, uses));
    batch_free(b);
    *b = other;
    return 0;
}

void batch_free(struct batch *b)
{
    free(b->memory);
    *b = (struct batch){0};
}

static size_t first_of(const struct batch *b, int row)
{
    return (size_t)row * (size_t)b->S;
}

void batch_pad_row(struct batch *b, int row, int end)
{
    for (int i = end; i < b->S; i++) {
        const size_t at = first_of(b, row) + (size_t)i;
#define HOST(name, type, use, values, empty)                                                       \
    if (b->name)                                                                                   \
        b->name[at] = empty;
#include "batch/batch.def"
    }
}

void batch_share_row(struct batch *b, int row)
{
    const size_t first = first_of(b, row), S = (size_t)b->S;
    if (!b->teacher_at)
        return;
#define READ(name) memcpy(b->teacher_##name + first, b->name + first, S * sizeof *b->name);
#include "batch/batch.def"
    for (size_t i = 0; i < S; i++)
        b->teacher_at[first + i] = (int32_t)i;
}

void batch_copy_row(struct batch *to, int row, const struct batch *from, int from_row)
{
    CHECK(row < to->B && from_row < from->B && to->S == from->S);
    const size_t at = first_of(to, row), from_at = first_of(from, from_row), S = (size_t)to->S;
#define HOST(name, type, use, values, empty)                                                       \
    if (to->name && from->name)                                                                    \
        memcpy(to->name + at, from->name + from_at, S * sizeof(type));
#define GIVEN_ROW(name, type, use)                                                                 \
    if (to->name && from->name)                                                                    \
        to->name[row] = from->name[from_row];
#include "batch/batch.def"
}

int64_t batch_row_targets(const struct batch *b, int row)
{
    const int32_t *target = b->target + first_of(b, row);
    int64_t count = 0;
    for (int i = 0; i < b->S; i++)
        count += target[i] != IGNORED;
    return count;
}
