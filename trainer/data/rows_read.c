/* SPDX-License-Identifier: Apache-2.0
 *
 * rows_read.c: the rows of a file, one after the other, and the parts of text that they become, encoded some at a time.
 */
#include "data/file_kinds.h"
#include "data/parquet.h"
#include "data/rows.h"
#include "io/error.h"
#include "text/bpe.h"

#include <stdlib.h>
#include <string.h>

enum { BATCH_BYTES = 1 << 22 };

/* Encode the parts read so far and forget them. */
static int flush(struct reader *r)
{
    if (r->parts == 0)
        return 0;
    struct span *spans = calloc(r->parts, sizeof *spans);
    if (!spans)
        return jsonl_no_memory(r);
    for (size_t i = 0; i < r->parts; i++) {
        spans[i].text = r->text ? r->text + r->part[i].begin : ""; /* no part has a byte */
        spans[i].bytes = r->part[i].end - r->part[i].begin;
        spans[i].follows = r->part[i].follows;
    }
    int rc = tokenizer_encode_spans(r->tokenizer, spans, r->parts);
    if (rc != 0)
        rc = fail(rc, "%s: up to line %ld: %s", r->segment->path, r->line, fail_text());
    for (size_t i = 0; i < r->parts; i++) {
        if (rc == 0)
            rc = r->store(r, &r->part[i], &spans[i]);
        free(spans[i].ids);
    }
    free(spans);
    r->parts = r->bytes = r->spans.count = 0;
    const size_t read = r->parquet ? parquet_told(r->parquet) : data_file_told(&r->segment->file);
    if (rc == 0 && r->tokenizer->encoded)
        r->tokenizer->encoded(r->tokenizer->user, read - r->told);
    r->told = read;
    return rc;
}

int rows_encode_full(struct reader *r)
{
    return r->bytes >= BATCH_BYTES ? flush(r) : 0;
}

/* Forget a row that cannot be used, if the rules say so. */
static int pass_row(struct reader *r, int rc, size_t parts, size_t bytes)
{
    const struct row_rules *rules = r->segment->rules;
    struct row_notes *n = r->segment->notes;
    if (rc != NJ_E_FORMAT || !r->row_fault || !rules || !rules->skip_unusable || !n)
        return rc;
    if (n->unusable++ == 0)
        snprintf(n->first, sizeof n->first, "%s", fail_text());
    r->parts = parts;
    r->bytes = bytes;
    return 0;
}

/* Read one row; *ended: there was none. */
static int read_row(struct reader *r, bool *ended)
{
    const size_t parts = r->parts, bytes = r->bytes;
    json_t *object = NULL;
    int rc = r->parquet ? parquet_next(r->parquet, &object, &r->row_fault) : jsonl_next(r, &object);
    r->line += r->parquet != NULL;
    *ended = rc == 0 && !object;
    if (rc == 0 && object) {
        r->row_fault = true;
        rc = r->object(r, object);
    }
    json_decref(object);
    if (!*ended && r->segment->notes)
        r->segment->notes->rows++;
    return rc != 0 ? pass_row(r, rc, parts, bytes) : rc;
}

static bool wants(void *user, const char *column)
{
    const struct reader *r = user;
    return !r->reads || r->reads(r, column);
}

static void unread(void *user, const char *column)
{
    const struct reader *r = user;
    if (r->segment->notes)
        row_note(r->segment->notes, column);
}

/* Open the file's rows if they are not lines. */
static int open_parquet(struct reader *r)
{
    const struct parquet_reader reader = {wants, unread, r};
    struct file_kind kind;
    TRY(file_kind_of(r->segment->path, &kind));
    if (kind.format == FILE_PARQUET)
        TRY(parquet_open(&r->segment->file, &reader, &r->parquet));
    return 0;
}

int rows_read(struct reader *r)
{
    bool ended = false;
    int rc = open_parquet(r);
    while (rc == 0 && !ended) {
        rc = read_row(r, &ended);
        if (rc == 0)
            rc = ended ? flush(r) : rows_encode_full(r);
    }
    free(r->text);
    free(r->part);
    jsonl_free_chat(r);
    parquet_close(r->parquet);
    return rc;
}

int rows_read_file(struct reader *r, char *path, const struct row_rules *rules,
                   struct row_notes *notes)
{
    struct segment s = {.path = path, .rules = rules, .notes = notes};
    struct file_kind kind;
    int rc = file_kind_of(path, &kind);
    if (rc == 0)
        rc = data_file_open(&s.file, path);
    r->segment = &s;
    if (rc == 0)
        rc = data_file_unpack(&s.file, kind.packing);
    if (rc == 0)
        rc = rows_read(r);
    data_file_close(&s.file);
    r->segment = NULL;
    return rc;
}

int jsonl_read_id(struct reader *r, const json_t *object, struct pool *to, struct stretch *out)
{
    const json_t *id = json_object_get(object, "id");
    if (!id || json_is_null(id))
        return 0;
    if (!json_is_string(id) && !json_is_number(id))
        return jsonl_bad_line(r, "id must be a string, or a number of at most 64 bits; write "
                                 "others as strings");
    char *text = json_dumps(id, JSON_ENCODE_ANY | JSON_COMPACT);
    const bool added = text && pool_add_text(to, text, strlen(text), out);
    free(text);
    return added ? 0 : jsonl_no_memory(r);
}
