/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_file.c: rows of answers in a file: a header, then the arrays, each part with its XXH3-64. What the hashes let
 * pass is still checked: kernels index by these numbers.
 */
#include "batch/answers.h"

#include "batch/data.h"
#include "io/error.h"
#include "io/regular.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static const char magic[8] = "NJANSW1";

/* Little-endian, no padding. */
struct head {
    char magic[8];
    int64_t S, rows, valid;
    uint64_t arrays_hash, head_hash; /* head_hash: of all before it */
};

static uint64_t hash_of(const struct head *h)
{
    return XXH3_64bits(h, offsetof(struct head, head_hash));
}

static size_t bytes_of(const struct answer_rows *a)
{
    return ROW_ARRAYS * (size_t)a->rows * (size_t)a->S * sizeof *a->arrays;
}

int answer_rows_write(const struct answer_rows *a, const char *path)
{
    struct head h = {.S = a->S, .rows = a->rows, .valid = a->valid};
    const size_t bytes = bytes_of(a);
    memcpy(h.magic, magic, sizeof magic);
    h.arrays_hash = XXH3_64bits(a->arrays, bytes);
    h.head_hash = hash_of(&h);
    FILE *f = fopen(path, "wb");
    bool written = f && fwrite(&h, sizeof h, 1, f) == 1 && fwrite(a->arrays, 1, bytes, f) == bytes;
    written = f && fclose(f) == 0 && written;
    return written ? NJ_OK : fail(NJ_E_IO, "%s: cannot be written: %s", path, strerror(errno));
}

static int damaged(const char *path)
{
    return fail(NJ_E_FORMAT, "%s: not the whole answers of a step; take another checkpoint", path);
}

static bool is_id(int32_t id, int vocab)
{
    return id >= 0 && id < vocab;
}

/* Position i of a row; ids, pos and doc_start of one who reads it. */
static bool is_place(const int32_t *ids, const int32_t *pos, const int32_t *doc_start, int i,
                     int vocab)
{
    return is_id(ids[i], vocab) && doc_start[i] >= 0 && doc_start[i] <= i &&
           pos[i] == i - doc_start[i];
}

static bool is_row(const int32_t *row, size_t n, int S, int vocab, int64_t *valid)
{
    const int32_t *target = row + ROW_TARGET * n, *at = row + ROW_TEACHER_AT * n;
    for (int i = 0; i < S; i++) {
        if (!is_place(row, row + ROW_POS * n, row + ROW_DOC_START * n, i, vocab) ||
            !is_place(row + ROW_TEACHER_IDS * n, row + ROW_TEACHER_POS * n,
                      row + ROW_TEACHER_DOC_START * n, i, vocab) ||
            (target[i] != IGNORED && !is_id(target[i], vocab)) || at[i] < 0 || at[i] >= S)
            return false;
        *valid += target[i] != IGNORED;
    }
    return true;
}

static bool are_rows(const struct answer_rows *a, int vocab)
{
    const size_t n = (size_t)a->rows * (size_t)a->S;
    int64_t valid = 0;
    for (int64_t row = 0; row < a->rows; row++)
        if (!is_row(a->arrays + row * a->S, n, a->S, vocab, &valid))
            return false;
    return valid == a->valid;
}

static int read_file(FILE *f, const char *path, int S, int64_t most, int vocab,
                     struct answer_rows *out)
{
    struct head h;
    if (fread(&h, sizeof h, 1, f) != 1 || memcmp(h.magic, magic, sizeof magic) != 0 ||
        h.head_hash != hash_of(&h))
        return damaged(path);
    if (h.S != S || h.rows < 0 || h.rows > most)
        return fail(NJ_E_FORMAT,
                    "%s: %lld rows of %lld tokens are not answers of this run; take another "
                    "checkpoint",
                    path, (long long)h.rows, (long long)h.S);
    *out = (struct answer_rows){.S = S, .rows = h.rows, .valid = h.valid};
    const size_t bytes = bytes_of(out);
    out->arrays = malloc(bytes + 1);
    if (!out->arrays)
        return fail(NJ_E_NOMEM, "out of memory for the answers of %s", path);
    if (fread(out->arrays, 1, bytes + 1, f) != bytes ||
        h.arrays_hash != XXH3_64bits(out->arrays, bytes) || !are_rows(out, vocab))
        return damaged(path);
    return NJ_OK;
}

int answer_rows_read(const char *path, int S, int64_t most, int vocab_size, struct answer_rows *out)
{
    FILE *f;
    *out = (struct answer_rows){0};
    int rc = regular_open(path, 0, "take another checkpoint", &f);
    if (rc)
        return rc;
    rc = read_file(f, path, S, most, vocab_size, out);
    fclose(f);
    if (rc)
        answer_rows_free(out);
    return rc;
}
