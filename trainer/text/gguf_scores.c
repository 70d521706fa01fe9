/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_scores.c: see gguf_scores.h.
 */
#include "text/gguf_scores.h"

#include "base/grow.h"
#include "io/error.h"
#include "text/bpe_spaces.h"
#include "text/metadata.h"
#include "text/unicode.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SCORES "tokenizer.ggml.scores"
#define SPACE "\xe2\x96\x81"
#define AGAIN "fetch the file again, or convert the model again"
enum { TOKEN_BYTES_MOST = 512 };

/* Pair of tokens that together make a token. */
struct join {
    const char *text; /* text of the token; the left part is its first bytes */
    size_t left_bytes;
    float score;
    int32_t left, right, id;
    int left_points, right_points;
};

struct joins {
    struct join *at;
    size_t count, capacity;
};

static int read_scores(const struct gguf *g, size_t tokens, float **out)
{
    size_t count;
    TRY(gguf_floats(g, SCORES, out, &count));
    size_t i = 0;
    while (*out && i < count && !isnan((*out)[i]))
        i++;
    if (*out && i == count && count == tokens)
        return 0;
    free(*out);
    *out = NULL;
    if (i < count)
        return fail(NJ_E_FORMAT, "%s: the score of token %zu is not a number; " AGAIN, g->path, i);
    return fail(NJ_E_FORMAT, "%s: %s has %zu entries for %zu tokens; " AGAIN, g->path,
                metadata_name(g, SCORES), count, tokens);
}

/* Compare in the order of the converters of transformers. */
static int compare(const void *a, const void *b)
{
    const struct join *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    if (x->left_points != y->left_points)
        return x->left_points > y->left_points ? -1 : 1;
    if (x->right_points != y->right_points)
        return x->right_points > y->right_points ? -1 : 1;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return (x->left > y->left) - (x->left < y->left);
}

static int add(const struct gguf *g, struct joins *all, const struct join *join)
{
    if (!GROW(all->at, all->capacity, all->count + 1))
        return fail(NJ_E_NOMEM, "%s: out of memory for its tokens", g->path);
    all->at[all->count++] = *join;
    return 0;
}

/* Find the id of a part of a token; -1: none. */
static int32_t id_of(json_t *vocab, const char *text, size_t bytes)
{
    char part[TOKEN_BYTES_MOST + 1];
    memcpy(part, text, bytes);
    part[bytes] = '\0';
    const json_t *id = spaces_byte(part, bytes) < 0 ? json_object_get(vocab, part) : NULL;
    return id ? (int32_t)json_integer_value(id) : -1;
}

/* Add all pairs of tokens that make a token. Its characters must be tokens, so that all its
 * parts are: llama.cpp joins texts, which need not be. */
static int add_joins(const struct gguf *g, struct joins *all, json_t *vocab, const char *text,
                     struct join join)
{
    const size_t bytes = strlen(text);
    const int points = join.right_points;
    uint32_t cp;
    int rc = 0;
    join.text = text;
    for (size_t at = 0, n; at < bytes && rc == 0; at += n) {
        n = utf8_next((const unsigned char *)text + at, bytes - at, &cp);
        if (id_of(vocab, text + at, n) < 0)
            return fail(NJ_E_UNSUPPORTED,
                        "%s: token %d, '%.64s', has a character that is not a token, which is not "
                        "supported; use the model's Hugging Face folder",
                        g->path, join.id, text);
        join.left = at > 0 ? id_of(vocab, text, at) : -1;
        join.right = join.left < 0 ? -1 : id_of(vocab, text + at, bytes - at);
        join.right_points = points - join.left_points;
        join.left_bytes = at;
        if (join.right >= 0)
            rc = add(g, all, &join);
        join.left_points++;
    }
    return rc;
}

/* Count the code points of a text. */
static int count_points(const char *text, size_t bytes)
{
    uint32_t cp;
    int points = 0;
    for (size_t at = 0; at < bytes; points++)
        at += utf8_next((const unsigned char *)text + at, bytes - at, &cp);
    return points;
}

static int collect(const struct gguf *g, const float *score, json_t *vocab, const bool *normal,
                   struct joins *all)
{
    const char *text;
    json_t *id;
    int rc = 0;
    json_object_foreach(vocab, text, id)
    {
        const size_t bytes = strlen(text);
        const int32_t i = (int32_t)json_integer_value(id);
        const int points = count_points(text, bytes);
        if (rc != 0 || !normal[i] || points < 2 || strchr(text, ' '))
            continue;
        if (bytes > TOKEN_BYTES_MOST)
            return fail(NJ_E_UNSUPPORTED, "%s: token %d has %zu bytes; at most %d are supported",
                        g->path, i, bytes, TOKEN_BYTES_MOST);
        rc = add_joins(g, all, vocab, text,
                       (struct join){.score = score[i], .id = i, .right_points = points});
    }
    return rc;
}

static void append(const struct join *j, json_t *merges)
{
    char both[TOKEN_BYTES_MOST + 2];
    const size_t bytes = strlen(j->text);
    memcpy(both, j->text, j->left_bytes);
    both[j->left_bytes] = ' ';
    memcpy(both + j->left_bytes + 1, j->text + j->left_bytes, bytes - j->left_bytes);
    json_array_append_new(merges, json_stringn_nocheck(both, bytes + 1));
}

int gguf_scores_merges(const struct gguf *g, json_t *vocab, const bool *normal, size_t tokens,
                       json_t *merges)
{
    struct joins all = {0};
    float *score;
    int rc = read_scores(g, tokens, &score);
    if (rc == 0)
        rc = collect(g, score, vocab, normal, &all);
    if (rc == 0 && all.count > 0)
        qsort(all.at, all.count, sizeof *all.at, compare);
    for (size_t i = 0; i < all.count && rc == 0; i++)
        append(&all.at[i], merges);
    free(all.at);
    free(score);
    return rc;
}

/* ---- ranks ---- */

static int higher(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

/* Count the scores above this one, among all in descending order. */
static uint32_t above(const float *sorted, size_t count, float score)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (sorted[middle] > score)
            low = middle + 1;
        else
            high = middle;
    }
    return (uint32_t)low;
}

int gguf_scores_rank(const struct gguf *g, struct bpe *b)
{
    float *score, *sorted;
    size_t count;
    int rc = gguf_floats(g, SCORES, &score, &count);
    if (rc == 0)
        rc = gguf_floats(g, SCORES, &sorted, &count);
    if (rc != 0) {
        free(score);
        return rc;
    }
    qsort(sorted, count, sizeof *sorted, higher);
    for (size_t i = 0; i < b->merge_slots; i++)
        if (b->merge[i].left >= 0)
            b->merge[i].rank = above(sorted, count, score[b->merge[i].id]);
    free(score);
    free(sorted);
    return 0;
}

/* ---- parts of a tokenizer.json ---- */

static json_t *replace(const char *from, const char *to)
{
    return json_pack("{s:s,s:{s:s},s:s}", "type", "Replace", "pattern", "String", from, "content",
                     to);
}

json_t *gguf_scores_normalizer(bool prefix)
{
    return prefix ? json_pack("{s:s,s:[{s:s,s:s},o]}", "type", "Sequence", "normalizers", "type",
                              "Prepend", "prepend", SPACE, replace(" ", SPACE))
                  : replace(" ", SPACE);
}

json_t *gguf_scores_decoder(bool prefix)
{
    json_t *out = json_pack("{s:s,s:[o,{s:s},{s:s}]}", "type", "Sequence", "decoders",
                            replace(SPACE, " "), "type", "ByteFallback", "type", "Fuse");
    if (prefix)
        json_array_append_new(
            json_object_get(out, "decoders"),
            json_pack("{s:s,s:s,s:i,s:i}", "type", "Strip", "content", " ", "start", 1, "stop", 0));
    return out;
}
