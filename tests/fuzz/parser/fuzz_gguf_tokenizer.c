/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_gguf_tokenizer.c: the tokenizer in a GGUF file; what is accepted encodes a text that has a bit of everything,
 * and so does the tokenizer.json that is made of it.
 */
#include "fuzz.h"
#include "io/error.h"
#include "text/bpe.h"
#include "text/gguf_tokenizer.h"

#include <stdlib.h>
#include <string.h>

static const char text[] = "<|endoftext|>It's 12345 words,  \n\n e\xcc\x81t\xc3\xa9 <u> \xff\xfe "
                           "word\t\xf0\x9f\x98\x80 [PAD263] <|x|> the ";

static size_t encode(const struct tokenizer *t, int32_t **ids)
{
    size_t count = 0, capacity = 0;
    *ids = NULL;
    /* A pattern may be refused by the matcher, which then says so. */
    if (tokenizer_encode(t, text, sizeof text - 1, ids, &count, &capacity) != 0)
        return 0;
    for (size_t i = 0; i < count; i++)
        FUZZ_CHECK((*ids)[i] >= 0 && (*ids)[i] < t->vocab_size);
    return count;
}

static void compare(const struct tokenizer *t)
{
    struct tokenizer json;
    int32_t *ids[2];
    FUZZ_CHECK(gguf_tokenizer_copy(t->dir, fuzz_folder()) == 0);
    FUZZ_CHECK(tokenizer_open(fuzz_folder(), &json) == 0);
    FUZZ_CHECK(json.bpe && json.vocab_size == t->vocab_size);
    FUZZ_CHECK(tokenizer_hash(&json) == tokenizer_hash(t));
    FUZZ_CHECK(tokenizer_begin_of_text(&json) == tokenizer_begin_of_text(t));
    if (t->bpe
            ->spaces) { /* equal scores are alike in the file, and merges of a tokenizer.json in turn */
        tokenizer_close(&json);
        return;
    }
    const size_t count = encode(t, &ids[0]);
    FUZZ_CHECK(count == encode(&json, &ids[1]));
    FUZZ_CHECK(count == 0 || memcmp(ids[0], ids[1], count * sizeof *ids[0]) == 0);
    free(ids[0]);
    free(ids[1]);
    tokenizer_close(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const char *path = fuzz_file("model.gguf", data, bytes);
    struct tokenizer t;
    struct gguf g;
    if (gguf_open(path, &g) != 0) {
        fuzz_verdict(0, fail_text());
        return 0;
    }
    gguf_close(&g);
    FUZZ_CHECK(tokenizer_open(path, &t) == 0);
    fuzz_verdict(t.vocab_size > 0, t.refusal);
    if (t.bpe)
        compare(&t);
    tokenizer_close(&t);
    return 0;
}
