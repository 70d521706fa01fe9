/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_answers.c: answers.bin of a checkpoint, for a run of 2 sequences of 4 tokens and a vocabulary of 5. A hash of 0
 * in the file stands for the right one, so that what lies behind it is reached. What is accepted is written again, to
 * the same bytes.
 */
#include "batch/answers.h"
#include "batch/data.h"
#include "fuzz.h"
#include "io/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* The places of fields in the header: tests/fuzz/make_corpus.py has its fields. */
enum { ARRAYS_HASH_AT = 32, HEAD_HASH_AT = 40, HEAD_BYTES = 48 };
enum { S = 4, ROWS = 2, VOCAB = 5 };

static void fill_hash(uint8_t *file, size_t at, const uint8_t *of, size_t bytes)
{
    uint64_t hash;
    memcpy(&hash, file + at, sizeof hash);
    if (hash != 0)
        return;
    hash = XXH3_64bits(of, bytes);
    memcpy(file + at, &hash, sizeof hash);
}

static void check_same(const struct batch *a, const uint8_t *file, size_t bytes)
{
    const char *path = fuzz_file("again", "", 0);
    uint8_t *again = malloc(bytes + 1);
    FUZZ_CHECK(again && answer_rows_write(a, path) == 0);
    FILE *f = fopen(path, "rb");
    FUZZ_CHECK(f && fread(again, 1, bytes + 1, f) == bytes && memcmp(again, file, bytes) == 0);
    fclose(f);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct batch a;
    uint8_t *file = malloc(bytes + 1);
    FUZZ_CHECK(file);
    memcpy(file, data, bytes);
    if (bytes >= HEAD_BYTES) {
        fill_hash(file, ARRAYS_HASH_AT, file + HEAD_BYTES, bytes - HEAD_BYTES);
        fill_hash(file, HEAD_HASH_AT, file, HEAD_HASH_AT);
    }
    const int rc = answer_rows_read(fuzz_file("answers.bin", file, bytes), S, ROWS, VOCAB, &a);
    fuzz_verdict(rc == 0, fail_text());
    if (rc == 0) {
        FUZZ_CHECK(a.S == S && a.B >= 0 && a.B <= ROWS && a.valid >= 0);
        for (int i = 0; i < a.B * S; i++)
            FUZZ_CHECK(a.ids[i] >= 0 && a.ids[i] < VOCAB);
        check_same(&a, file, bytes);
        batch_free(&a);
    }
    free(file);
    return 0;
}
