/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_cache_shard.c: a shard of a cache of hidden states of 2 elements in float32.
 */
#include "fuzz.h"
#include "io/error.h"
#include "teacher/teacher_cache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const struct cache_facts facts = {
        .type = NJ_TYPE_F32, .hidden_size = 2, .vocab_size = 9, .source = "teacher"};
    static int made;
    const struct passage first = {.key = {1, 2}, .tokens = 1, .targets = 1};
    struct teacher_cache *c;
    float row[2];
    if (!made)
        FUZZ_CHECK(cache_facts_write(fuzz_folder(), &facts) == 0);
    made = 1;
    fuzz_file("hidden-0123456789abcdef.safetensors", data, bytes);
    const int rc = cache_open(fuzz_folder(), &c);
    fuzz_verdict(rc == 0, fail_text());
    if (rc != 0)
        return 0;
    if (cache_has(c, first.key))
        (void)cache_read(c, &first, row);
    cache_close(c);
    return 0;
}
