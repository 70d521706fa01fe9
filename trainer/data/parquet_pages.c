/* SPDX-License-Identifier: Apache-2.0
 *
 * parquet_pages.c: the pages of a column, one after the other: head, checksum, unpacked bytes, levels.
 */
#include "data/parquet_inside.h"

#include "formats/crc32.h"
#include "io/error.h"

#include <stdlib.h>
#include <string.h>

enum { DATA_PAGE, INDEX_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 };
enum { HEAD_LEAST = 4096, HEAD_MOST = 1 << 24, PAGE_MOST = 1 << 30, VALUES_MOST = 1 << 28 };

static int bad_page(const struct pq_column *c, const char *what)
{
    return fail(NJ_E_FORMAT,
                "%s: row %lld: a page of the column %s %s; the file is damaged, so make it again",
                c->p->f->path, (long long)c->p->row, c->node->name, what);
}

/* ---- the head ---- */

struct page_head {
    int64_t type, packed, bytes; /* type; packed and unpacked size */
    int64_t values, encoding, def_encoding, rep_encoding;
    int64_t rep_bytes, def_bytes; /* sizes of the levels, version 2 only */
    bool plain;                   /* version 2: whether the values are not packed */
    bool has_sum;
    uint32_t sum;
};

/* Read the facts about the values, in any of three structs: `version` is the struct's number in the head. */
static void read_kind(struct thrift *t, int version, struct page_head *h)
{
    const bool two = version == 8;
    struct thrift_field f = {0};
    while (thrift_next(t, &f)) {
        if (f.id == 1)
            h->values = thrift_int(t, &f);
        else if (f.id == (two ? 4 : 2))
            h->encoding = thrift_int(t, &f);
        else if (version == 5 && f.id == 3)
            h->def_encoding = thrift_int(t, &f);
        else if (version == 5 && f.id == 4)
            h->rep_encoding = thrift_int(t, &f);
        else if (two && f.id == 5)
            h->def_bytes = thrift_int(t, &f);
        else if (two && f.id == 6)
            h->rep_bytes = thrift_int(t, &f);
        else if (two && f.id == 7)
            h->plain = !thrift_bool(t, &f);
        else
            thrift_skip(t, &f);
    }
}

static bool parse_head(struct thrift *t, struct page_head *h)
{
    struct thrift_field f = {0};
    *h = (struct page_head){
        .type = -1, .values = -1, .encoding = -1, .def_encoding = PQ_RLE, .rep_encoding = PQ_RLE};
    while (thrift_next(t, &f)) {
        if (f.id == 1)
            h->type = thrift_int(t, &f);
        else if (f.id == 2)
            h->bytes = thrift_int(t, &f);
        else if (f.id == 3)
            h->packed = thrift_int(t, &f);
        else if (f.id == 4) {
            h->sum = (uint32_t)thrift_int(t, &f);
            h->has_sum = true;
        } else if ((f.id == 5 || f.id == 7 || f.id == 8) && thrift_struct(t, &f))
            read_kind(t, f.id, h);
        else
            thrift_skip(t, &f);
    }
    return !t->bad;
}

/* Read the head of the next page; its length is unknown, so more bytes are read until they suffice. */
static int read_head(struct pq_column *c, struct page_head *h)
{
    for (size_t window = HEAD_LEAST;; window *= 16) {
        const size_t bytes = window < c->chunk.bytes ? window : (size_t)c->chunk.bytes;
        if (!pq_reserve(&c->raw, bytes))
            return pq_no_memory(c->p);
        const int rc = data_file_read(c->p->f, (size_t)c->chunk.at, c->raw.at, bytes);
        struct thrift t = {.at = c->raw.at, .end = c->raw.at + bytes};
        if (rc != 0)
            return rc;
        if (parse_head(&t, h)) {
            c->chunk.at += (uint64_t)(t.at - c->raw.at);
            c->chunk.bytes -= (uint64_t)(t.at - c->raw.at);
            return 0;
        }
        if (bytes == c->chunk.bytes || window >= HEAD_MOST)
            return bad_page(c, "has no head that can be read");
    }
}

static int check_head(const struct pq_column *c, const struct page_head *h)
{
    if (h->packed < 0 || h->bytes < 0 || (uint64_t)h->packed > c->chunk.bytes)
        return bad_page(c, "is longer than its column");
    if (h->bytes > PAGE_MOST || (size_t)h->bytes > unpack_most((size_t)h->packed))
        return bad_page(c, "unpacks to far more bytes than it has");
    if (h->type == INDEX_PAGE)
        return 0;
    if (h->type < 0 || h->type > DATA_PAGE_V2 || h->values < 0 || h->values > VALUES_MOST)
        return bad_page(c, "is of an unknown kind");
    if (h->rep_bytes < 0 || h->def_bytes < 0 || h->rep_bytes > h->packed ||
        h->def_bytes > h->packed - h->rep_bytes || h->rep_bytes + h->def_bytes > h->bytes)
        return bad_page(c, "has levels longer than itself");
    /* Some writers give another encoding for levels that are absent. */
    if ((h->def_encoding != PQ_RLE && c->node->max_def > 0) ||
        (h->rep_encoding != PQ_RLE && c->node->max_rep > 0))
        return bad_page(c, "has levels in an encoding that was given up");
    return 0;
}

/* ---- its bytes ---- */

/* Return the packing that has this number in the format. */
static enum packing_of_bytes packing(int codec)
{
    static const enum packing_of_bytes kinds[] = {BYTES_PLAIN, BYTES_SNAPPY, BYTES_GZIP,
                                                  BYTES_PLAIN, BYTES_PLAIN,  BYTES_PLAIN,
                                                  BYTES_ZSTD,  BYTES_LZ4};
    return kinds[codec];
}

/* Read a page and unpack it into `to`. The levels of version 2 are not packed. */
static int read_bytes(struct pq_column *c, const struct page_head *h, struct pq_buffer *to)
{
    const size_t packed = (size_t)h->packed, levels = (size_t)(h->rep_bytes + h->def_bytes);
    if (!pq_reserve(&c->raw, packed) || !pq_reserve(to, (size_t)h->bytes))
        return pq_no_memory(c->p);
    TRY(data_file_read(c->p->f, (size_t)c->chunk.at, c->raw.at, packed));
    if (h->has_sum && crc32_of(c->raw.at, packed) != h->sum)
        return bad_page(c, "does not have the checksum it should");
    memcpy(to->at, c->raw.at, levels);
    const int rc =
        unpack_block(h->plain ? BYTES_PLAIN : packing(c->chunk.codec), c->raw.at + levels,
                     packed - levels, to->at + levels, (size_t)h->bytes - levels);
    if (rc != 0)
        return rc == NJ_E_NOMEM ? pq_no_memory(c->p) : bad_page(c, "cannot be unpacked");
    return 0;
}

/* ---- levels ---- */

static unsigned width_of(int most)
{
    unsigned width = 0;
    while (most >> width)
        width++;
    return width;
}

/* Take levels from *at on: `bytes` of them, or, if that is -1, as many as the four bytes before them say. */
static bool take_levels(int most, int64_t bytes, const unsigned char **at, const unsigned char *end,
                        struct hybrid *out)
{
    uint32_t length = (uint32_t)bytes;
    if (most == 0)
        return bytes <= 0;
    if (bytes < 0) {
        if (end - *at < 4)
            return false;
        memcpy(&length, *at, 4);
        *at += 4;
    }
    if (length > (size_t)(end - *at))
        return false;
    *out = (struct hybrid){.at = *at, .end = *at + length, .width = width_of(most)};
    *at += length;
    return true;
}

static int open_page(struct pq_column *c, const struct page_head *h)
{
    const bool two = h->type == DATA_PAGE_V2;
    const struct pq_node *n = c->node;
    const unsigned char *at = c->page.at, *end = at + h->bytes;
    if (h->values > c->chunk.values)
        return bad_page(c, "has more values than its column");
    if (!take_levels(n->max_rep, two ? h->rep_bytes : -1, &at, end, &c->rep_levels) ||
        !take_levels(n->max_def, two ? h->def_bytes : -1, &at, end, &c->def_levels))
        return bad_page(c, "has levels longer than itself");
    c->chunk.values -= h->values;
    c->page_left = h->values;
    return pq_values_begin(c, (int)h->encoding, at, end);
}

static int next_page(struct pq_column *c)
{
    struct page_head h = {0};
    TRY(c->chunk.bytes > 0 ? read_head(c, &h) : bad_page(c, "is missing"));
    TRY(check_head(c, &h));
    if (h.type != INDEX_PAGE)
        TRY(read_bytes(c, &h, h.type == DICTIONARY_PAGE ? &c->dictionary : &c->page));
    c->chunk.at += (uint64_t)h.packed;
    c->chunk.bytes -= (uint64_t)h.packed;
    if (h.type == DICTIONARY_PAGE)
        return pq_dictionary_read(c, (size_t)h.bytes, h.values);
    return h.type == INDEX_PAGE ? 0 : open_page(c, &h);
}

/* ---- places ---- */

static bool next_level(struct hybrid *h, int most, int *out)
{
    uint32_t level = 0;
    if (most > 0 && !hybrid_next(h, &level))
        return false;
    *out = (int)level;
    return level <= (uint32_t)most;
}

int pq_column_next(struct pq_column *c)
{
    int rc = 0;
    c->rep = c->def = 0;
    while (rc == 0 && c->page_left == 0 && !c->ended) {
        c->ended = c->chunk.values == 0;
        if (!c->ended)
            rc = next_page(c);
    }
    if (rc != 0 || c->ended)
        return rc;
    c->page_left--;
    return next_level(&c->rep_levels, c->node->max_rep, &c->rep) &&
                   next_level(&c->def_levels, c->node->max_def, &c->def)
               ? 0
               : bad_page(c, "has too few levels, or such as cannot be");
}

int pq_column_begin(struct pq_column *c)
{
    c->entries = 0;
    c->page_left = 0;
    c->ended = false;
    return pq_column_next(c);
}

void pq_column_free(struct pq_column *c)
{
    free(c->raw.at);
    free(c->page.at);
    free(c->dictionary.at);
    free(c->entry);
    free(c->values.text.at);
}
