/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_chat.c: chat templates of a model's folder, and the parts of a conversation that the assistant says by them. Run
 * from the root of the tree.
 */
#include "batch/data.h"
#include "batch/tokenize.h"
#include "fuzz.h"
#include "golden_tokenizer.h"
#include "io/error.h"
#include "text/chat.h"

#include <string.h>
#include <unistd.h>

static const char line[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":"
                           "\"assistant\",\"content\":\"b\"},"
                           "{\"role\":\"user\",\"content\":\" c "
                           "\"},{\"role\":\"assistant\",\"content\":\"<think>d</think>e\"}]}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct tokenizer t;
    static const struct row_rules rules;
    static const struct split_choice split;
    struct tokenized done;
    if (!t.bpe) {
        open_qwen2(&t);
        fuzz_file("c.jsonl", line, strlen(line));
    }
    static char input[4096], output[4096];
    snprintf(input, sizeof input, "%s/c.jsonl", fuzz_folder());
    snprintf(output, sizeof output, "%s/c.bin", fuzz_folder());
    const char *path = input;
    unlink(output);
    fuzz_file("chat_template.jinja", data, bytes);
    const int rc = tokenize(&path, 1, &rules, &split, &t, output, &done);
    FUZZ_CHECK(rc != 0 || done.tokens > 0);
    fuzz_verdict(rc == 0, fail_text());
    unlink(output);
    return 0;
}
