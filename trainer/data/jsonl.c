/* SPDX-License-Identifier: Apache-2.0
 *
 * jsonl.c: a file with a document as a JSON object in each row, in one of three forms (rows.h):
 *   a conversation: what the assistant says, and the token that ends its turn, has a loss
 *   a prompt and its completion: the completion has a loss
 *   a text: all of it has a loss
 * Text with a loss is encoded separately from the text before it, as it is when the model generates; a conversation is
 * encoded as a whole, as transformers does.
 */
#include "data/rows.h"

#include "io/error.h"
#include "text/bpe.h"

static int add_form(struct reader *r, const json_t *object, const struct row *row)
{
    if (row->form == ROW_CHAT)
        return jsonl_add_messages(r, object, row->messages);
    if (row->form == ROW_TEXT)
        return jsonl_add_value(r, row->text, true);
    TRY(jsonl_add_value(r, row->prompt, false));
    TRY(jsonl_add_value(r, row->completion, true));
    r->part[r->parts - 1].follows = json_string_length(row->prompt) > 0;
    return 0;
}

static int add_document(struct reader *r, json_t *object)
{
    const size_t first = r->parts;
    struct row row;
    int rc = row_read(r, object, &row);
    if (rc == 0)
        rc = add_form(r, object, &row);
    if (rc == 0) {
        r->part[first].starts = true;
        r->part[r->parts - 1].ends = true;
        r->part[r->parts - 1].end_loss = row.form != ROW_CHAT;
        r->segment->answers = r->segment->answers || row.form != ROW_TEXT;
        r->segment->chats = r->segment->chats || row.form == ROW_CHAT;
    }
    row_free(&row);
    return rc;
}

/* End a document at each end of text within a text, as in a file of text. */
static int mark_ends(struct segment *s, int64_t first, const int32_t *ids, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (ids[i] == s->end_of_text)
            TRY(segment_end_document(s, first + (int64_t)i));
    return 0;
}

/* Add a document's tokens: the one that begins texts comes first, and the one that ends them last, once; a text that
 * has them already gets no other. */
static int store_part(struct reader *r, const struct part *p, const struct span *ids)
{
    const int32_t begin = tokenizer_begin_of_text(r->tokenizer), end = r->tokenizer->end_of_text;
    int rc = 0;
    if (p->rendered)
        return marked_add(r, p, ids);
    if (p->starts && begin >= 0)
        rc = segment_add(r->segment, &begin, 1, true);
    r->begun = (p->starts && begin >= 0) || (r->begun && !p->starts);
    const size_t twice = r->begun && ids->count > 0 && ids->ids[0] == begin;
    const int32_t *kept = twice ? ids->ids + 1 : ids->ids; /* NULL without ids */
    const int64_t first = r->segment->count;
    if (rc == 0)
        rc = segment_add(r->segment, kept, ids->count - twice, p->loss);
    if (rc == 0 && p->starts && p->ends)
        rc = mark_ends(r->segment, first, kept, ids->count - twice);
    r->begun = r->begun && ids->count == 0;
    const bool ended = ids->count > twice && ids->ids[ids->count - 1] == end;
    if (rc == 0 && p->ends && !ended)
        rc = segment_add(r->segment, &end, 1, p->end_loss);
    return rc != 0 || !p->ends ? rc : segment_end_document(r->segment, r->segment->count - 1);
}

static bool documents_read(const struct reader *r, const char *column)
{
    return row_reads(r->segment->rules, column);
}

int open_rows(struct segment *s, const struct tokenizer *t)
{
    struct reader r = {.segment = s,
                       .tokenizer = t,
                       .reads = documents_read,
                       .object = add_document,
                       .store = store_part};
    TRY(segment_begin_text(s, t));
    return rows_read(&r);
}
