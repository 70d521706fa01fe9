/* SPDX-License-Identifier: Apache-2.0
 *
 * unicode.c: classes of code points, and NFC or NFKC of the few stretches of a text that are not
 * normalized.
 */
#include "text/unicode.h"

#include "base/grow.h"
#include "io/error.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

uint8_t unicode_class[NOT_UTF8 + 1];

static const uint8_t of_category[] = {
    [UTF8PROC_CATEGORY_LU] = UNICODE_LETTER | UNICODE_WORD,
    [UTF8PROC_CATEGORY_LL] = UNICODE_LETTER | UNICODE_WORD,
    [UTF8PROC_CATEGORY_LT] = UNICODE_LETTER | UNICODE_WORD,
    [UTF8PROC_CATEGORY_LM] = UNICODE_LETTER | UNICODE_WORD,
    [UTF8PROC_CATEGORY_LO] = UNICODE_LETTER | UNICODE_WORD,
    [UTF8PROC_CATEGORY_MN] = UNICODE_WORD | UNICODE_MOVES,
    [UTF8PROC_CATEGORY_MC] = UNICODE_WORD | UNICODE_MOVES,
    [UTF8PROC_CATEGORY_ME] = UNICODE_WORD | UNICODE_MOVES,
    [UTF8PROC_CATEGORY_ND] = UNICODE_NUMBER | UNICODE_WORD,
    [UTF8PROC_CATEGORY_NL] = UNICODE_NUMBER | UNICODE_WORD,
    [UTF8PROC_CATEGORY_NO] = UNICODE_NUMBER,
    [UTF8PROC_CATEGORY_PC] = UNICODE_WORD,
    [UTF8PROC_CATEGORY_CO] = 0, /* the last category */
};

/* Ranges that add to the class of the category. */
static const struct {
    uint32_t first, last;
    uint8_t class;
} ranges[] = {
    {0x09, 0x0d, UNICODE_SPACE},
    {0x0a, 0x0a, UNICODE_NEWLINE},
    {0x0d, 0x0d, UNICODE_NEWLINE},
    {0x20, 0x20, UNICODE_SPACE},
    {0x85, 0x85, UNICODE_SPACE},
    {0xa0, 0xa0, UNICODE_SPACE},
    {0x1680, 0x1680, UNICODE_SPACE},
    {0x2000, 0x200a, UNICODE_SPACE},
    {0x2028, 0x2029, UNICODE_SPACE},
    {0x202f, 0x202f, UNICODE_SPACE},
    {0x205f, 0x205f, UNICODE_SPACE},
    {0x3000, 0x3000, UNICODE_SPACE},
    {0x200c, 0x200d, UNICODE_WORD},
    {0x24b6, 0x24e9, UNICODE_WORD}, /* joiners; circled letters */
    {0x1f130, 0x1f149, UNICODE_WORD},
    {0x1f150, 0x1f169, UNICODE_WORD},
    {0x1f170, 0x1f189, UNICODE_WORD},
    {0x1100, 0x11ff, UNICODE_MOVES}, /* conjoining Hangul */
    /* letters and numbers that are new in Unicode 16; utf8proc may have version 15, the library
     * has 16 */
    {0x1c89, 0x1c8a, UNICODE_LETTER},
    {0xa7cb, 0xa7cd, UNICODE_LETTER},
    {0xa7da, 0xa7dc, UNICODE_LETTER},
    {0x105c0, 0x105f3, UNICODE_LETTER},
    {0x10d40, 0x10d49, UNICODE_NUMBER},
    {0x10d4a, 0x10d65, UNICODE_LETTER},
    {0x10d6f, 0x10d85, UNICODE_LETTER},
    {0x10ec2, 0x10ec4, UNICODE_LETTER},
    {0x11380, 0x11389, UNICODE_LETTER},
    {0x1138b, 0x1138b, UNICODE_LETTER},
    {0x1138e, 0x1138e, UNICODE_LETTER},
    {0x11390, 0x113b5, UNICODE_LETTER},
    {0x113b7, 0x113b7, UNICODE_LETTER},
    {0x113d1, 0x113d1, UNICODE_LETTER},
    {0x113d3, 0x113d3, UNICODE_LETTER},
    {0x116d0, 0x116e3, UNICODE_NUMBER},
    {0x11bc0, 0x11be0, UNICODE_LETTER},
    {0x11bf0, 0x11bf9, UNICODE_NUMBER},
    {0x13460, 0x143fa, UNICODE_LETTER},
    {0x16100, 0x1611d, UNICODE_LETTER},
    {0x16130, 0x16139, UNICODE_NUMBER},
    {0x16d40, 0x16d6c, UNICODE_LETTER},
    {0x16d70, 0x16d79, UNICODE_NUMBER},
    {0x18cff, 0x18cff, UNICODE_LETTER},
    {0x1ccf0, 0x1ccf9, UNICODE_NUMBER},
    {0x1e5d0, 0x1e5ed, UNICODE_LETTER},
    {0x1e5f0, 0x1e5f0, UNICODE_LETTER},
    {0x1e5f1, 0x1e5fa, UNICODE_NUMBER},
    {0x2ebf0, 0x2ee5d, UNICODE_LETTER},
};

/* Code points that no normal form changes: marks, and code points that stand for others, that
 * are newer than Unicode 9 (the `tokenizers` library, which made the ids that models were
 * trained on, normalizes by that version and leaves them unchanged), and U+11A7, which utf8proc
 * joins to a syllable as if it were a consonant. */
static const struct {
    uint32_t first, last;
} apart[] = {
    /* marks */
    {0x7fd, 0x7fd},
    {0x898, 0x89f},
    {0x8ca, 0x8d3},
    {0x9fe, 0x9fe},
    {0xc3c, 0xc3c},
    {0xd3b, 0xd3c},
    {0xeba, 0xeba},
    {0x1715, 0x1715},
    {0x1abf, 0x1ace},
    {0x1df6, 0x1dfa},
    {0xa82c, 0xa82c},
    {0x10d24, 0x10d27},
    {0x10eab, 0x10eac},
    {0x10efd, 0x10eff},
    {0x10f46, 0x10f50},
    {0x10f82, 0x10f85},
    {0x11070, 0x11070},
    {0x1133b, 0x1133b},
    {0x1145e, 0x1145e},
    {0x11839, 0x1183a},
    {0x11930, 0x11930},
    {0x11938, 0x11938},
    {0x1193d, 0x1193e},
    {0x11943, 0x11943},
    {0x119e0, 0x119e0},
    {0x11a34, 0x11a34},
    {0x11a47, 0x11a47},
    {0x11a99, 0x11a99},
    {0x11d42, 0x11d42},
    {0x11d44, 0x11d45},
    {0x11d97, 0x11d97},
    {0x11f41, 0x11f42},
    {0x16ff0, 0x16ff1},
    {0x1e08f, 0x1e08f},
    {0x1e130, 0x1e136},
    {0x1e2ae, 0x1e2ae},
    {0x1e2ec, 0x1e2ef},
    {0x1e4ec, 0x1e4ef},
    /* code points that NFKC would replace */
    {0x32ff, 0x32ff},
    {0xa7f1, 0xa7f4},
    {0xab69, 0xab69},
    {0x10781, 0x10785},
    {0x10787, 0x107b0},
    {0x107b2, 0x107ba},
    {0x1ccd6, 0x1ccf9},
    {0x1e030, 0x1e06d},
    {0x1f16c, 0x1f16c},
    {0x1fbf0, 0x1fbf9},
    {0x11a7, 0x11a7},
};

/* Return whether a normal form changes the code point by itself; compat: NFKC. */
static bool changes_alone(utf8proc_int32_t cp, bool compat)
{
    const utf8proc_property_t *p = utf8proc_get_property(cp);
    if (p->decomp_seqindex == UINT16_MAX || (p->decomp_type != 0 && !compat))
        return false;
    const utf8proc_option_t how = compat ? UTF8PROC_COMPAT : 0;
    utf8proc_int32_t parts[32];
    utf8proc_ssize_t n = utf8proc_decompose_char(cp, parts, 32, UTF8PROC_DECOMPOSE | how, NULL);
    n = utf8proc_normalize_utf32(parts, n, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
    return n != 1 || parts[0] != cp;
}

static void make_classes(void)
{
    for (uint32_t cp = 0; cp < NOT_UTF8; cp++) {
        unicode_class[cp] = of_category[utf8proc_category((utf8proc_int32_t)cp)];
        if (changes_alone((utf8proc_int32_t)cp, false))
            unicode_class[cp] |= UNICODE_MOVES;
        if (changes_alone((utf8proc_int32_t)cp, true))
            unicode_class[cp] |= UNICODE_COMPAT;
    }
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        for (uint32_t cp = ranges[i].first; cp <= ranges[i].last; cp++)
            unicode_class[cp] |= ranges[i].class;
    for (size_t i = 0; i < sizeof apart / sizeof *apart; i++)
        for (uint32_t cp = apart[i].first; cp <= apart[i].last; cp++)
            unicode_class[cp] =
                (uint8_t)((unicode_class[cp] & ~(UNICODE_MOVES | UNICODE_COMPAT)) | UNICODE_APART);
}

void unicode_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_classes);
}

/* ---- normal forms ---- */

struct buffer {
    char *text;
    size_t count, capacity;
};

static int reserve(struct buffer *b, size_t bytes)
{
    if (GROW(b->text, b->capacity, b->count + bytes))
        return 0;
    return fail(NJ_E_NOMEM, "out of memory for %zu bytes of text", b->count + bytes);
}

static int put(struct buffer *b, const unsigned char *text, size_t bytes)
{
    TRY(reserve(b, bytes));
    if (bytes > 0) {
        memcpy(b->text + b->count, text, bytes);
        b->count += bytes;
    }
    return 0;
}

static int mark_class(utf8proc_int32_t cp)
{
    return utf8proc_get_property(cp)->combining_class;
}

/* Sort marks by their class, stably; room: buffer of the same length. utf8proc's own sort takes
 * time quadratic in their number. */
static void order_run(utf8proc_int32_t *marks, size_t count, utf8proc_int32_t *room)
{
    enum { SHORT = 16, CLASSES = 256 };
    if (count <= SHORT) {
        for (size_t i = 1; i < count; i++) {
            const utf8proc_int32_t mark = marks[i];
            const int class = mark_class(mark);
            size_t at = i;
            for (; at > 0 && mark_class(marks[at - 1]) > class; at--)
                marks[at] = marks[at - 1];
            marks[at] = mark;
        }
        return;
    }
    size_t start[CLASSES + 1] = {0};
    for (size_t i = 0; i < count; i++)
        start[mark_class(marks[i]) + 1]++;
    for (int c = 0; c < CLASSES; c++)
        start[c + 1] += start[c];
    memcpy(room, marks, count * sizeof *marks);
    for (size_t i = 0; i < count; i++)
        marks[start[mark_class(room[i])]++] = room[i];
}

/* Put code points in canonical order: each run of marks by itself. */
static void order_marks(utf8proc_int32_t *parts, size_t count, utf8proc_int32_t *room)
{
    for (size_t i = 0, end; i < count; i = end + 1) {
        for (end = i; end < count && mark_class(parts[end]) != 0;)
            end++;
        order_run(parts + i, end - i, room);
    }
}

/* Append the normal form of a stretch of valid UTF-8. */
static int put_composed(struct buffer *b, enum unicode_form form, const unsigned char *text,
                        size_t bytes)
{
    const utf8proc_option_t how = (utf8proc_option_t)(UTF8PROC_STABLE | UTF8PROC_COMPOSE |
                                                      (form == UNICODE_NFKC ? UTF8PROC_COMPAT : 0));
    utf8proc_ssize_t n = utf8proc_decompose(text, (utf8proc_ssize_t)bytes, NULL, 0, how);
    utf8proc_int32_t *parts = n < 0 ? NULL : malloc((2 * (size_t)n + 1) * sizeof *parts);
    if (!parts)
        return fail(NJ_E_NOMEM, "out of memory for %zu bytes of text", bytes);
    int bound = 0;
    utf8proc_ssize_t count = 0;
    for (size_t at = 0; at < bytes;) {
        uint32_t cp;
        at += utf8_next(text + at, bytes - at, &cp);
        count +=
            utf8proc_decompose_char((utf8proc_int32_t)cp, parts + count, n - count, how, &bound);
    }
    order_marks(parts, (size_t)count, parts + count);
    n = utf8proc_normalize_utf32(parts, count, how);
    int rc = reserve(b, 4 * (size_t)n);
    for (utf8proc_ssize_t i = 0; i < n && rc == 0; i++)
        b->count += (size_t)utf8proc_encode_char(parts[i], (utf8proc_uint8_t *)b->text + b->count);
    free(parts);
    return rc;
}

/* Return the first position from `at` on at which normalization may change the text, bytes if
 * there is none; *start is the code point before it, with which it may compose. */
static size_t next_move(const unsigned char *s, size_t bytes, size_t at, int moves, size_t *start)
{
    uint32_t cp;
    size_t n;
    *start = at;
    for (; at < bytes; at += n) {
        n = utf8_next(s + at, bytes - at, &cp);
        if (unicode_class[cp] & moves)
            break;
        *start = cp == NOT_UTF8 || (unicode_class[cp] & UNICODE_APART) ? at + n : at;
    }
    return at;
}

size_t unicode_run(const unsigned char *s, size_t bytes, size_t at, int wanted)
{
    uint32_t cp;
    while (at < bytes) {
        const size_t n = utf8_next(s + at, bytes - at, &cp);
        if (!(unicode_class[cp] & wanted))
            break;
        at += n;
    }
    return at;
}

/* Return whether the text is surely normalized: below U+0300, whose first byte is 0xcc, NFC
 * changes nothing; NFKC changes no ASCII. */
static bool surely_normal(enum unicode_form form, const unsigned char *s, size_t bytes)
{
    unsigned char most = 0;
    for (size_t i = 0; i < bytes; i++)
        most = s[i] > most ? s[i] : most;
    return most < (form == UNICODE_NFKC ? 0x80 : 0xcc);
}

int unicode_normalize(enum unicode_form form, const char *text, size_t bytes, char **out,
                      size_t *count, size_t *capacity)
{
    const unsigned char *s = (const unsigned char *)text;
    const int moves = UNICODE_MOVES | (form == UNICODE_NFKC ? UNICODE_COMPAT : 0);
    struct buffer b = {*out, 0, *capacity};
    size_t start = 0, copied = 0;
    if (form == UNICODE_AS_IS || surely_normal(form, s, bytes))
        return 0;
    size_t at = next_move(s, bytes, 0, moves, &start);
    if (at == bytes)
        return 0;
    int rc = 0;
    while (at < bytes && rc == 0) {
        const size_t end = unicode_run(s, bytes, at, moves);
        rc = put(&b, s + copied, start - copied);
        if (rc == 0)
            rc = put_composed(&b, form, s + start, end - start);
        copied = end;
        at = next_move(s, bytes, end, moves, &start);
    }
    if (rc == 0)
        rc = put(&b, s + copied, bytes - copied);
    *out = b.text;
    *capacity = b.capacity;
    *count = b.count;
    return rc != 0 ? rc : 1;
}
