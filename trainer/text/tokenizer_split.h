/* SPDX-License-Identifier: Apache-2.0
 *
 * tokenizer_split.h: splits text into words, as the pre_tokenizer of a tokenizer.json says.
 */
#ifndef NOJIT_TRAINER_TOKENIZER_SPLIT_H
#define NOJIT_TRAINER_TOKENIZER_SPLIT_H

#include <stdbool.h>
#include <stddef.h>

/* Patterns that are recognized by their text, as the files spell them. */
#define SPLIT_CONTRACTIONS "'s|'t|'re|'ve|'m|'ll|'d"
#define SPLIT_WORDS_BEFORE "(?i:" SPLIT_CONTRACTIONS ")|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
#define SPLIT_WORDS_AFTER "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define SPLIT_LLAMA3 SPLIT_WORDS_BEFORE "\\p{N}{1,3}" SPLIT_WORDS_AFTER
#define SPLIT_QWEN2 SPLIT_WORDS_BEFORE "\\p{N}" SPLIT_WORDS_AFTER

struct re_pattern_buffer;
struct split_place; /* state of PATTERN in a text: one for each stage of a thread */

enum split_kind {
    SPLIT_GPT2,    /* the pattern of GPT-2 */
    SPLIT_WORDS,   /* the pattern of Llama 3 and Qwen2 */
    SPLIT_DIGITS,  /* numbers separate from the rest */
    SPLIT_VALID,   /* valid UTF-8 separate from invalid; stands before each PATTERN */
    SPLIT_PATTERN, /* any other pattern */
    SPLIT_PREFIX,  /* a space before a text that begins with none */
    SPLIT_SPACES,  /* a split before each run of spaces */
    SPLIT_SPACE,   /* a split before each space */
};

/* Use of the matches of a pattern and of the text between them; a match of an inverted split is
 * the text between matches, and the other way round. */
enum split_behavior {
    BEHAVIOR_ISOLATED,   /* each match is a piece of its own */
    BEHAVIOR_REMOVED,    /* matches are left out */
    BEHAVIOR_PREVIOUS,   /* a match joins the text before it */
    BEHAVIOR_NEXT,       /* a match joins the text after it */
    BEHAVIOR_CONTIGUOUS, /* matches without text between them are one piece */
};

struct split_rule {
    enum split_behavior behavior;
    bool invert;
};

struct split_budget {
    unsigned long retries;
    long looks;
};

struct split {
    enum split_kind kind;
    int digits; /* WORDS, DIGITS: maximum number of digits in a piece; 0: no limit */
    struct re_pattern_buffer *code;
    char *pattern;          /* PATTERN: the pattern as the file spells it */
    struct split_rule rule; /* PATTERN: use of its matches */
};

/* Make a split from a pattern as the file spells it. Return 0 or NJ_E_UNSUPPORTED. */
int split_from_pattern(const char *pattern, size_t bytes, struct split_rule rule,
                       struct split *out);
/* Make a split that matches a text literally. */
int split_from_text(const char *text, size_t bytes, struct split_rule rule, struct split *out);
void split_free(struct split *s);
/* Return whether s is the split that split_from_pattern() makes of the pattern, with matches
 * isolated. */
bool split_is(const struct split *s, const char *pattern);
/* Return the end of the piece that starts at `at` < bytes: 0 at first, then each end in turn;
 * negative: an error code. Not for PREFIX. *budget: how often PATTERN may still backtrack in a
 * text and inspect a character, split_budget() at its start. *place is NULL at first and freed
 * by split_free_place(). */
long split_next(const struct split *s, struct split_place **place, struct split_budget *budget,
                const char *text, size_t bytes, size_t at);
/* Return whether the piece that split_next() has just found is left out. */
bool split_removes(const struct split *s, const struct split_place *place);
struct split_budget split_budget(size_t bytes);
void split_free_place(struct split_place *place);
/* Return whether a piece ends wherever a space (words) or the end of a line (lines) follows an
 * ASCII letter, or at least does not depend on the text beyond such a position (cuts). */
bool split_ends_words(const struct split *s);
bool split_ends_lines(const struct split *s);
bool split_allows_cuts(const struct split *s);

#endif
