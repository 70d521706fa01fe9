/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_pre.c: see gguf_pre.h.
 */
#include "text/gguf_pre.h"

#include <stdio.h>
#include <string.h>

#define CASED "\\p{Lm}\\p{Lo}\\p{M}]"
#define TEKKEN                                                                                     \
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}" CASED "*[\\p{Ll}" CASED "+|"                           \
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}" CASED "+[\\p{Ll}" CASED "*|"                           \
    "\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static const struct gguf_pre rows[] = {
    {.name = {"qwen2", "deepseek-r1-qwen", "megrez", "kormo", "f2llmv2"},
     .pattern = SPLIT_QWEN2,
     .nfc = true},
    {.name = {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0",
              "lfm2"},
     .pattern = SPLIT_LLAMA3,
     .ignore_merges = true,
     .begins = true},
    {.name = {"smaug-bpe"}, .pattern = SPLIT_LLAMA3},
    {.name = {"smollm", "starcoder", "refact", "codeshell", "minerva-7b", "mellum2"},
     .digits = true},
    {.name = {"gpt-2", "phi-2", "gigachat", "a.x-4.0", "mellum", "exaone4", "trillion"}},
    {.name = {"tekken"}, .pattern = TEKKEN, .ignore_merges = true, .begins = true},
};
enum { ROWS = sizeof rows / sizeof *rows };

const struct gguf_pre *gguf_pre_find(struct gguf_text name)
{
    for (size_t i = 0; i < ROWS; i++)
        for (size_t k = 0; k < PRE_NAMES_MOST && rows[i].name[k]; k++)
            if (strlen(rows[i].name[k]) == name.bytes &&
                memcmp(rows[i].name[k], name.text, name.bytes) == 0)
                return &rows[i];
    return NULL;
}

const char *gguf_pre_names(char *out, size_t bytes)
{
    size_t used = 0;
    for (size_t i = 0; i < ROWS && used < bytes; i++)
        used +=
            (size_t)snprintf(out + used, bytes - used, "%s%s", used ? ", " : "", rows[i].name[0]);
    return out;
}

static bool cuts_like(const struct gguf_pre *pre, const struct bpe *b)
{
    int at = 0;
    if (pre->digits && at < b->stages && b->stage[at].kind == SPLIT_DIGITS &&
        b->stage[at].digits == 1)
        at++;
    else if (pre->digits)
        return false;
    if (at < b->stages && b->stage[at].kind == SPLIT_VALID)
        at++;
    if (b->form == UNICODE_NFKC || at + 1 != b->stages || pre->ignore_merges != b->ignore_merges)
        return false;
    return pre->pattern ? split_is(&b->stage[at], pre->pattern) : b->stage[at].kind == SPLIT_GPT2;
}

const struct gguf_pre *gguf_pre_of(const struct bpe *b)
{
    const struct gguf_pre *found = NULL;
    for (size_t i = 0; i < ROWS; i++)
        if (cuts_like(&rows[i], b) && (!found || rows[i].nfc == (b->form == UNICODE_NFC)))
            found = &rows[i];
    return found;
}
