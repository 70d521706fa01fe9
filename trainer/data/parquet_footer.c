/* SPDX-License-Identifier: Apache-2.0
 *
 * parquet_footer.c: the end of a Parquet file: its schema, and the place of each column in each row group.
 */
#include "data/parquet_inside.h"

#include "base/checked.h"
#include "base/grow.h"
#include "io/error.h"

#include <stdlib.h>
#include <string.h>

enum { NODES_MOST = 1 << 16, DEPTH_MOST = 32, FOOTER_MOST = 1 << 28 };

int pq_bad(const struct parquet *p, const char *what)
{
    return fail(NJ_E_FORMAT, "%s: %s; the file is damaged, so make it again", p->f->path, what);
}

int pq_no_memory(const struct parquet *p)
{
    return fail(NJ_E_NOMEM, "%s: out of memory", p->f->path);
}

bool pq_reserve(struct pq_buffer *b, size_t bytes)
{
    return GROW(b->at, b->capacity, bytes + 1); /* some of no bytes, too */
}

/* ---- schema ---- */

/* The schema's facts about an element other than its place. */
struct element {
    int type, width, repetition, children, converted, logical;
    bool is_unsigned;
    struct thrift_text name;
};

enum { UTF8 = 0, MAP = 1, MAP_KEY_VALUE = 2, LIST = 3, DECIMAL = 5, UINT_8 = 11, UINT_64 = 14 };
enum { LOGICAL_MAP = 2, LOGICAL_LIST = 3, LOGICAL_DECIMAL = 5, LOGICAL_INTEGER = 10 };

/* Read a logical type: a struct of one field, whose number is the type. */
static void read_logical(struct thrift *t, struct element *e)
{
    struct thrift_field kind = {0};
    while (thrift_next(t, &kind)) {
        struct thrift_field f = {0};
        e->logical = kind.id;
        if (!thrift_struct(t, &kind))
            return;
        while (thrift_next(t, &f))
            if (kind.id == LOGICAL_INTEGER && f.id == 2)
                e->is_unsigned = !thrift_bool(t, &f);
            else
                thrift_skip(t, &f);
    }
}

static struct element read_element(struct thrift *t)
{
    struct element e = {.type = -1, .converted = -1};
    struct thrift_field f = {0};
    while (thrift_next(t, &f))
        switch (f.id) {
        case 1:
            e.type = (int)thrift_int(t, &f);
            break;
        case 2:
            e.width = (int)thrift_int(t, &f);
            break;
        case 3:
            e.repetition = (int)thrift_int(t, &f);
            break;
        case 4:
            e.name = thrift_binary(t, &f);
            break;
        case 5:
            e.children = (int)thrift_int(t, &f);
            break;
        case 6:
            e.converted = (int)thrift_int(t, &f);
            break;
        case 10:
            if (thrift_struct(t, &f))
                read_logical(t, &e);
            break;
        default:
            thrift_skip(t, &f);
        }
    return e;
}

static int fill_node(struct parquet *p, int i, const struct element *e)
{
    struct pq_node *n = &p->node[i];
    *n = (struct pq_node){.repetition = i == 0 ? PQ_REQUIRED : e->repetition,
                          .children = e->children,
                          .column = e->type >= 0,
                          .physical = e->type,
                          .width = e->width};
    n->name = strndup(e->name.text ? e->name.text : "", e->name.bytes);
    if (!n->name)
        return pq_no_memory(p);
    const bool map = e->converted == MAP || e->converted == MAP_KEY_VALUE;
    if (e->logical == LOGICAL_LIST || e->converted == LIST)
        n->kind = PQ_LIST;
    if (e->logical == LOGICAL_MAP || map)
        n->kind = PQ_MAP;
    n->is_unsigned = e->is_unsigned || (e->converted >= UINT_8 && e->converted <= UINT_64);
    n->refused = e->type == PQ_INT96 || e->type == PQ_FIXED || e->converted == DECIMAL ||
                 e->logical == LOGICAL_DECIMAL;
    if (e->type >= PQ_PHYSICALS || n->repetition < 0 || n->repetition > PQ_REPEATED ||
        n->children < 0 || (n->column ? n->children > 0 : n->children == 0 && i > 0))
        return pq_bad(p, "an element of the schema cannot be");
    return 0;
}

/* Place a node, *at, and those below it: set their ends, levels and columns. */
static int place(struct parquet *p, int *at, int rep, int def, int depth)
{
    const int i = *at;
    if (i == p->nodes || depth > DEPTH_MOST)
        return pq_bad(p, "the schema has no end, or is too deep");
    struct pq_node *n = &p->node[i];
    n->max_rep = rep + (n->repetition == PQ_REPEATED);
    n->max_def = def + (n->repetition != PQ_REQUIRED);
    n->leaf = p->columns;
    p->columns += n->column;
    ++*at;
    int rc = 0;
    for (int k = 0; k < n->children && rc == 0; k++)
        rc = place(p, at, n->max_rep, n->max_def, depth + 1);
    n->end = *at;
    n->leaves = p->columns - n->leaf;
    return rc;
}

/* Set the kind of a group. A list or a map has one child, which is repeated; a group that is called one and has no such
 * child is a struct. */
static void settle_kind(struct parquet *p, int i)
{
    struct pq_node *n = &p->node[i];
    const struct pq_node *child = n + 1;
    if (n->kind == PQ_STRUCT)
        return;
    const bool repeats = n->children == 1 && child->repetition == PQ_REPEATED;
    const bool pairs = repeats && child->children == 2;
    if (n->column || !repeats || (n->kind == PQ_MAP && !pairs))
        n->kind = PQ_STRUCT;
}

static int read_schema(struct parquet *p, struct thrift *t, const struct thrift_field *f)
{
    const size_t count = thrift_structs(t, f);
    int at = 0, rc = 0;
    if (p->node || count == 0 || count > NODES_MOST)
        return pq_bad(p, "the schema has no element, or too many");
    p->node = calloc(count, sizeof *p->node);
    if (!p->node)
        return pq_no_memory(p);
    for (size_t i = 0; i < count && rc == 0; i++) {
        const struct element e = read_element(t);
        p->nodes++;
        rc = t->bad ? pq_bad(p, "the schema cannot be read") : fill_node(p, (int)i, &e);
    }
    if (rc == 0)
        rc = place(p, &at, 0, 0, 0);
    if (rc == 0 && at != p->nodes)
        rc = pq_bad(p, "the schema has elements that belong nowhere");
    for (int i = 0; i < p->nodes && rc == 0; i++)
        settle_kind(p, i);
    return rc;
}

/* ---- which columns are read ---- */

static int check_column(const struct parquet *p, const char *top, const struct pq_node *n)
{
    if (!n->column || !n->refused)
        return 0;
    return fail(NJ_E_UNSUPPORTED,
                "%s: the column %s holds %s, which is not read; write it as texts or numbers",
                p->f->path, top,
                n->physical == PQ_INT96   ? "INT96"
                : n->physical == PQ_FIXED ? "values of a fixed number of bytes"
                                          : "decimal numbers");
}

static int choose_columns(struct parquet *p, const struct parquet_reader *reader)
{
    const struct pq_node *root = p->node;
    char names[256] = "";
    size_t length = 0;
    bool any = false;
    int rc = 0;
    p->wanted = calloc((size_t)p->columns + 1, sizeof *p->wanted);
    if (!p->wanted)
        return pq_no_memory(p);
    for (int i = 1; i < root->end && rc == 0; i = p->node[i].end) {
        const struct pq_node *n = &p->node[i];
        if (length + 40 < sizeof names)
            length += (size_t)snprintf(names + length, sizeof names - length, "%s%.32s",
                                       length > 0 ? ", " : "", n->name);
        if (!reader->wants(reader->user, n->name)) {
            reader->unread(reader->user, n->name);
            continue;
        }
        any = true;
        for (int k = 0; k < n->leaves; k++)
            p->wanted[n->leaf + k] = true;
        for (int k = i; k < n->end && rc == 0; k++)
            rc = check_column(p, n->name, &p->node[k]);
    }
    if (rc == 0 && !any)
        rc = fail(NJ_E_FORMAT,
                  "%s: no column has a known name; it has %s: say which count, for "
                  "example --fields prompt=question,completion=answer",
                  p->f->path, *names ? names : "none");
    return rc;
}

/* ---- row groups ---- */

static void read_chunk_data(struct thrift *t, struct pq_chunk *out)
{
    struct thrift_field f = {0};
    int64_t data = -1, dictionary = 0, bytes = -1;
    while (thrift_next(t, &f))
        switch (f.id) {
        case 4:
            out->codec = (int)thrift_int(t, &f);
            break;
        case 5:
            out->values = thrift_int(t, &f);
            break;
        case 7:
            bytes = thrift_int(t, &f);
            break;
        case 9:
            data = thrift_int(t, &f);
            break;
        case 11:
            dictionary = thrift_int(t, &f);
            break;
        default:
            thrift_skip(t, &f);
        }
    /* Some writers give 0 where there is no dictionary. */
    const int64_t at = dictionary > 0 && dictionary < data ? dictionary : data;
    t->bad = t->bad || at < 0 || bytes < 0 || out->values < 0;
    out->at = (uint64_t)at;
    out->bytes = (uint64_t)bytes;
}

/* Read the place of one column of a row group; *apart: it is in another file, or encrypted. */
static struct pq_chunk read_chunk(struct thrift *t, bool *apart)
{
    struct thrift_field f = {0};
    struct pq_chunk chunk = {0};
    bool there = false;
    while (thrift_next(t, &f)) {
        *apart = *apart || f.id == 1 || f.id == 8 || f.id == 9;
        if (f.id == 3 && thrift_struct(t, &f)) {
            read_chunk_data(t, &chunk);
            there = true;
        } else {
            thrift_skip(t, &f);
        }
    }
    t->bad = t->bad || (!there && !*apart);
    return chunk;
}

static int check_chunk(const struct parquet *p, const struct pq_chunk *chunk)
{
    static const char *const names[] = {"", "", "", "LZO", "Brotli", "LZ4 as Hadoop frames it"};
    if (chunk->codec < 0 || chunk->codec > 7)
        return pq_bad(p, "a column is packed in an unknown way");
    if (chunk->codec >= 3 && chunk->codec <= 5)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: columns are packed by %s, which is not read; write the file with zstd, "
                    "snappy, gzip or lz4_raw",
                    p->f->path, names[chunk->codec]);
    if (chunk->at > p->f->bytes || chunk->bytes > p->f->bytes - chunk->at)
        return pq_bad(p, "a column lies beyond the end of the file");
    return 0;
}

static int read_columns(struct parquet *p, struct thrift *t, const struct thrift_field *f,
                        struct pq_chunk *out)
{
    bool apart = false;
    const size_t count = thrift_structs(t, f);
    int rc = 0;
    if (!t->bad && count != (size_t)p->columns)
        return pq_bad(p, "a row group has another number of columns than the schema");
    for (size_t i = 0; i < count && !t->bad && rc == 0; i++) {
        out[i] = read_chunk(t, &apart);
        if (apart)
            return fail(NJ_E_UNSUPPORTED,
                        "%s: its columns lie in other files, or are encrypted; write it as one "
                        "plain file",
                        p->f->path);
        rc = p->wanted[i] && !t->bad ? check_chunk(p, &out[i]) : 0;
    }
    return rc;
}

static int read_group(struct parquet *p, struct thrift *t, size_t group)
{
    struct thrift_field f = {0};
    bool there = false;
    int rc = 0;
    p->group_rows[group] = -1;
    while (rc == 0 && thrift_next(t, &f))
        if (f.id == 1) {
            there = true;
            rc = read_columns(p, t, &f, p->chunk + group * (size_t)p->columns);
        } else if (f.id == 3) {
            p->group_rows[group] = thrift_int(t, &f);
        } else {
            thrift_skip(t, &f);
        }
    if (rc == 0 && (t->bad || !there || p->group_rows[group] < 0))
        rc = pq_bad(p, "a row group cannot be read");
    return rc;
}

static int read_groups(struct parquet *p, struct thrift *t, const struct thrift_field *f)
{
    const size_t count = thrift_structs(t, f);
    int rc = 0;
    if (p->chunk || !p->node)
        return pq_bad(p, "the row groups stand before the schema, or twice");
    p->chunk = calloc(size_mul(count, (size_t)p->columns) + 1, sizeof *p->chunk);
    p->group_rows = calloc(count + 1, sizeof *p->group_rows);
    if (!p->chunk || !p->group_rows)
        return pq_no_memory(p);
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = read_group(p, t, i);
    p->groups = count;
    return rc;
}

/* ---- the footer ---- */

static int read_footer(struct parquet *p, size_t bytes, const struct parquet_reader *reader)
{
    struct thrift t = {.at = p->footer, .end = p->footer + bytes};
    struct thrift_field f = {0};
    while (thrift_next(&t, &f))
        if (f.id == 2) {
            TRY(read_schema(p, &t, &f));
            TRY(choose_columns(p, reader));
        } else if (f.id == 4) {
            TRY(read_groups(p, &t, &f));
        } else {
            thrift_skip(&t, &f);
        }
    if (t.bad || !p->node || !p->chunk)
        return pq_bad(p, "its footer cannot be read");
    return 0;
}

int pq_read_footer(struct parquet *p, const struct parquet_reader *reader)
{
    const size_t bytes = p->f->bytes;
    unsigned char tail[8];
    if (bytes < 12)
        return pq_bad(p, "it is too short for Parquet");
    TRY(data_file_read(p->f, bytes - 8, tail, 8));
    const size_t length =
        tail[0] | (size_t)tail[1] << 8 | (size_t)tail[2] << 16 | (size_t)tail[3] << 24;
    if (memcmp(tail + 4, "PARE", 4) == 0)
        return fail(NJ_E_UNSUPPORTED, "%s: it is encrypted; write it as a plain file", p->f->path);
    if (memcmp(tail + 4, "PAR1", 4) != 0)
        return pq_bad(p, "it does not end as Parquet does");
    if (length > bytes - 12 || length > FOOTER_MOST)
        return pq_bad(p, "its footer is longer than the file");
    p->footer = malloc(length + 1);
    if (!p->footer)
        return pq_no_memory(p);
    int rc = data_file_read(p->f, bytes - 8 - length, p->footer, length);
    if (rc == 0)
        rc = read_footer(p, length, reader);
    free(p->footer);
    p->footer = NULL;
    return rc;
}
