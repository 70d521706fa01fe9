/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_added.c: a tokenizer_config.json beside a tokenizer.json, and the same bytes as added_tokens.json: what
 * it adds has ids
 * of its own.
 */
#include "fuzz.h"
#include "io/error.h"
#include "text/added_config.h"

static const char tokenizer[] =
    "{\"added_tokens\":[{\"id\":1,\"content\":\"<s>\",\"special\":true}]}";

static int add(void)
{
    json_t *root = json_loads(tokenizer, 0, NULL), *token;
    size_t i;
    const int rc = added_config(fuzz_folder(), root, NULL);
    if (rc == 0)
        json_array_foreach(json_object_get(root, "added_tokens"), i, token)
            FUZZ_CHECK(json_string_length(json_object_get(token, "content")) > 0);
    json_decref(root);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    fuzz_file("added_tokens.json", "{}", 2);
    fuzz_file("tokenizer_config.json", data, bytes);
    int rc = add();
    fuzz_file("tokenizer_config.json", "{}", 2);
    fuzz_file("added_tokens.json", data, bytes);
    rc = rc ? rc : add();
    fuzz_verdict(rc == 0, fail_text());
    return 0;
}
