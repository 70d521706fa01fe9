/* SPDX-License-Identifier: Apache-2.0
 *
 * jsonl_parts.c: the parts of a document, and the refusal of a line.
 */
#include "data/jsonl.h"

#include "base/grow.h"
#include "io/error.h"

#include <stdlib.h>
#include <string.h>

int jsonl_bad_line(const struct reader *r, const char *what)
{
    return fail(NJ_E_FORMAT, "%s:%ld: %s", r->segment->path, r->line, what);
}

int jsonl_no_memory(const struct reader *r)
{
    return fail(NJ_E_NOMEM, "%s:%ld: out of memory", r->segment->path, r->line);
}

int jsonl_add_text(struct reader *r, const char *text, size_t bytes)
{
    if (!GROW(r->text, r->capacity, r->bytes + bytes))
        return jsonl_no_memory(r);
    if (bytes > 0)
        memcpy(r->text + r->bytes, text, bytes);
    r->bytes += bytes;
    return 0;
}

int jsonl_add_part(struct reader *r, size_t begin, bool loss)
{
    if (!GROW(r->part, r->part_capacity, r->parts + 1))
        return jsonl_no_memory(r);
    const struct row_rules *rules = r->segment->rules;
    loss = loss || (rules && rules->train_on_prompts);
    r->part[r->parts++] = (struct part){.begin = begin, .end = r->bytes, .loss = loss};
    return 0;
}

int jsonl_add_value(struct reader *r, const json_t *value, bool loss)
{
    const size_t begin = r->bytes;
    TRY(jsonl_add_text(r, json_string_value(value), json_string_length(value)));
    return jsonl_add_part(r, begin, loss);
}
