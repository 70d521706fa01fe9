/* SPDX-License-Identifier: Apache-2.0
 *
 * overlong.c: the sentence about documents that are longer than a sequence, and their treatment.
 */
#include "batch/packing.h"

#include "base/plural.h"

#include <inttypes.h>
#include <stdio.h>

static size_t add(char *out, size_t bytes, size_t n, int64_t count, const char *what)
{
    if (count == 0 || n >= bytes)
        return n;
    return n +
           (size_t)snprintf(out + n, bytes - n, "%s%" PRId64 " %s", n > 0 ? ", " : "", count, what);
}

const char *overlong_text(const struct overlong_count *n, int32_t S, char *out, size_t bytes)
{
    const int64_t longer = n->cut + n->dropped + n->split;
    char what[160] = "", lost[64] = "";
    size_t at = add(what, sizeof what, 0, n->cut, "cut at its end");
    at = add(what, sizeof what, at, n->dropped - n->empty, "left out");
    at = add(what, sizeof what, at, n->empty, "left out, for a row would hold nothing trained");
    add(what, sizeof what, at, n->split, "split over several");
    if (longer == 0)
        return NULL;
    add(lost, sizeof lost, 0, n->lost,
        n->lost == 1 ? "trained token is lost; " : "trained tokens are lost; ");
    snprintf(out, bytes,
             "%" PRId64 " of %" PRId64 " document%s %s longer than a sequence of %d: %s; %s"
             "--seq-len %" PRId64 " holds the longest",
             longer, n->documents, plural(n->documents), longer == 1 ? "is" : "are", (int)S, what,
             lost, n->longest - 1);
    return out;
}
