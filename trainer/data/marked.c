/* SPDX-License-Identifier: Apache-2.0
 *
 * marked.c: the ids of a conversation, which is encoded as a whole. An id has a loss if its text touches a stretch that
 * has one, as in transformers.
 */
#include "data/jsonl.h"

#include "io/error.h"
#include "text/bpe.h"

#include <stdlib.h>
#include <string.h>

/* Ids to be added, all with a loss or all without. */
struct run_of_ids {
    struct reader *reader;
    const int32_t *ids;
    size_t first, next;
    bool loss;
};

static int add_run(struct run_of_ids *run)
{
    const size_t count = run->next - run->first;
    const int32_t *ids = run->ids + run->first;
    run->first = run->next;
    return count ? segment_add(run->reader->segment, ids, count, run->loss) : 0;
}

/* Add one more id. */
static int add_id(struct run_of_ids *run, bool loss)
{
    const int rc = loss != run->loss ? add_run(run) : 0;
    run->loss = loss;
    run->next++;
    return rc;
}

/* Find how many bytes of a text an id at its beginning stands for, without a space that a SentencePiece tokenizer has
 * put there; -1: the id is not at its beginning. */
static long spelt(const struct tokenizer *t, int32_t id, const char *text, size_t left)
{
    size_t bytes;
    bool special;
    const char *token = tokenizer_token(t, id, &bytes, &special);
    if (token && bytes <= left && memcmp(token, text, bytes) == 0)
        return (long)bytes;
    const bool space = token && bytes > 0 && token[0] == ' ' && t->bpe->prefix != PREFIX_NEVER;
    return space && bytes - 1 <= left && memcmp(token + 1, text, bytes - 1) == 0 ? (long)bytes - 1
                                                                                 : -1;
}

/* Return whether the texts of the ids, one after the other, are the text. */
static bool spells(const struct tokenizer *t, const struct span *s)
{
    size_t at = 0;
    for (size_t i = 0; i < s->count; i++) {
        const long bytes = spelt(t, s->ids[i], s->text + at, s->bytes - at);
        if (bytes < 0)
            return false;
        at += (size_t)bytes;
    }
    return at == s->bytes;
}

static int add_by_texts(struct run_of_ids *run, const struct template_span *span, size_t spans,
                        const struct span *s)
{
    int rc = 0;
    size_t at = 0, k = 0;
    for (size_t i = 0; i < s->count && rc == 0; i++) {
        const size_t bytes =
            (size_t)spelt(run->reader->tokenizer, s->ids[i], s->text + at, s->bytes - at);
        while (k < spans && span[k].end <= at)
            k++;
        rc = add_id(run, k < spans && at + bytes > span[k].begin);
        at += bytes;
    }
    return rc != 0 ? rc : add_run(run);
}

/* Encode the stretches and the text between them separately. *same: whether that gives the same ids. */
static int encode_pieces(const struct reader *r, const struct template_span *span, size_t spans,
                         const struct span *s, struct span *pieces, bool *same)
{
    size_t at = 0, n = 0;
    for (size_t i = 0; i <= 2 * spans; i++) {
        const size_t end = i == 2 * spans ? s->bytes : i % 2 ? span[i / 2].end : span[i / 2].begin;
        pieces[i] = (struct span){.text = s->text + at, .bytes = end - at, .follows = at > 0};
        at = end;
    }
    const int rc = tokenizer_encode_spans(r->tokenizer, pieces, 2 * spans + 1);
    *same = rc == 0;
    for (size_t i = 0; i <= 2 * spans && *same; n += pieces[i++].count)
        *same = n + pieces[i].count <= s->count &&
                (pieces[i].count == 0 ||
                 memcmp(pieces[i].ids, s->ids + n, pieces[i].count * sizeof *s->ids) == 0);
    *same = *same && n == s->count;
    return rc;
}

static int add_by_pieces(struct run_of_ids *run, const struct template_span *span, size_t spans,
                         const struct span *s)
{
    struct span *pieces = calloc(2 * spans + 1, sizeof *pieces);
    bool same;
    if (!pieces)
        return jsonl_no_memory(run->reader);
    int rc = encode_pieces(run->reader, span, spans, s, pieces, &same);
    if (rc == 0 && !same)
        rc = jsonl_bad_line(run->reader, "up to here: the tokenizer changes the text of a "
                                         "conversation, so that where its answers begin cannot be "
                                         "told; write it in the normal form of the "
                                         "tokenizer, NFC or NFKC");
    for (size_t i = 0; i <= 2 * spans; i++) {
        for (size_t k = 0; k < pieces[i].count && rc == 0; k++)
            rc = add_id(run, i % 2);
        free(pieces[i].ids);
    }
    free(pieces);
    return rc != 0 ? rc : add_run(run);
}

int marked_add(struct reader *r, const struct part *p, const struct span *ids)
{
    const int32_t end = r->tokenizer->end_of_text;
    const struct template_span *span = (const struct template_span *)r->spans.at + p->span;
    struct run_of_ids run = {.reader = r, .ids = ids->ids};
    const bool ended = ids->count > 0 && ids->ids[ids->count - 1] == end;
    int rc;
    if (p->loss) /* all of it has a loss */
        rc = segment_add(r->segment, ids->ids, ids->count, true);
    else
        rc = spells(r->tokenizer, ids) ? add_by_texts(&run, span, p->spans, ids)
                                       : add_by_pieces(&run, span, p->spans, ids);
    if (rc == 0 && !ended)
        rc = segment_add(r->segment, &end, 1, false);
    return rc != 0 ? rc : segment_end_document(r->segment, r->segment->count - 1);
}
