/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_pre.c: see gguf_pre.h.
 */
#include "text/gguf_pre.h"

#include <stdio.h>
#include <string.h>

#define CASED "\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER_LAST "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}" CASED "*[\\p{Ll}" CASED "+"
#define UPPER_FIRST "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}" CASED "+[\\p{Ll}" CASED "*"
#define CONTRACTION "(?i:" SPLIT_CONTRACTIONS ")"
#define SIGNS "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define TEKKEN LOWER_LAST "|" UPPER_FIRST "|\\p{N}" SIGNS
#define O200K LOWER_LAST CONTRACTION "?|" UPPER_FIRST CONTRACTION "?|\\p{N}{1,3}" SIGNS
#define QWEN35                                                                                     \
    CONTRACTION                                                                                    \
    "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|"          \
    "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/* Han, Hiragana and Katakana, as DeepSeek-V3 has them, and what DeepSeek's older models have. */
#define KANA "[\xe4\xb8\x80-\xe9\xbe\xa5\xe3\x81\x80-\xe3\x82\x9f\xe3\x82\xa0-\xe3\x83\xbf]+"
#define HAN "[\xe4\xb8\x80-\xe9\xbe\xa5\xe0\xa0\x80-\xe4\xb8\x80\xea\xb0\x80-\xed\x9f\xbf]+"
#define DEEPSEEK3                                                                                  \
    "[!\"#$%&'()*+,\\-./"                                                                          \
    ":;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"                \
    " ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"

/* Letters with cases, of the Unicode of the time. */
#define DEEPSEEK_LETTERS                                                                           \
    "A-Za-z\\x{B5}\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{1BA}\\x{1BC}-\\x{1BF}"                 \
    "\\x{1C4}-\\x{293}\\x{295}-\\x{2AF}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37B}-\\x{37D}"         \
    "\\x{37F}\\x{386}\\x{388}-\\x{38A}\\x{38C}\\x{38E}-\\x{3A1}\\x{3A3}-\\x{3F5}"                  \
    "\\x{3F7}-\\x{481}\\x{48A}-\\x{52F}\\x{531}-\\x{556}\\x{10A0}-\\x{10C5}"                       \
    "\\x{13A0}-\\x{13F5}\\x{13F8}-\\x{13FD}\\x{1C90}-\\x{1CBA}\\x{1CBD}-\\x{1CBF}"                 \
    "\\x{1D00}-\\x{1D2B}\\x{1D6B}-\\x{1D77}\\x{1D79}-\\x{1D9A}\\x{1E00}-\\x{1F15}"                 \
    "\\x{1F18}-\\x{1F1D}\\x{1F20}-\\x{1F45}\\x{1F48}-\\x{1F4D}\\x{1F50}-\\x{1F57}"                 \
    "\\x{1F59}\\x{1F5B}\\x{1F5D}\\x{1F5F}-\\x{1F7D}\\x{1F80}-\\x{1FB4}\\x{1FB6}-\\x{1FBC}"         \
    "\\x{1FBE}\\x{1FC2}-\\x{1FC4}\\x{1FC6}-\\x{1FCC}\\x{1FD0}-\\x{1FD3}"                           \
    "\\x{1FD6}-\\x{1FDB}\\x{1FE0}-\\x{1FEC}\\x{1FF2}-\\x{1FF4}\\x{1FF6}-\\x{1FFC}"                 \
    "\\x{2102}\\x{2107}\\x{210A}-\\x{2113}\\x{2115}\\x{2119}-\\x{211D}\\x{2124}\\x{2126}"          \
    "\\x{2128}\\x{212A}-\\x{212D}\\x{212F}-\\x{2134}\\x{2139}\\x{213C}-\\x{213F}"                  \
    "\\x{2145}-\\x{2149}\\x{214E}\\x{2183}\\x{2184}\\x{2C00}-\\x{2C7B}\\x{2C7E}-\\x{2CE4}"         \
    "\\x{2CEB}-\\x{2CEE}\\x{2CF2}\\x{2CF3}\\x{A640}-\\x{A66D}\\x{A680}-\\x{A69B}"                  \
    "\\x{A722}-\\x{A76F}\\x{A771}-\\x{A787}\\x{A78B}-\\x{A78E}\\x{AB70}-\\x{ABBF}"                 \
    "\\x{FB00}-\\x{FB06}\\x{FB13}-\\x{FB17}\\x{FF21}-\\x{FF3A}\\x{FF41}-\\x{FF5A}"                 \
    "\\x{10400}-\\x{1044F}\\x{104B0}-\\x{104D3}\\x{104D8}-\\x{104FB}\\x{10C80}-\\x{10CB2}"         \
    "\\x{10CC0}-\\x{10CF2}\\x{118A0}-\\x{118DF}\\x{1E900}-\\x{1E943}"
#define DEEPSEEK_SIGNS                                                                             \
    "!-/:-~\\x{FF01}-\\x{FF0F}\\x{FF1A}-\\x{FF5E}\\x{2018}-\\x{201F}\\x{3000}-\\x{3002}"

static const struct gguf_pre rows[] = {
    {.name = {"qwen2", "deepseek-r1-qwen", "megrez", "kormo", "f2llmv2", "hunyuan"},
     .pattern = {SPLIT_QWEN2},
     .nfc = true},
    {.name = {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0",
              "lfm2"},
     .pattern = {SPLIT_LLAMA3},
     .ignore_merges = true,
     .begins = true},
    {.name = {"smaug-bpe", "dbrx", "glm4", "chatglm-bpe"}, .pattern = {SPLIT_LLAMA3}},
    {.name = {"smollm", "starcoder", "refact", "codeshell", "minerva-7b", "mellum2", "exaone"},
     .digits = true},
    {.name = {"gpt-2", "phi-2", "gigachat", "a.x-4.0", "mellum", "exaone4", "trillion",
              "granite-docling"}},
    {.name = {"tekken"}, .pattern = {TEKKEN}, .ignore_merges = true, .begins = true},
    {.name = {"qwen35"}, .pattern = {QWEN35}, .nfc = true},
    {.name = {"gpt-4o", "llama4", "kanana2", "minimax-m2"}, .pattern = {O200K}},
    {.name = {"olmo"}, .nfc = true},
    {.name = {"deepseek-v3", "hunyuan-dense", "joyai-llm"},
     .pattern = {"\\p{N}{1,3}", KANA, DEEPSEEK3}},
    {.name = {"deepseek-coder"},
     .pattern = {"[\r\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", HAN, "\\p{N}"}},
    {.name = {"deepseek-llm"},
     .pattern = {"[\r\n]", "\\s?[" DEEPSEEK_LETTERS "]+", "\\s?[" DEEPSEEK_SIGNS "]+", "\\s+$", HAN,
                 "\\p{N}+"}},
    {.name = {"minicpm5"},
     .pattern = {"\\p{N}{1,3}", SPLIT_WORDS_BEFORE "\\p{N}+" SPLIT_WORDS_AFTER},
     .ignore_merges = true},
    {.name = {"superbpe"}, .pattern = {"\\p{N}+", "(?=(\\d{3})+(?!\\d))"}},
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

/* Return whether the stages of b from `at` on are the patterns of an entry. */
static bool has_patterns(const struct gguf_pre *pre, const struct bpe *b, int at)
{
    int patterns = 0;
    if (at < b->stages && b->stage[at].kind == SPLIT_VALID)
        at++;
    for (; patterns < PRE_PATTERNS_MOST && pre->pattern[patterns]; patterns++, at++)
        if (at >= b->stages || !split_is(&b->stage[at], pre->pattern[patterns]))
            return false;
    return patterns > 0 ? at == b->stages : at + 1 == b->stages && b->stage[at].kind == SPLIT_GPT2;
}

static bool cuts_like(const struct gguf_pre *pre, const struct bpe *b)
{
    const bool digits =
        b->stages > 0 && b->stage[0].kind == SPLIT_DIGITS && b->stage[0].digits == 1;
    return pre->digits == digits && b->form != UNICODE_NFKC &&
           pre->ignore_merges == b->ignore_merges && has_patterns(pre, b, digits);
}

const struct gguf_pre *gguf_pre_of(const struct bpe *b)
{
    const struct gguf_pre *found = NULL;
    for (size_t i = 0; i < ROWS; i++)
        if (cuts_like(&rows[i], b) && (!found || rows[i].nfc == (b->form == UNICODE_NFC)))
            found = &rows[i];
    return found;
}
