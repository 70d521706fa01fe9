/* SPDX-License-Identifier: Apache-2.0
 *
 * row_notes.c: the sentences for users about rows that were read.
 */
#include "data/rows.h"

#include "base/plural.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Remember a column that is not read. */
void row_note(struct row_notes *n, const char *name)
{
    size_t i = 0;
    while (i < n->columns && strncmp(n->column[i], name, sizeof *n->column - 1) != 0)
        i++;
    if (i < n->columns)
        return;
    n->more = i == sizeof n->column / sizeof *n->column;
    if (!n->more)
        snprintf(n->column[n->columns++], sizeof *n->column, "%s", name);
}

const char *row_columns_text(const struct row_notes *n, char *out, size_t bytes)
{
    if (n->columns == 0)
        return NULL;
    size_t at = (size_t)snprintf(out, bytes, "columns not read: ");
    for (size_t i = 0; i < n->columns && at < bytes; i++)
        at += (size_t)snprintf(out + at, bytes - at, "%s%s", i > 0 ? ", " : "", n->column[i]);
    if (n->more && at < bytes)
        snprintf(out + at, bytes - at, ", and others");
    return out;
}

const char *row_unusable_text(const struct row_notes *n, char *out, size_t bytes)
{
    if (n->unusable == 0)
        return NULL;
    snprintf(out, bytes,
             "%" PRId64 " of %" PRId64 " row%s could not be used and %s left out; the first: %s",
             n->unusable, n->rows, plural(n->rows), n->unusable == 1 ? "was" : "were", n->first);
    return out;
}
