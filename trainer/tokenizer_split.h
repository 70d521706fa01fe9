/* SPDX-License-Identifier: Apache-2.0
 *
 * tokenizer_split.h: text into words, as the pre_tokenizer of a tokenizer.json says.
 */
#ifndef NOJIT_TRAINER_TOKENIZER_SPLIT_H
#define NOJIT_TRAINER_TOKENIZER_SPLIT_H

#include <stdbool.h>
#include <stddef.h>

struct pcre2_real_code_8;
struct pcre2_real_match_data_8;

enum split_kind {
    SPLIT_GPT2,    /* the pattern of GPT-2 */
    SPLIT_WORDS,   /* the pattern of Llama 3 and Qwen2 */
    SPLIT_DIGITS,  /* numbers apart from the rest */
    SPLIT_VALID,   /* what is UTF-8 apart from what is not: stands before each PATTERN */
    SPLIT_PATTERN, /* any other pattern */
    SPLIT_PREFIX,  /* a space before what has none */
};

struct split {
    enum split_kind kind;
    int digits; /* WORDS, DIGITS: most of them in a piece; 0: no limit */
    struct pcre2_real_code_8 *code;
};

/* A pattern as the file spells it. Returns 0 or NJ_E_UNSUPPORTED. */
int split_from_pattern(const char *pattern, size_t bytes, struct split *out);
void split_free(struct split *s);
/* End of the piece that starts at `at` < bytes; negative: an error code. Not for PREFIX. *match is
 * the room that PATTERN works in, NULL at first, freed by split_free_match(). */
long split_next(const struct split *s, struct pcre2_real_match_data_8 **match, const char *text,
                size_t bytes, size_t at);
void split_free_match(struct pcre2_real_match_data_8 *match);
/* Whether a piece ends wherever a space follows an ASCII letter (words), or at least does not depend
 * on what stands beyond such a place (cuts). */
bool split_ends_words(const struct split *s);
bool split_allows_cuts(const struct split *s);

#endif
