/* SPDX-License-Identifier: Apache-2.0
 *
 * show_data.c: see show_data.h.
 */
#include "cli/show_data.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/plural.h"
#include "cli/screen.h"
#include "io/error.h"

enum { SHOWN_MOST = 2000 }; /* most tokens of a document that are shown */

struct show {
    const struct data *d;
    const struct tokenizer *t;
    FILE *to, *screen;
    bool dims; /* whether `to` is a terminal that supports colors */
    int seq_len;
    int64_t count, shown;     /* number of documents: wanted; begun */
    int64_t put, left;        /* number of tokens of the document: written; beyond SHOWN_MOST */
    char head[96];            /* heading of the sequence, until part of it is written */
    struct data_token *token; /* tokens of a piece, and the one after it */
};

static void put_token(const struct show *s, int32_t id)
{
    bool special;
    size_t bytes;
    const char *text = tokenizer_token(s->t, id, &bytes, &special);
    if (text != NULL)
        fwrite(text, 1, bytes, s->screen);
    else
        fprintf(s->screen, "<%d>", id);
}

/* Mark where tokens without a loss begin or end. */
static void mark(const struct show *s, bool begin)
{
    fflush(s->screen);
    if (s->dims)
        fputs(begin ? "\033[2m" : "\033[22m", s->to);
    else
        fputs(begin ? "[-" : "-]", s->to);
}

/* End a document: print how much of it was left out. */
static void put_left(struct show *s)
{
    if (s->left > 0)
        fprintf(s->to, "(%" PRId64 " more token%s of document %" PRId64 ")\n", s->left,
                plural(s->left), s->shown);
    s->put = s->left = 0;
}

/* Write tokens from `from` up to `end`: a document, or the part of it in the piece, up to the limit. */
static void put_document(struct show *s, int from, int end)
{
    int trained = 0;
    for (int i = from; i < end; i++)
        trained += s->token[i].trained;
    if (s->token[from].begins)
        put_left(s);
    s->shown += s->token[from].begins;
    const int64_t room = SHOWN_MOST - s->put;
    const int until = end - from > room ? from + (int)room : end;
    s->put += until - from;
    s->left += end - until;
    if (until == from)
        return;
    fputs(s->head, s->to);
    s->head[0] = '\0';
    fprintf(s->to, "document %" PRId64 "%s: %d token%s, %d trained\n", s->shown > 0 ? s->shown : 1,
            s->token[from].begins ? "" : ", continued", end - from, plural(end - from), trained);
    bool plain = true;
    for (int i = from; i < until; i++) {
        if (s->token[i].trained != plain)
            mark(s, plain);
        plain = s->token[i].trained;
        put_token(s, s->token[i].id);
    }
    if (!plain)
        mark(s, false);
    fflush(s->screen);
    fputc('\n', s->to);
}

/* Return how many tokens of a piece are shown, including the target of the last one if no other row shows it. */
static int shown_tokens(const struct show *s, int64_t first, int inputs)
{
    const bool wrapped = data_packing(s->d) == PACKING_WRAPPED;
    return inputs + (!wrapped || first + inputs == data_tokens(s->d) - 1);
}

static int put_piece(struct show *s, int64_t row, int piece)
{
    int64_t first;
    int inputs, rc = 0;
    struct data_token next = {.begins = true};
    data_piece(s->d, row, piece, &first, &inputs);
    const int count = shown_tokens(s, first, inputs);
    for (int i = 0; i < count && rc == 0; i++)
        rc = data_token(s->d, first + i, &s->token[i]);
    if (rc == 0 && first + count < data_tokens(s->d))
        rc = data_token(s->d, first + count, &next);
    /* A part of a document begins with a token that the part before it has shown as its last target. */
    const bool again = data_packing(s->d) != PACKING_WRAPPED && !s->token[0].begins;
    for (int from = again, end; from < count && rc == 0; from = end) {
        if (s->token[from].begins && s->shown == s->count)
            return 0;
        for (end = from + 1; end < count && !s->token[end].begins;)
            end++;
        put_document(s, from, end);
    }
    if (rc == 0 && !next.begins && s->left == 0)
        fputs("(the sequence ends within the document)\n", s->to);
    return rc;
}

static int put_row(struct show *s, int64_t row)
{
    const int pieces = data_pieces(s->d, row);
    int64_t first, positions = 0;
    int inputs, rc = 0;
    for (int i = 0; i < pieces; i++) {
        data_piece(s->d, row, i, &first, &inputs);
        positions += inputs;
    }
    snprintf(s->head, sizeof s->head,
             "---- sequence %" PRId64 " of %" PRId64 ": %" PRId64 " of %d positions\n", row + 1,
             data_windows(s->d), positions, s->seq_len);
    for (int i = 0; i < pieces && rc == 0; i++)
        rc = put_piece(s, row, i);
    return rc;
}

int show_data(const struct data *d, const struct tokenizer *t, int seq_len, int64_t count, FILE *to)
{
    const bool dims = isatty(fileno(to)) && getenv("NO_COLOR") == NULL;
    struct show s = {.d = d, .t = t, .to = to, .dims = dims, .seq_len = seq_len, .count = count};
    int rc = 0;
    s.screen = screen_open(to);
    s.token = calloc((size_t)seq_len + 1, sizeof *s.token);
    if (s.screen == NULL || s.token == NULL)
        rc = fail(NJ_E_NOMEM, "out of memory");
    for (int64_t row = 0; row < data_windows(d) && s.shown < count && rc == 0; row++)
        rc = put_row(&s, row);
    put_left(&s);
    if (s.screen != NULL)
        fclose(s.screen);
    free(s.token);
    if (rc == 0 && (fflush(to) != 0 || ferror(to)))
        rc = fail(NJ_E_IO, "the documents cannot be written");
    return rc;
}
