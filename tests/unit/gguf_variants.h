/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_variants.h: golden tokenizers, edited, for the pre-tokenizers of GGUF files.
 */
#ifndef NOJIT_TESTS_GGUF_VARIANTS_H
#define NOJIT_TESTS_GGUF_VARIANTS_H

#include <stddef.h>

#define BYTE_LEVEL                                                                                 \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":true}"
#define DIGITS                                                                                     \
    "{\"type\":\"Sequence\",\"pretokenizers\":["                                                   \
    "{\"type\":\"Digits\",\"individual_digits\":true}," BYTE_LEVEL "]}"
#define THREE_DIGITS                                                                               \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1,3}|"          \
    " ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|"
#define TEKKEN                                                                                     \
    "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?"                                                               \
    "[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]*[\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]+|"       \
    "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?"                                                               \
    "[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]+[\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]*|"       \
    "\\\\p{N}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n/]*|"

#define SPLIT(pattern)                                                                             \
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" pattern "\"},\"behavior\":\"Isolated\","       \
    "\"invert\":false}"
#define SEQUENCE(splits)                                                                           \
    "{\"type\":\"Sequence\",\"pretokenizers\":[" splits ",{\"type\":\"ByteLevel\","                \
    "\"add_prefix_space\":false,\"use_regex\":false}]}"

/* A golden tokenizer for rows of the table, edited where there is none. */
static const struct variant {
    const char *pre, *golden, *from, *to;
} variants[] = {
    {"qwen2", "qwen2", NULL, NULL},
    {"llama-bpe", "llama3", NULL, NULL},
    {"smaug-bpe", "llama3", "\"ignore_merges\":true", "\"ignore_merges\":false"},
    {"smollm", "gpt2", BYTE_LEVEL, DIGITS},
    {"gpt-2", "gpt2", NULL, NULL},
    {"tekken", "llama3", THREE_DIGITS, TEKKEN},
    {"olmo", "gpt2", "\"normalizer\":null", "\"normalizer\":{\"type\":\"NFC\"}"},
    {"superbpe", "gpt2", BYTE_LEVEL,
     SEQUENCE(SPLIT("\\\\p{N}+") "," SPLIT("(?=(\\\\d{3})+(?!\\\\d))"))},
    {"deepseek-coder", "gpt2", BYTE_LEVEL,
     SEQUENCE(SPLIT("[\\r\\n]") "," SPLIT("\\\\s?\\\\p{L}+") "," SPLIT("\\\\s?\\\\p{P}+") "," SPLIT(
         "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+") "," SPLIT("\\\\p{N}"))},
    {"", "gemma", NULL, NULL}, /* the model gemma4 has no name of a pre-tokenizer */
    {"gpt-2", "gpt2", "\"\xc4\x84\"", "\"\xc4\x80\xc4\x80\""}, /* byte 4 has no token */
};
enum { VARIANTS = sizeof variants / sizeof *variants };

#endif
