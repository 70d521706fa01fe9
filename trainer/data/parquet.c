/* SPDX-License-Identifier: Apache-2.0
 *
 * parquet.c: rows from columns. Each column has, for each value, two levels (Dremel's): the repetition level says which
 * list the value continues (0: it begins a new row), and the definition level how many of the groups around it are
 * present.
 */
#include "data/parquet_inside.h"

#include "base/utf8.h"
#include "io/error.h"
#include "io/json_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROW_MOST = 1 << 28, VALUE_BYTES = 32 };

static int disagree(const struct parquet *p, const struct pq_node *n)
{
    return fail(NJ_E_FORMAT,
                "%s: row %lld: the column %s does not fit the others; the file is damaged, so make "
                "it again",
                p->f->path, (long long)p->row, n->name);
}

/* ---- values ---- */

static bool is_utf8(const char *text, size_t bytes)
{
    uint32_t cp = 0;
    size_t at = 0;
    while (at < bytes && cp != NOT_UTF8)
        at += utf8_next((const unsigned char *)text + at, bytes - at, &cp);
    return cp != NOT_UTF8;
}

/* Return the value as JSON; a number that JSON cannot express is null. NULL without memory. */
static json_t *json_of(struct parquet *p, const struct pq_node *n, const struct pq_value *v)
{
    if (n->physical == PQ_BYTES) {
        json_t *text = json_stringn(v->as.text.text, v->as.text.bytes);
        p->bad_text = p->bad_text || (!text && !is_utf8(v->as.text.text, v->as.text.bytes));
        return !text && p->bad_text ? json_null() : text;
    }
    if (n->physical == PQ_BOOLEAN)
        return json_boolean(v->as.whole != 0);
    if (n->physical == PQ_FLOAT || n->physical == PQ_DOUBLE)
        return isfinite(v->as.real) ? json_real(v->as.real) : json_null();
    if (n->is_unsigned && v->as.whole < 0)
        return json_real((double)(uint64_t)v->as.whole);
    return json_integer(v->as.whole);
}

/* Count the bytes of a value, so that no row is larger than a line of .jsonl may be. */
static int count_bytes(struct parquet *p, size_t bytes)
{
    p->row_bytes += VALUE_BYTES + bytes;
    if (p->row_bytes <= ROW_MOST)
        return 0;
    return fail(NJ_E_FORMAT, "%s:%lld: larger than the limit of %d MiB for a row", p->f->path,
                (long long)p->row, ROW_MOST >> 20);
}

static int read_leaf(struct parquet *p, const struct pq_node *n, int rep, json_t **out)
{
    struct pq_column *c = &p->column[n->leaf];
    struct pq_value v;
    if (c->ended || c->rep != rep || c->def != n->max_def)
        return disagree(p, n);
    TRY(pq_value_next(c, &v));
    TRY(count_bytes(p, n->physical == PQ_BYTES ? v.as.text.bytes : 0));
    *out = json_of(p, n, &v);
    return *out ? pq_column_next(c) : pq_no_memory(p);
}

/* Go past an absent node: each column below has one place for it. */
static int pass(struct parquet *p, const struct pq_node *n, int rep)
{
    TRY(count_bytes(p, 0));
    for (int k = 0; k < n->leaves; k++) {
        struct pq_column *c = &p->column[n->leaf + k];
        TRY(c->ended || c->rep != rep || c->def >= n->max_def ? disagree(p, n) : pq_column_next(c));
    }
    return 0;
}

/* ---- groups ---- */

static int read_node(struct parquet *p, int i, int rep, json_t **out);

static int read_struct(struct parquet *p, int i, int rep, json_t **out)
{
    int rc = 0;
    *out = json_object();
    for (int k = i + 1; k < p->node[i].end && rc == 0; k = p->node[k].end) {
        json_t *value = NULL;
        if (!p->wanted[p->node[k].leaf])
            continue;
        rc = read_node(p, k, rep, &value);
        if (rc == 0 && (!*out || json_object_set_new_nocheck(*out, p->node[k].name, value) != 0))
            rc = pq_no_memory(p);
        else if (rc != 0)
            json_decref(value);
    }
    return rc != 0 || *out ? rc : pq_no_memory(p);
}

/* Return whether the repeated child of a list is not an element itself, but holds one; older writers left that level
 * out. */
static bool holds_element(const struct pq_node *list, const struct pq_node *child)
{
    const size_t bytes = strlen(list->name);
    if (child->column || child->children != 1 || strcmp(child->name, "array") == 0)
        return false;
    return strncmp(child->name, list->name, bytes) != 0 ||
           strcmp(child->name + bytes, "_tuple") != 0;
}

static int read_present(struct parquet *p, int i, int rep, json_t **out);

/* Read the elements of a list whose repeated node is i; `inner`: each element is what that node holds. */
static int read_elements(struct parquet *p, int i, bool inner, int rep, json_t **out)
{
    const struct pq_node *n = &p->node[i];
    const struct pq_column *c = &p->column[n->leaf];
    *out = json_array();
    if (!*out)
        return pq_no_memory(p);
    if (c->def < n->max_def)
        return pass(p, n, rep);
    int rc;
    do {
        json_t *value = NULL;
        rc = inner ? read_node(p, i + 1, rep, &value) : read_present(p, i, rep, &value);
        if (rc != 0)
            json_decref(value);
        else if (json_array_append_new(*out, value) != 0)
            rc = pq_no_memory(p);
        rep = n->max_rep;
    } while (rc == 0 && !c->ended && c->rep == rep);
    return rc;
}

/* Read a map as an object; its keys must be texts. */
static int read_map(struct parquet *p, int i, int rep, json_t **out)
{
    const char *key = p->node[i + 2].name, *item = p->node[p->node[i + 2].end].name;
    json_t *pairs = NULL;
    int rc = read_elements(p, i + 1, false, rep, &pairs);
    *out = rc != 0 ? NULL : json_object();
    for (size_t k = 0; k < json_array_size(pairs) && rc == 0; k++) {
        json_t *pair = json_array_get(pairs, k), *name = json_object_get(pair, key);
        json_t *value = json_object_get(pair, item);
        if (!json_is_string(name))
            rc = fail(NJ_E_UNSUPPORTED, "%s: the keys of the map %s are not texts; leave it out",
                      p->f->path, p->node[i].name);
        else if (json_object_setn_nocheck(*out, json_string_value(name), json_string_length(name),
                                          value) != 0)
            rc = pq_no_memory(p);
    }
    json_decref(pairs);
    return rc;
}

/* Read a node that is present. */
static int read_present(struct parquet *p, int i, int rep, json_t **out)
{
    const struct pq_node *n = &p->node[i];
    if (n->column)
        return read_leaf(p, n, rep, out);
    if (n->kind == PQ_LIST)
        return read_elements(p, i + 1, holds_element(n, n + 1), rep, out);
    if (n->kind == PQ_MAP)
        return read_map(p, i, rep, out);
    return read_struct(p, i, rep, out);
}

static int read_node(struct parquet *p, int i, int rep, json_t **out)
{
    const struct pq_node *n = &p->node[i];
    if (n->repetition == PQ_REPEATED)
        return read_elements(p, i, false, rep, out);
    if (n->repetition == PQ_REQUIRED || p->column[n->leaf].def >= n->max_def)
        return read_present(p, i, rep, out);
    *out = json_null();
    return pass(p, n, rep);
}

/* ---- rows ---- */

/* Open the next row group that has rows. */
static int next_group(struct parquet *p)
{
    while (p->rows_left == 0 && p->group < p->groups) {
        const size_t first = p->group * (size_t)p->columns;
        p->rows_left = p->group_rows[p->group++];
        for (int i = 0; i < p->columns; i++)
            if (p->wanted[i]) {
                p->column[i].chunk = p->chunk[first + (size_t)i];
                TRY(pq_column_begin(&p->column[i]));
            }
    }
    return 0;
}

/* Refuse columns that continue a row that has ended. */
static int check_ends(const struct parquet *p)
{
    for (int i = 0; i < p->columns; i++) {
        const struct pq_column *c = &p->column[i];
        const bool last = p->rows_left == 1;
        if (p->wanted[i] && (c->rep != 0 || c->ended != last))
            return disagree(p, c->node);
    }
    return 0;
}

static int read_row(struct parquet *p, json_t **out)
{
    p->row_bytes = 0;
    p->bad_text = false;
    json_memory_begin();
    int rc = read_struct(p, 0, 0, out);
    if (json_memory_end() && rc == 0)
        rc = pq_no_memory(p);
    if (rc == 0)
        rc = check_ends(p);
    p->bytes += p->row_bytes;
    if (rc == 0 && p->bytes > unpack_most(p->f->bytes))
        rc = fail(NJ_E_FORMAT,
                  "%s: its rows take over %zu bytes, far more than data does; write it as several "
                  "files if that is right",
                  p->f->path, unpack_most(p->f->bytes));
    return rc;
}

int parquet_next(struct parquet *p, json_t **out, bool *row_fault)
{
    *out = NULL;
    *row_fault = false;
    p->row++;
    int rc = next_group(p);
    if (rc != 0 || p->rows_left == 0)
        return rc;
    rc = read_row(p, out);
    p->rows_left--;
    if (rc == 0 && p->bad_text) {
        *row_fault = true;
        rc = fail(NJ_E_FORMAT, "%s:%lld: a text is not UTF-8", p->f->path, (long long)p->row);
    }
    if (rc != 0) {
        json_decref(*out);
        *out = NULL;
    }
    return rc;
}

/* ---- opening ---- */

static int make_columns(struct parquet *p)
{
    p->column = calloc((size_t)p->columns + 1, sizeof *p->column);
    if (!p->column)
        return pq_no_memory(p);
    for (int i = 0; i < p->nodes; i++)
        if (p->node[i].column) {
            p->column[p->node[i].leaf].p = p;
            p->column[p->node[i].leaf].node = &p->node[i];
        }
    return 0;
}

int parquet_open(const struct data_file *f, const struct parquet_reader *reader,
                 struct parquet **out)
{
    struct parquet *p = calloc(1, sizeof *p);
    *out = NULL;
    if (!p)
        return fail(NJ_E_NOMEM, "%s: out of memory", f->path);
    p->f = f;
    int rc = pq_read_footer(p, reader);
    if (rc == 0)
        rc = make_columns(p);
    if (rc != 0)
        parquet_close(p);
    else
        *out = p;
    return rc;
}

void parquet_close(struct parquet *p)
{
    if (!p)
        return;
    for (int i = 0; i < p->nodes; i++)
        free(p->node[i].name);
    for (int i = 0; i < p->columns && p->column; i++)
        pq_column_free(&p->column[i]);
    free(p->node);
    free(p->column);
    free(p->wanted);
    free(p->chunk);
    free(p->group_rows);
    free(p);
}

size_t parquet_told(const struct parquet *p)
{
    size_t most = 0;
    for (int i = 0; i < p->columns; i++)
        if (p->wanted[i] && (size_t)p->column[i].chunk.at > most)
            most = (size_t)p->column[i].chunk.at;
    return most;
}
