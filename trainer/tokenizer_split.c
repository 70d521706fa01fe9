/* SPDX-License-Identifier: Apache-2.0
 *
 * tokenizer_split.c: text into words. The patterns of GPT-2, Llama 3 and Qwen2 are scanned by hand,
 * at the speed of the table of classes; any other goes to PCRE2.
 *
 * A byte that is not UTF-8 counts as a sign: neither letter, number nor space.
 */
#include "tokenizer_split.h"

#include "error.h"
#include "unicode.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#define CONTRACTIONS "'s|'t|'re|'ve|'m|'ll|'d"
#define WORDS_BEFORE "(?i:" CONTRACTIONS ")|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
#define WORDS_AFTER "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/* The patterns that are known by their text. */
static const struct {
    const char *pattern;
    struct split stage;
} known[] = {
    {CONTRACTIONS "| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
     {SPLIT_GPT2, 0, NULL}},
    {WORDS_BEFORE "\\p{N}{1,3}" WORDS_AFTER, {SPLIT_WORDS, 3, NULL}},
    {WORDS_BEFORE "\\p{N}" WORDS_AFTER, {SPLIT_WORDS, 1, NULL}},
};

/* ---- scanning ---- */

struct text {
    const unsigned char *at;
    size_t bytes;
};

enum { OTHER = 64 }; /* neither letter, number nor space */

/* Class of the code point at i and its length; 0 past the end. */
static inline unsigned class_at(const struct text *t, size_t i, size_t *length)
{
    uint32_t cp;
    *length = 0;
    if (i >= t->bytes)
        return 0;
    *length = utf8_next(t->at + i, t->bytes - i, &cp);
    const unsigned class = unicode_class[cp];
    return class & (UNICODE_LETTER | UNICODE_NUMBER | UNICODE_SPACE) ? class : class | OTHER;
}

/* End of the run of code points of a class, at most `most` of them. */
static inline size_t run_end(const struct text *t, size_t i, unsigned class, size_t most)
{
    size_t n;
    for (; most > 0 && (class_at(t, i, &n) & class); most--)
        i += n;
    return i;
}

/* Length of 's 't 're 've 'm 'll 'd at i, or 0. Without case, U+017F is an s, too. */
static size_t contraction(const struct text *t, size_t i, bool any_case)
{
    const unsigned char *s = t->at + i;
    const size_t left = t->bytes - i;
    if (left < 2 || s[0] != '\'')
        return 0;
    const unsigned char fold = any_case ? 0x20 : 0;
    const unsigned char a = s[1] | fold, b = left > 2 ? s[2] | fold : 0;
    if (a == 's' || a == 't' || a == 'm' || a == 'd')
        return 2;
    if (((a == 'r' || a == 'v') && b == 'e') || (a == 'l' && b == 'l'))
        return 3;
    return any_case && left > 2 && s[1] == 0xc5 && s[2] == 0xbf ? 3 : 0;
}

/* \s+(?!\S)|\s+: a run of spaces leaves its last one to what follows, if it has another. */
static size_t spaces_end(const struct text *t, size_t i)
{
    size_t n, last = i, end = i;
    while (class_at(t, end, &n) & UNICODE_SPACE) {
        last = end;
        end += n;
    }
    return end == t->bytes || last == i ? end : last;
}

static size_t gpt2_end(const struct text *t, size_t i)
{
    size_t n = contraction(t, i, false);
    if (n > 0)
        return i + n;
    const size_t start = i + (t->at[i] == ' ');
    const unsigned kind =
        class_at(t, start, &n) & (UNICODE_LETTER | UNICODE_NUMBER | (unsigned)OTHER);
    return kind ? run_end(t, start, kind, SIZE_MAX) : spaces_end(t, i);
}

/* \s*[\r\n]+: end after the last line break of the run of spaces at i; i if it has none. */
static size_t breaks_end(const struct text *t, size_t i)
{
    size_t n, end = i;
    unsigned class;
    for (; (class = class_at(t, i, &n)) & UNICODE_SPACE; i += n)
        if (class & UNICODE_NEWLINE)
            end = i + n;
    return end;
}

static size_t words_end(const struct text *t, size_t i, int digits)
{
    size_t n, second = contraction(t, i, true);
    if (second > 0)
        return i + second;
    const unsigned class = class_at(t, i, &n);
    if (class & UNICODE_LETTER)
        return run_end(t, i + n, UNICODE_LETTER, SIZE_MAX);
    if (class & UNICODE_NUMBER)
        return run_end(t, i, UNICODE_NUMBER, (size_t)digits);
    const unsigned next = class_at(t, i + n, &second);
    if (!(class & UNICODE_NEWLINE) && (next & UNICODE_LETTER))
        return run_end(t, i + n, UNICODE_LETTER, SIZE_MAX);
    if ((class & OTHER) || (t->at[i] == ' ' && (next & OTHER)))
        return run_end(t, run_end(t, i + n, OTHER, SIZE_MAX), UNICODE_NEWLINE, SIZE_MAX);
    const size_t end = breaks_end(t, i);
    return end > i ? end : spaces_end(t, i);
}

static size_t digits_end(const struct text *t, size_t i, int digits)
{
    size_t n;
    if (class_at(t, i, &n) & UNICODE_NUMBER)
        return run_end(t, i, UNICODE_NUMBER, digits ? (size_t)digits : SIZE_MAX);
    return run_end(t, i, UNICODE_LETTER | UNICODE_SPACE | OTHER, SIZE_MAX);
}

/* ---- other patterns ---- */

/* What stands between two matches is a piece of its own. */
static long pattern_end(const struct split *s, pcre2_match_data **match, const struct text *t,
                        size_t at)
{
    uint32_t cp;
    utf8_next(t->at, t->bytes, &cp);
    if (cp == NOT_UTF8) /* all of it, after VALID */
        return (long)t->bytes;
    if (!*match)
        *match = pcre2_match_data_create(1, NULL);
    if (!*match)
        return fail(NJ_E_NOMEM, "out of memory for a match");
    const uint32_t how = PCRE2_NOTEMPTY | PCRE2_NO_JIT | PCRE2_NO_UTF_CHECK;
    const int rc = pcre2_match(s->code, t->at, t->bytes, at, how, *match, NULL);
    if (rc >= 0) {
        const PCRE2_SIZE *place = pcre2_get_ovector_pointer(*match);
        return (long)(place[0] > at ? place[0] : place[1]);
    }
    if (rc == PCRE2_ERROR_NOMATCH)
        return (long)t->bytes;
    PCRE2_UCHAR why[128];
    pcre2_get_error_message(rc, why, sizeof why);
    return fail(NJ_E_UNSUPPORTED,
                "the pattern of tokenizer.json cannot be matched against the text: %s; make token "
                "files with another program",
                (const char *)why);
}

static size_t valid_end(const struct text *t, size_t i)
{
    uint32_t cp;
    size_t n = utf8_next(t->at + i, t->bytes - i, &cp);
    const bool valid = cp != NOT_UTF8;
    while ((i += n) < t->bytes) {
        n = utf8_next(t->at + i, t->bytes - i, &cp);
        if ((cp != NOT_UTF8) != valid)
            break;
    }
    return i;
}

/* \s is White_Space, which PCRE2's own is not quite. \w and \b differ, too, and have no such
 * remedy. */
static int rewrite(const char *pattern, size_t bytes, char *out, size_t *count)
{
    *count = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (pattern[i] != '\\' || i + 1 == bytes) {
            out[(*count)++] = pattern[i];
            continue;
        }
        const char c = pattern[++i];
        if (strchr("wWbB", c))
            return fail(NJ_E_UNSUPPORTED,
                        "pre_tokenizer's pattern has \\%c, which is not supported", c);
        const char *to = c == 's' ? "\\p{White_Space}" : c == 'S' ? "\\P{White_Space}" : NULL;
        const size_t n = to ? strlen(to) : 2;
        memcpy(out + *count, to ? to : pattern + i - 1, n);
        *count += n;
    }
    return NJ_OK;
}

static int compile(const char *pattern, size_t bytes, struct split *out)
{
    int code;
    PCRE2_SIZE where;
    size_t count;
    char *text = malloc(8 * bytes + 1);
    if (!text)
        return fail(NJ_E_NOMEM, "out of memory for a pattern");
    int rc = rewrite(pattern, bytes, text, &count);
    if (!rc) {
        *out = (struct split){.kind = SPLIT_PATTERN};
        out->code =
            pcre2_compile((PCRE2_SPTR)text, count, PCRE2_UTF | PCRE2_UCP, &code, &where, NULL);
    }
    if (!rc && !out->code) {
        PCRE2_UCHAR why[128];
        pcre2_get_error_message(code, why, sizeof why);
        rc = fail(NJ_E_UNSUPPORTED, "pre_tokenizer's pattern '%.*s' is not understood: %s",
                  bytes < 200 ? (int)bytes : 200, pattern, (const char *)why);
    }
    free(text);
    return rc;
}

/* ---- stages ---- */

int split_from_pattern(const char *pattern, size_t bytes, struct split *out)
{
    unicode_prepare();
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (bytes == strlen(known[i].pattern) && memcmp(pattern, known[i].pattern, bytes) == 0) {
            *out = known[i].stage;
            return NJ_OK;
        }
    return compile(pattern, bytes, out);
}

void split_free(struct split *s)
{
    pcre2_code_free(s->code);
    s->code = NULL;
}

void split_free_match(pcre2_match_data *match)
{
    pcre2_match_data_free(match);
}

long split_next(const struct split *s, pcre2_match_data **match, const char *text, size_t bytes,
                size_t at)
{
    const struct text t = {(const unsigned char *)text, bytes};
    switch (s->kind) {
    case SPLIT_GPT2:
        return (long)gpt2_end(&t, at);
    case SPLIT_WORDS:
        return (long)words_end(&t, at, s->digits);
    case SPLIT_DIGITS:
        return (long)digits_end(&t, at, s->digits);
    case SPLIT_VALID:
        return (long)valid_end(&t, at);
    default:
        return pattern_end(s, match, &t, at);
    }
}

bool split_ends_words(const struct split *s)
{
    return s->kind == SPLIT_GPT2 || s->kind == SPLIT_WORDS;
}

bool split_allows_cuts(const struct split *s)
{
    return split_ends_words(s) || s->kind == SPLIT_DIGITS;
}
