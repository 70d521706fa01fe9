/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_prompts.c: lines of prompts, and the whole input as what a user says to a chat model, with a tokenizer that has
 * the tokens of ChatML. Run from the root of the tree.
 */
#include "batch/prompts.h"
#include "fuzz.h"
#include "golden_tokenizer.h"
#include "io/error.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST = 64 };

static void check_ids(const struct tokenizer *t, const int32_t *ids, size_t count)
{
    FUZZ_CHECK(count > 0 && count <= LONGEST);
    for (size_t i = 0; i < count; i++)
        FUZZ_CHECK(ids[i] >= 0 && ids[i] < t->vocab_size);
}

static void check_prompts(const struct tokenizer *t, const struct prompts *p)
{
    struct prompt one;
    FUZZ_CHECK(prompts_count(p) > 0 && prompts_dropped(p) >= 0);
    for (int64_t i = 0; i < prompts_count(p); i++) {
        prompts_get(p, 1, i, &one);
        check_ids(t, one.ids, one.count);
        check_ids(t, one.teacher_ids, one.teacher_count);
        FUZZ_CHECK(one.index >= 0 && one.index < prompts_count(p) + prompts_dropped(p));
        FUZZ_CHECK(!one.id || *one.id);
    }
}

static void ask(const struct tokenizer *t, const uint8_t *data, size_t bytes)
{
    int32_t *ids;
    size_t count;
    char *text = malloc(bytes + 1);
    FUZZ_CHECK(text);
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    FUZZ_CHECK(prompt_of_chat(t, bytes % 2 ? text : NULL, text, &ids, &count) == 0 && count > 5);
    free(ids);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct tokenizer t;
    if (!t.bpe)
        open_qwen2(&t);
    const char *path = fuzz_file("lines.jsonl", data, bytes);
    const struct prompts_options o = {.paths = &path,
                                      .path_count = 1,
                                      .longest = LONGEST,
                                      .teacher_longest = LONGEST,
                                      .vocab_size = t.vocab_size,
                                      .seed = 1};
    struct prompts *p;
    const int rc = prompts_open(&o, &t, &p);
    fuzz_verdict(rc == 0, fail_text());
    if (rc == 0)
        check_prompts(&t, p);
    prompts_close(p);
    ask(&t, data, bytes);
    return 0;
}
