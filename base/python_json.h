/* SPDX-License-Identifier: Apache-2.0
 *
 * python_json.h: JSON as Python's json module reads and writes it, for the trainer and blobcheck. Its integers may have
 * any size, and Infinity, -Infinity and NaN are allowed; Jansson supports neither.
 */
#ifndef NOJIT_PYTHON_JSON_H
#define NOJIT_PYTHON_JSON_H

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Jansson cannot hold these three, so they become strings that begin with U+FDD0, a code point that no text
 * contains. */
#define PYTHON_JSON_MARK "\xef\xb7\x90"
static const char *const python_json_words[] = {"-Infinity", "Infinity", "NaN"};
enum { PYTHON_JSON_WORDS = 3, PYTHON_JSON_MORE = 16 /* bytes that a replacement adds at most */ };

/* A number or word in a text, at offset `at`, that Jansson would refuse. */
struct python_number {
    size_t at, bytes;
    /* the word it becomes; NULL: an integer beyond 64 bits, which becomes a float */
    const char *word;
};

/* Return the length of the word at s, with its number in *which; 0 if there is none. */
static inline size_t python_json_word(const char *s, size_t left, int *which)
{
    for (int i = 0; i < PYTHON_JSON_WORDS && strchr("-IN", *s); i++) {
        const size_t n = strlen(python_json_words[i]);
        *which = i;
        if (n <= left && memcmp(s, python_json_words[i], n) == 0)
            return n;
    }
    return 0;
}

/* Return the length of the string at s, quotes included. */
static inline size_t python_json_string(const char *s, size_t left)
{
    size_t n = 1;
    while (n < left && s[n] != '"')
        n += s[n] == '\\' ? 2 : 1;
    return n < left ? n + 1 : left;
}

/* Return whether the number of n->bytes at s must be replaced: false if Jansson reads it correctly. */
static inline bool python_json_judge(const char *s, struct python_number *n)
{
    enum { SAFE = 18, DIGITS = 400 };
    char text[DIGITS + 1];
    if (n->bytes <= SAFE && !memchr(s, 'e', n->bytes) && !memchr(s, 'E', n->bytes))
        return false;
    const size_t shown = n->bytes < DIGITS ? n->bytes : DIGITS;
    memcpy(text, s, shown);
    text[shown] = '\0';
    const bool whole = strspn(text, "-0123456789") == shown;
    if (shown < n->bytes && !whole)
        return false;
    n->word = isinf(strtod(text, NULL)) ? python_json_words[text[0] != '-'] : NULL;
    errno = 0;
    (void)strtoll(text, NULL, 10);
    return n->word || (whole && errno == ERANGE);
}

/* Find the next number at or after n->at that must be replaced. */
static inline bool python_json_next(const char *s, size_t bytes, struct python_number *n)
{
    int which;
    for (size_t more = 0; n->at < bytes; n->at += more) {
        const char *here = s + n->at;
        const size_t left = bytes - n->at;
        if (*here == '"') {
            more = python_json_string(here, left);
        } else if ((more = python_json_word(here, left, &which)) > 0) {
            n->bytes = more;
            n->word = python_json_words[which];
            return true;
        } else if ((*here >= '0' && *here <= '9') || *here == '-') {
            for (more = 1; more < left && here[more] && strchr("0123456789+-.eE", here[more]);)
                more++;
            n->bytes = more;
            if (python_json_judge(here, n))
                return true;
        } else {
            more = 1;
        }
    }
    return false;
}

/* Copy a text with its numbers replaced; the caller frees it. Return NULL with *count 0 if Jansson can read the text
 * unchanged, and NULL with *count 1 if memory ran out. */
static inline char *python_json_copy(const char *s, size_t bytes, size_t *count)
{
    size_t words = 0, done = 0, used = 0;
    struct python_number n = {0};
    for (; python_json_next(s, bytes, &n); n.at += n.bytes)
        words++;
    *count = words > 0;
    char *out = words > 0 ? malloc(bytes + words * PYTHON_JSON_MORE + 1) : NULL;
    if (!out)
        return NULL;
    for (n.at = 0; python_json_next(s, bytes, &n); n.at = done) {
        memcpy(out + used, s + done, n.at - done);
        used += n.at - done;
        done = n.at + n.bytes;
        if (n.word) {
            used += (size_t)sprintf(out + used, "\"" PYTHON_JSON_MARK "%s\"", n.word);
            continue;
        }
        memcpy(out + used, s + n.at, n.bytes);
        memcpy(out + used + n.bytes, ".0", 2);
        used += n.bytes + 2;
    }
    memcpy(out + used, s + done, bytes - done);
    *count = used + bytes - done;
    return out;
}

/* Parse a text as Python does: a byte order mark is skipped, and the last of two equal keys wins. Return NULL with
 * *no_memory set, or with the fault in *error. */
static inline json_t *python_json_load(const char *s, size_t bytes, bool *no_memory,
                                       json_error_t *error)
{
    static const char mark[] = "\xef\xbb\xbf";
    const size_t skip = bytes >= 3 && memcmp(s, mark, 3) == 0 ? 3 : 0;
    size_t count;
    char *copy = python_json_copy(s + skip, bytes - skip, &count);
    *no_memory = !copy && count > 0;
    json_t *out = copy         ? json_loadb(copy, count, 0, error)
                  : *no_memory ? NULL
                               : json_loadb(s + skip, bytes - skip, 0, error);
    free(copy);
    return out;
}

/* Restore the words in a text that Jansson wrote. */
static inline void python_json_restore(char *text)
{
    static const char mark[] = "\"" PYTHON_JSON_MARK;
    char *to = strstr(text, mark);
    int which;
    for (const char *from = to; from && *from;) {
        const size_t skip = sizeof mark - 1;
        const bool marked = strncmp(from, mark, skip) == 0;
        const size_t n = marked ? python_json_word(from + skip, strlen(from + skip), &which) : 0;
        if (n > 0 && from[skip + n] == '"') {
            memmove(to, from + skip, n);
            to += n;
            from += skip + n + 1;
        } else {
            *to++ = *from++;
        }
    }
    if (to)
        *to = '\0';
}

#endif
