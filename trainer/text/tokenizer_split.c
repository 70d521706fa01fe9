/* SPDX-License-Identifier: Apache-2.0
 *
 * tokenizer_split.c: splits text into words. The patterns of GPT-2, Llama 3 and Qwen2 are
 * scanned by hand, at the speed of the table of classes; any other is compiled by Oniguruma,
 * whose dialect is that of the `tokenizers` library, which also uses it.
 *
 * A byte that is not UTF-8 counts as a symbol: neither letter, number nor space.
 */
#include "text/tokenizer_split.h"

#include "io/error.h"
#include "text/unicode.h"

#include <limits.h>
#include <oniguruma.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    PATTERN_BYTES_MOST = 1 << 14,
    STACK_MOST = 1 << 24,       /* stack entries: half a gigabyte */
    RETRIES_FIRST = 512,        /* retries of a match before they are counted */
    RETRIES_BASE = 1 << 18,     /* retries for a text, however short */
    RETRIES_PER_BYTE = 1 << 11, /* more retries per byte, so that time is linear in the text */
    LOOKS_BASE = 1 << 20,       /* inspections of a character, for a text, however short */
    LOOKS_PER_BYTE = 1 << 12
};

/* Characters that have a meaning in a pattern. */
#define SPECIAL "\\.*?+^$|()[]{}"

/* Patterns that are recognized by their text. */
static const struct {
    const char *pattern;
    struct split stage;
} known[] = {
    {SPLIT_CONTRACTIONS "| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
     {.kind = SPLIT_GPT2}},
    {SPLIT_LLAMA3, {.kind = SPLIT_WORDS, .digits = 3}},
    {SPLIT_QWEN2, {.kind = SPLIT_WORDS, .digits = 1}},
};

/* ---- scanning ---- */

struct text {
    const unsigned char *at;
    size_t bytes;
};

enum { OTHER = 256 }; /* neither letter, number nor space */

/* Return the class of the code point at i and its length; 0 past the end. */
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

/* Return the end of the run of code points of a class, at most `most` of them. */
static inline size_t run_end(const struct text *t, size_t i, unsigned class, size_t most)
{
    size_t n;
    for (; most > 0 && (class_at(t, i, &n) & class); most--)
        i += n;
    return i;
}

/* Return the length of 's 't 're 've 'm 'll 'd at i, or 0. Ignoring case, U+017F is an s, too. */
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

/* Match \s+(?!\S)|\s+: a run of spaces leaves its last one to the next piece, if it has another. */
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

/* Match \s*[\r\n]+: return the position after the last line break of the run of spaces at i, or
 * i if it has none. */
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

/* Match, or text between two matches; a match may be empty. */
struct part {
    long start, end;
    bool match; /* whether it counts as a match, after inversion */
};

struct split_place {
    OnigRegion *region;
    OnigMatchParam *limits;
    long from;        /* position at which the next search starts */
    long last;        /* end of the last match; -1: none yet */
    struct part next; /* match that has not been passed yet */
    bool found;       /* whether `next` is one */
    bool over;        /* whether there is no further match */
    struct part part; /* part that follows the piece found last */
    bool ahead;       /* whether `part` is one */
    bool removed;     /* whether the piece found last is left out */
};

void split_free_place(struct split_place *p)
{
    if (!p)
        return;
    if (p->region)
        onig_region_free(p->region, 1);
    if (p->limits)
        onig_free_match_param(p->limits);
    free(p);
}

static struct split_place *make_place(void)
{
    struct split_place *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->region = onig_region_new();
    p->limits = onig_new_match_param();
    if (!p->region || !p->limits) {
        split_free_place(p);
        return NULL;
    }
    onig_initialize_match_param(p->limits);
    onig_set_match_stack_limit_size_of_match_param(p->limits, STACK_MOST);
    onig_set_retry_limit_in_match_of_match_param(p->limits, UINT32_MAX);
    return p;
}

static int match_error(int code)
{
    if (code == ONIGERR_MEMORY)
        return fail(NJ_E_NOMEM, "out of memory for a match");
    UChar why[ONIG_MAX_ERROR_MESSAGE_LEN];
    onig_error_code_to_str(why, code);
    return fail(NJ_E_UNSUPPORTED,
                "the pattern of tokenizer.json cannot be matched against the text: %s; make token "
                "files with another program",
                (const char *)why);
}

struct split_budget split_budget(size_t bytes)
{
    return (struct split_budget){RETRIES_BASE + RETRIES_PER_BYTE * bytes,
                                 (long)(LOOKS_BASE + LOOKS_PER_BYTE * bytes)};
}

/* Number of characters that the matcher of this thread may still inspect; it counts down
 * (Makefile). */
extern _Thread_local long onig_looks_left;
_Thread_local long onig_looks_left;

/* Return the start of the next match, ONIG_MISMATCH or an error. The library does not report how
 * many retries it took, so a search gets few at first and then four times as many, which are
 * charged to the budget. */
static int search(const struct split *s, struct split_place *p, struct split_budget *budget,
                  const struct text *t)
{
    const UChar *end = t->at + t->bytes;
    for (unsigned long limit = RETRIES_FIRST;; limit *= 4) {
        const bool last = limit > budget->retries && limit > RETRIES_FIRST;
        const unsigned long most = last ? budget->retries + 1 : limit;
        onig_set_retry_limit_in_search_of_match_param(p->limits, most);
        onig_looks_left = budget->looks;
        const int rc = onig_search_with_param(s->code, t->at, end, t->at + p->from, end, p->region,
                                              ONIG_OPTION_NONE, p->limits);
        budget->looks = onig_looks_left;
        if (budget->looks <= 0)
            return ONIGERR_RETRY_LIMIT_IN_SEARCH_OVER;
        if (limit > RETRIES_FIRST)
            budget->retries -= last ? budget->retries : limit;
        if (rc != ONIGERR_RETRY_LIMIT_IN_SEARCH_OVER || last)
            return rc;
    }
}

/* Find the next match. As in the `tokenizers` library, an empty match counts unless it is at the
 * end of the match before. */
static int find(const struct split *s, struct split_place *p, struct split_budget *budget,
                const struct text *t)
{
    while (p->from <= (long)t->bytes) {
        const int rc = search(s, p, budget, t);
        if (rc == ONIG_MISMATCH)
            break;
        if (rc < 0)
            return match_error(rc);
        const long start = p->region->beg[0], end = p->region->end[0];
        if (start != end || end != p->last) {
            p->next = (struct part){start, end, !s->rule.invert};
            p->from = p->last = end;
            p->found = true;
            return 0;
        }
        uint32_t cp;
        const size_t left = t->bytes - (size_t)p->from;
        p->from += left ? (long)utf8_next(t->at + p->from, left, &cp) : 1;
    }
    p->over = true;
    return 0;
}

/* Find the part that starts at `at`, unless it has been found already; false in p->ahead: there is
 * none. */
static int find_part(const struct split *s, struct split_place *p, struct split_budget *budget,
                     const struct text *t, long at)
{
    if (p->ahead)
        return 0;
    if (!p->found && !p->over)
        TRY(find(s, p, budget, t));
    const bool gap = p->found ? p->next.start > at : at < (long)t->bytes;
    p->ahead = gap || p->found;
    p->part = gap ? (struct part){at, p->found ? p->next.start : (long)t->bytes, s->rule.invert}
                  : p->next;
    p->found = p->found && gap;
    return 0;
}

/* Return whether a part belongs to the piece whose last part is given. */
static bool joins(const struct split *s, const struct part *last, const struct part *part)
{
    switch (s->rule.behavior) {
    case BEHAVIOR_PREVIOUS:
        return part->match && !last->match;
    case BEHAVIOR_NEXT:
        return last->match && !part->match;
    case BEHAVIOR_CONTIGUOUS:
        return last->match == part->match;
    default:
        return false;
    }
}

/* Return the end of a piece, of a text that is UTF-8; pieces without text are passed. */
static long piece_end(const struct split *s, struct split_place *p, struct split_budget *budget,
                      const struct text *t, long at)
{
    for (long end = at; end == at && at < (long)t->bytes;) {
        TRY(find_part(s, p, budget, t, at));
        struct part last;
        do {
            last = p->part;
            end = last.end;
            p->ahead = false;
            TRY(find_part(s, p, budget, t, end));
        } while (p->ahead && joins(s, &last, &p->part));
        p->removed = last.match && s->rule.behavior == BEHAVIOR_REMOVED;
        if (end > at)
            return end;
    }
    return (long)t->bytes;
}

static long pattern_end(const struct split *s, struct split_place **place,
                        struct split_budget *budget, const struct text *t, size_t at)
{
    uint32_t cp;
    if (!*place)
        *place = make_place();
    struct split_place *p = *place;
    if (!p)
        return fail(NJ_E_NOMEM, "out of memory for a match");
    p->removed = false;
    utf8_next(t->at, t->bytes, &cp);
    if (cp == NOT_UTF8) /* the whole piece is invalid, after VALID */
        return (long)t->bytes;
    if (t->bytes > INT_MAX)
        return fail(NJ_E_UNSUPPORTED,
                    "a text of %zu bytes is too long for the pattern of "
                    "tokenizer.json; split it",
                    t->bytes);
    if (at == 0) {
        p->from = 0;
        p->last = -1;
        p->found = p->over = p->ahead = false;
    }
    return piece_end(s, p, budget, t, (long)at);
}

bool split_removes(const struct split *s, const struct split_place *place)
{
    return s->kind == SPLIT_PATTERN && place && place->removed;
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

/* Return the replacement of the bracket class `name`, and the length of the name: in the
 * library's version, punctuation includes symbols. */
static const char *punctuation(const char *name, size_t left, size_t *length)
{
    static const char *const names[][2] = {{"[:punct:]", "\\p{P}\\p{S}"},
                                           {"[:^punct:]", "[^\\p{P}\\p{S}]"}};
    for (size_t i = 0; i < 2; i++) {
        *length = strlen(names[i][0]);
        if (*length <= left && memcmp(name, names[i][0], *length) == 0)
            return names[i][1];
    }
    return NULL;
}

/* Copy the pattern as the library's version of Oniguruma reads it; NULL if memory runs out. */
static char *library_pattern(const char *pattern, size_t bytes, size_t *count)
{
    char *out = malloc(2 * bytes + 1); /* the replacement of a class is less than twice as long */
    long depth = 0;                    /* nesting of brackets */
    *count = 0;
    for (size_t i = 0, n; out && i < bytes; i += n) {
        const char *to = pattern + i;
        size_t more = n = pattern[i] == '\\' && i + 1 < bytes ? 2 : 1;
        const char *class = depth > 0 ? punctuation(to, bytes - i, &n) : NULL;
        if (class) {
            to = class;
            more = strlen(class);
        } else {
            n = more;
            depth += pattern[i] == '[' ? 1 : pattern[i] == ']' && depth > 0 ? -1 : 0;
        }
        memcpy(out + *count, to, more);
        *count += more;
    }
    return out;
}

static void initialize(void)
{
    OnigEncoding utf8 = ONIG_ENCODING_UTF8;
    onig_initialize(&utf8, 1);
}

/* Compile a pattern under a lock: compiling writes tables that all patterns share. */
static int compile(const char *pattern, size_t bytes, struct split *out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    OnigErrorInfo info;
    size_t count;
    if (bytes > PATTERN_BYTES_MOST)
        return fail(NJ_E_UNSUPPORTED,
                    "pre_tokenizer's pattern has %zu bytes; at most %d are supported", bytes,
                    PATTERN_BYTES_MOST);
    char *copy = library_pattern(pattern, bytes, &count);
    if (!copy)
        return fail(NJ_E_NOMEM, "out of memory for a pattern");
    const UChar *text = (const UChar *)copy;
    *out = (struct split){.kind = SPLIT_PATTERN};
    pthread_once(&once, initialize);
    pthread_mutex_lock(&lock);
    const int code = onig_new(&out->code, text, text + count, ONIG_OPTION_NONE, ONIG_ENCODING_UTF8,
                              ONIG_SYNTAX_DEFAULT, &info);
    pthread_mutex_unlock(&lock);
    UChar why[ONIG_MAX_ERROR_MESSAGE_LEN];
    if (code == ONIG_NORMAL)
        out->pattern = strndup(pattern, bytes);
    else
        onig_error_code_to_str(why, code, &info); /* the message may quote the copy */
    free(copy);
    if (out->pattern)
        return 0;
    out->code = code == ONIG_NORMAL ? out->code : NULL;
    split_free(out);
    if (code == ONIG_NORMAL || code == ONIGERR_MEMORY)
        return fail(NJ_E_NOMEM, "out of memory for a pattern");
    return fail(NJ_E_UNSUPPORTED, "pre_tokenizer's pattern '%.*s' is not understood: %s",
                bytes < 200 ? (int)bytes : 200, pattern, (const char *)why);
}

/* ---- stages ---- */

static const struct split *find_known(const char *pattern, size_t bytes)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (bytes == strlen(known[i].pattern) && memcmp(pattern, known[i].pattern, bytes) == 0)
            return &known[i].stage;
    return NULL;
}

int split_from_pattern(const char *pattern, size_t bytes, struct split_rule rule, struct split *out)
{
    /* The known patterns match all of a text, so that nothing lies between their matches. */
    const bool each =
        rule.behavior == BEHAVIOR_ISOLATED || (rule.behavior == BEHAVIOR_REMOVED && rule.invert);
    const struct split *stage = each ? find_known(pattern, bytes) : NULL;
    unicode_prepare();
    if (stage) {
        *out = *stage;
        return 0;
    }
    const int rc = compile(pattern, bytes, out);
    out->rule = rule;
    return rc;
}

int split_from_text(const char *text, size_t bytes, struct split_rule rule, struct split *out)
{
    char *pattern = malloc(2 * bytes + 1);
    size_t n = 0;
    if (!pattern)
        return fail(NJ_E_NOMEM, "out of memory for a pattern");
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] > 0 && strchr(SPECIAL, text[i]))
            pattern[n++] = '\\';
        pattern[n++] = text[i];
    }
    const int rc = split_from_pattern(pattern, n, rule, out);
    free(pattern);
    return rc;
}

void split_free(struct split *s)
{
    if (s->code)
        onig_free(s->code);
    free(s->pattern);
    s->code = NULL;
    s->pattern = NULL;
}

bool split_is(const struct split *s, const char *pattern)
{
    const struct split *stage = find_known(pattern, strlen(pattern));
    if (stage)
        return s->kind == stage->kind && s->digits == stage->digits;
    return s->kind == SPLIT_PATTERN && s->rule.behavior == BEHAVIOR_ISOLATED &&
           strcmp(s->pattern, pattern) == 0;
}

/* Return the next space that begins a piece: one behind another character or, if `each`, any. */
static size_t space_next(const struct text *t, size_t i, bool each)
{
    for (i++; i < t->bytes; i++)
        if (t->at[i] == ' ' && (each || t->at[i - 1] != ' '))
            break;
    return i;
}

long split_next(const struct split *s, struct split_place **place, struct split_budget *budget,
                const char *text, size_t bytes, size_t at)
{
    const struct text t = {(const unsigned char *)text, bytes};
    switch (s->kind) {
    case SPLIT_GPT2:
        return (long)gpt2_end(&t, at);
    case SPLIT_WORDS:
        return (long)words_end(&t, at, s->digits);
    case SPLIT_DIGITS:
        return (long)digits_end(&t, at, s->digits);
    case SPLIT_SPACES:
        return (long)space_next(&t, at, false);
    case SPLIT_SPACE:
        return (long)space_next(&t, at, true);
    case SPLIT_VALID:
        return (long)valid_end(&t, at);
    default:
        return pattern_end(s, place, budget, &t, at);
    }
}

bool split_ends_words(const struct split *s)
{
    return s->kind == SPLIT_GPT2 || s->kind == SPLIT_WORDS || s->kind == SPLIT_SPACES ||
           s->kind == SPLIT_SPACE;
}

bool split_ends_lines(const struct split *s)
{
    return s->kind == SPLIT_GPT2 || s->kind == SPLIT_WORDS;
}

bool split_allows_cuts(const struct split *s)
{
    return split_ends_words(s) || s->kind == SPLIT_DIGITS;
}
