/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_file.c: rows of answers in a file: a header, then the arrays, each part with its XXH3-64. The content is
 * checked even if its hash is right: kernels index by these numbers.
 */
#include "batch/answers.h"

#include "base/try.h"
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

/* The head of the file: little-endian, no padding. */
struct head {
    char magic[8];
    int64_t S, rows, valid;
    uint64_t arrays_hash, head_hash; /* head_hash: hash of all fields before it */
};

static uint64_t hash_of(const struct head *h)
{
    return XXH3_64bits(h, offsetof(struct head, head_hash));
}

int answer_rows_write(const struct batch *b, const char *path)
{
    struct head h = {.S = b->S, .rows = b->B, .valid = b->valid};
    memcpy(h.magic, magic, sizeof magic);
    h.arrays_hash = XXH3_64bits(b->memory, b->bytes);
    h.head_hash = hash_of(&h);
    FILE *f = fopen(path, "wb");
    bool written =
        f && fwrite(&h, sizeof h, 1, f) == 1 && fwrite(b->memory, 1, b->bytes, f) == b->bytes;
    written = f && fclose(f) == 0 && written;
    return written ? 0 : fail(NJ_E_IO, "%s: cannot be written: %s", path, strerror(errno));
}

static int damaged(const char *path)
{
    return fail(NJ_E_FORMAT, "%s: not the whole answers of a step; take another checkpoint", path);
}

static bool is_id(int32_t id, int vocab)
{
    return id >= 0 && id < vocab;
}

/* Return whether position i of a row, the `at`th of all, holds values that its arrays may hold. */
static bool is_position(const struct batch *b, int i, size_t at, int vocab)
{
    bool good = true;
#define IS_TOKEN(value) is_id(value, vocab)
#define IS_TARGET(value) ((value) == IGNORED || is_id(value, vocab))
#define IS_PLACE(value) ((value) >= 0 && (value) < b->S)
#define IS_ANY(value) true
#define HOST(name, type, use, values, empty) good = good && (!b->name || IS_##values(b->name[at]));
#include "batch/batch.def"
    return good && b->doc_start[at] <= i && b->pos[at] == i - b->doc_start[at] &&
           b->teacher_doc_start[at] <= i && b->teacher_pos[at] == i - b->teacher_doc_start[at];
}

static bool are_rows(const struct batch *b, int vocab)
{
    int64_t valid = 0;
    for (int row = 0; row < b->B; row++) {
        for (int i = 0; i < b->S; i++)
            if (!is_position(b, i, (size_t)row * (size_t)b->S + (size_t)i, vocab))
                return false;
        valid += batch_row_targets(b, row);
    }
    return valid == b->valid;
}

static int read_file(FILE *f, const char *path, int S, int64_t most, int vocab, struct batch *out)
{
    struct head h;
    if (fread(&h, sizeof h, 1, f) != 1 || memcmp(h.magic, magic, sizeof magic) != 0 ||
        h.head_hash != hash_of(&h))
        return damaged(path);
    if (h.S != S || h.rows < 0 || h.rows > most || h.rows > INT32_MAX)
        return fail(NJ_E_FORMAT,
                    "%s: %lld rows of %lld tokens are not answers of this run; take another "
                    "checkpoint",
                    path, (long long)h.rows, (long long)h.S);
    TRY(batch_allocate(out, (int)h.rows, S, ANSWER_ARRAYS));
    out->valid = h.valid;
    if (fread(out->memory, 1, out->bytes, f) != out->bytes || fgetc(f) != EOF ||
        h.arrays_hash != XXH3_64bits(out->memory, out->bytes) || !are_rows(out, vocab))
        return damaged(path);
    return 0;
}

int answer_rows_read(const char *path, int S, int64_t most, int vocab_size, struct batch *out)
{
    FILE *f;
    *out = (struct batch){0};
    int rc = regular_open(path, 0, "take another checkpoint", &f);
    if (rc != 0)
        return rc;
    rc = read_file(f, path, S, most, vocab_size, out);
    fclose(f);
    if (rc != 0)
        batch_free(out);
    return rc;
}
