/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_chat.c: chat templates, and what an assistant says with think blocks in it. Run from the root
 * of the tree.
 */
#include "fuzz.h"
#include "golden_tokenizer.h"
#include "io/error.h"
#include "text/chat.h"

#include <string.h>

static void split(const uint8_t *data, size_t bytes)
{
    const char *text = (const char *)data;
    struct chat_text content = {text, bytes}, thought;
    chat_split(&content, &thought);
    FUZZ_CHECK(content.text >= text && content.text + content.bytes == text + bytes);
    FUZZ_CHECK(thought.text >= text && thought.text + thought.bytes <= text + bytes);
    FUZZ_CHECK(thought.bytes == 0 || thought.text + thought.bytes < content.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct tokenizer t;
    struct chat chat;
    if (!t.bpe)
        open_qwen2(&t);
    fuzz_file("chat_template.jinja", data, bytes);
    const int rc = chat_find(fuzz_folder(), &t, &chat);
    fuzz_verdict(rc == 0, fail_text());
    if (rc == 0) { /* what is no UTF-8 becomes U+FFFD, three bytes for one */
        FUZZ_CHECK(chat.format && chat.opening && chat.before_answer);
        FUZZ_CHECK(!chat.system || strlen(chat.system) < 3 * bytes);
    }
    chat_free(&chat);
    split(data, bytes);
    return 0;
}
