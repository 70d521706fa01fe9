/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_cache.c: cache.json, of a cache of hidden states.
 */
#include "fuzz.h"
#include "io/error.h"
#include "teacher/teacher_cache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct cache_facts facts;
    fuzz_file("cache.json", data, bytes);
    const int rc = cache_facts_read(fuzz_folder(), &facts);
    fuzz_verdict(rc == 0, fail_text());
    if (rc != 0)
        return 0;
    FUZZ_CHECK(facts.hidden_size > 0 && facts.vocab_size > 0 && cache_row_bytes(&facts) > 0);
    return 0;
}
