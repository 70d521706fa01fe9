/* SPDX-License-Identifier: Apache-2.0
 *
 * packing.c: see packing.h. Wrapped rows are computed on request. The others are lists of pieces: documents, and the
 * parts that --overlong leaves of those that are longer than a row. A piece of L tokens takes L - 1 positions, because
 * its last token is a target only; parts of a document overlap by that token.
 */
#include "batch/packing.h"

#include "base/check.h"
#include "base/grow.h"
#include "base/try.h"
#include "io/error.h"

#include <stdlib.h>
#include <string.h>

static int no_memory(const struct packed *p)
{
    return fail(NJ_E_NOMEM, "--packing: out of memory for %zu documents", p->count);
}

/* ---- documents to pieces ---- */

static int add_piece(struct packed *p, int64_t first, int32_t inputs)
{
    CHECK(inputs > 0 && inputs <= p->S); /* best_fit() counts rows by their room */
    if (!GROW(p->piece, p->capacity, p->count + 1))
        return no_memory(p);
    p->piece[p->count++] = (struct piece){first, inputs};
    p->inputs += inputs;
    return 0;
}

/* A file that is being cut into documents. */
struct cutter {
    struct packed *packed;
    const struct packing_rules *rules;
    int64_t begin, at; /* first token of the document; next token */
    int64_t targets,
        overrun; /* numbers of tokens with a loss: in the document's first row; beyond it */
    bool masked; /* whether a token of the document has no loss */
};

static int add_parts(struct packed *p, int64_t first, int64_t last)
{
    for (; first < last; first += p->S)
        TRY(add_piece(p, first, last - first < p->S ? (int32_t)(last - first) : p->S));
    return 0;
}

static int add_overlong(const struct cutter *c)
{
    struct packed *p = c->packed;
    struct overlong_count *n = &p->overlong;
    enum overlong way = c->rules->overlong;
    if (way == OVERLONG_AUTO)
        way = c->masked ? OVERLONG_CUT : OVERLONG_SPLIT;
    if (way == OVERLONG_SPLIT) {
        n->split++;
        return add_parts(p, c->begin, c->at);
    }
    n->lost += c->overrun;
    if (way == OVERLONG_CUT && c->targets > 0) {
        n->cut++;
        return add_piece(p, c->begin, p->S);
    }
    n->dropped++;
    n->empty += c->targets == 0;
    n->lost += c->targets;
    return 0;
}

/* End the document with token `at`, which is a target only. */
static int end_document(struct cutter *c)
{
    struct overlong_count *n = &c->packed->overlong;
    const int64_t tokens = c->at - c->begin + 1;
    n->documents++;
    n->longest = tokens > n->longest ? tokens : n->longest;
    const int rc =
        tokens - 1 > c->packed->S ? add_overlong(c) : add_parts(c->packed, c->begin, c->at);
    c->begin = c->at + 1;
    c->targets = c->overrun = 0;
    c->masked = false;
    return rc;
}

static int cut_documents(void *user, const int32_t *ids, const unsigned char *flags, size_t n)
{
    struct cutter *c = user;
    (void)ids;
    for (size_t i = 0; i < n; i++, c->at++) {
        const int64_t place = c->at - c->begin;
        const bool trained = flags[i] & TOKEN_TRAINED;
        c->masked = c->masked || !trained;
        c->targets += trained && place > 0 && place <= c->packed->S;
        c->overrun += trained && place > c->packed->S;
        if (flags[i] & TOKEN_ENDS)
            TRY(end_document(c));
    }
    return 0;
}

/* ---- best-fit decreasing ---- */

/* Rows that are being filled, by the room they have left. */
struct fit {
    int64_t *order;  /* pieces in order, longest first */
    int64_t *row_of; /* row of each piece */
    int64_t *head;   /* for each amount of room, a row that has it, or -1 */
    int64_t *next;   /* another row with as much room */
    int64_t rows;
    unsigned char
        *tree; /* leaf r: whether a row has room r; node: whether one of the two below is set */
    int32_t leaves;
};

static void tree_set(struct fit *f, int32_t room, bool there)
{
    int32_t i = f->leaves + room;
    f->tree[i] = there;
    for (i /= 2; i > 0; i /= 2)
        f->tree[i] = f->tree[2 * i] | f->tree[2 * i + 1];
}

/* Return the least room from `least` on that a row has, or -1. */
static int32_t tree_find(const struct fit *f, int32_t least)
{
    int32_t i = f->leaves + least;
    while (i > 1 && !f->tree[i]) {
        while (i > 1 && i % 2 == 1)
            i /= 2;
        i += i > 1;
    }
    if (i <= 1)
        return -1;
    while (i < f->leaves)
        i = 2 * i + !f->tree[2 * i];
    return i - f->leaves;
}

/* Sort the pieces by length. The sort is stable, so that rows depend on the lengths alone. */
static void sort_pieces(const struct packed *p, struct fit *f)
{
    int64_t *at = f->head; /* memory that is not in use yet */
    int64_t sum = 0;
    for (size_t i = 0; i < p->count; i++)
        at[p->piece[i].inputs]++;
    for (int32_t inputs = p->S; inputs > 0; inputs--) {
        const int64_t count = at[inputs];
        at[inputs] = sum;
        sum += count;
    }
    for (size_t i = 0; i < p->count; i++)
        f->order[at[p->piece[i].inputs]++] = (int64_t)i;
}

/* Assign each piece to the row with the least room that is enough. */
static void fit_pieces(const struct packed *p, struct fit *f)
{
    for (int32_t room = 0; room <= p->S; room++)
        f->head[room] = -1;
    for (size_t k = 0; k < p->count; k++) {
        const int64_t i = f->order[k];
        const int32_t inputs = p->piece[i].inputs, found = tree_find(f, inputs);
        int64_t row = f->rows;
        if (found < 0) {
            f->rows++;
        } else {
            row = f->head[found];
            f->head[found] = f->next[row];
            if (f->head[found] < 0)
                tree_set(f, found, false);
        }
        f->row_of[i] = row;
        const int32_t rest = (found < 0 ? p->S : found) - inputs;
        if (rest == 0)
            continue;
        f->next[row] = f->head[rest];
        f->head[rest] = row;
        tree_set(f, rest, true);
    }
}

/* Order the pieces by row: rows in the order of their first pieces in the stream, as are the pieces of a row. */
static int gather_rows(struct packed *p, struct fit *f)
{
    struct piece *sorted = malloc(p->count * sizeof *sorted);
    int64_t *number = f->next; /* number of a row in that order */
    p->start = calloc((size_t)f->rows + 2, sizeof *p->start);
    if (!sorted || !p->start) {
        free(sorted);
        return no_memory(p);
    }
    for (int64_t row = 0; row < f->rows; row++)
        number[row] = -1;
    /* Counts are two places up, so that filling leaves start[r] at the beginning of row r. */
    for (size_t i = 0; i < p->count; i++) {
        int64_t *row = &number[f->row_of[i]];
        if (*row < 0)
            *row = p->rows++;
        p->start[*row + 2]++;
    }
    for (int64_t row = 2; row <= p->rows; row++)
        p->start[row] += p->start[row - 1];
    for (size_t i = 0; i < p->count; i++)
        sorted[p->start[number[f->row_of[i]] + 1]++] = p->piece[i];
    CHECK(p->rows == f->rows && (size_t)p->start[p->rows] == p->count);
    free(p->piece);
    p->piece = sorted;
    return 0;
}

static int best_fit(struct packed *p)
{
    struct fit f = {.leaves = 1};
    while (f.leaves <= p->S)
        f.leaves *= 2;
    f.order = malloc(p->count * sizeof *f.order);
    f.row_of = malloc(p->count * sizeof *f.row_of);
    f.next = malloc(p->count * sizeof *f.next);
    f.head = calloc((size_t)p->S + 1, sizeof *f.head);
    f.tree = calloc(2 * (size_t)f.leaves, 1);
    int rc = 0;
    if (!f.order || !f.row_of || !f.next || !f.head || !f.tree) {
        rc = no_memory(p);
    } else {
        sort_pieces(p, &f);
        fit_pieces(p, &f);
        rc = gather_rows(p, &f);
    }
    free(f.order);
    free(f.row_of);
    free(f.next);
    free(f.head);
    free(f.tree);
    return rc;
}

/* ---- rows ---- */

static void wrap(struct packed *p, bool once)
{
    const int64_t targets = p->last - p->first - 1;
    p->rows = targets < 1 ? 0 : (targets + (once ? p->S - 1 : 0)) / p->S;
    p->inputs = once ? targets : p->rows * p->S;
}

int packed_make(const struct segment *segments, size_t count, const struct packing_rules *rules,
                struct packed *out)
{
    const enum packing kind = rules->kind;
    *out = (struct packed){.S = rules->S};
    if (count == 0)
        return 0;
    out->first = segments[0].first;
    out->last = segments[count - 1].first + segments[count - 1].count;
    int rc = 0;
    if (kind == PACKING_WRAPPED)
        wrap(out, rules->once);
    for (size_t i = 0; i < count && kind != PACKING_WRAPPED && rc == 0; i++) {
        const struct segment *s = &segments[i];
        struct cutter cutter = {.packed = out, .rules = rules, .begin = s->first, .at = s->first};
        rc = segment_scan(s, INT32_MAX, cut_documents, &cutter);
    }
    if (kind == PACKING_NONE)
        out->rows = (int64_t)out->count;
    if (kind == PACKING_BFD && out->count > 0 && rc == 0)
        rc = best_fit(out);
    return rc;
}

int packed_lengths(const int32_t *inputs, size_t count, int32_t S, struct packed *out)
{
    int rc = 0;
    *out = (struct packed){.S = S};
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = add_piece(out, (int64_t)i, inputs[i]);
    return rc || count == 0 ? rc : best_fit(out);
}

void packed_free(struct packed *p)
{
    free(p->piece);
    free(p->start);
    memset(p, 0, sizeof *p);
}

int packed_pieces(const struct packed *p, int64_t row)
{
    return p->start ? (int)(p->start[row + 1] - p->start[row]) : 1;
}

struct piece packed_piece(const struct packed *p, int64_t row, int i)
{
    if (p->piece)
        return p->piece[p->start ? p->start[row] + i : row];
    const int64_t first = p->first + row * p->S, left = p->last - first;
    return (struct piece){first, left < p->S ? (int32_t)left : p->S};
}
