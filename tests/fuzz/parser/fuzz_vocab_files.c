/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_vocab_files.c: a merges.txt beside a vocab.json; what is accepted encodes a text.
 */
#include "fuzz.h"
#include "io/error.h"
#include "text/bpe.h"
#include "text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

static const char vocab[] = "{\"a\":0,\"b\":1,\"ab\":2,\"aba\":3}";
static const char settings[] = "{\"tokenizer_class\":\"GPT2Tokenizer\"}";
static const char text[] = "ab abab<|endoftext|>c";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct tokenizer t;
    int32_t *ids = NULL;
    size_t count = 0, capacity = 0;
    fuzz_file("vocab.json", vocab, sizeof vocab - 1);
    fuzz_file("tokenizer_config.json", settings, sizeof settings - 1);
    fuzz_file("merges.txt", data, bytes);
    const int rc = tokenizer_open(fuzz_folder(), &t);
    fuzz_verdict(rc == 0 && t.bpe != NULL, rc ? fail_text() : t.refusal);
    if (rc)
        return 0;
    if (t.bpe && tokenizer_encode(&t, text, sizeof text - 1, &ids, &count, &capacity) == 0)
        for (size_t i = 0; i < count; i++)
            FUZZ_CHECK(ids[i] >= 0 && ids[i] < t.vocab_size);
    free(ids);
    tokenizer_close(&t);
    return 0;
}
