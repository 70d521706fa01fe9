/* SPDX-License-Identifier: Apache-2.0
 *
 * lex.c: splits a template into texts and tokens, with jinja2's rules for white space: "-" at a
 * tag removes the white space around it; a statement removes the blanks before it on its line
 * (lstrip_blocks) and the line feed behind it (trim_blocks), unless it has a "+" there.
 */
#include "template/syntax.h"

#include "base/grow.h"
#include "base/utf8.h"
#include "io/error.h"
#include "template/letters.h"
#include "template/spaces.h"

#include <errno.h>
#include <stdlib.h>

struct lexer {
    struct template *template;
    struct tokens *tokens;
    const char *text; /* text with line feeds as the only line ends */
    size_t bytes, at;
    int line;
    bool line_starts; /* whether the text consumed last ends with a line feed */
};

static int bad(const struct lexer *l, const char *what)
{
    return syntax_fail(l->template, l->line, "%s", what);
}

/* Advance, counting lines. */
static void advance(struct lexer *l, size_t to)
{
    for (; l->at < to; l->at++)
        l->line += l->text[l->at] == '\n';
    l->line_starts = to == 0 || l->text[to - 1] == '\n';
}

static int add(struct lexer *l, enum token_kind kind, struct value value)
{
    struct tokens *t = l->tokens;
    if (!GROW(t->at, t->capacity, t->count + 1))
        return syntax_no_memory(l->template);
    t->at[t->count++] = (struct token){kind, l->line, value};
    return 0;
}

static bool is_at(const struct lexer *l, size_t at, const char *mark)
{
    const size_t n = strlen(mark);
    return l->bytes - at >= n && memcmp(l->text + at, mark, n) == 0;
}

static size_t skip_white(const struct lexer *l, size_t at)
{
    return at + text_white(l->text + at, l->bytes - at);
}

/* ---- ends of tags ---- */

/* Return the position after a tag's end and the white space that it removes; 0: there is no end
 * at `at`. */
static size_t tag_end(const struct lexer *l, size_t at, const char *mark, bool statement)
{
    const bool sign = at < l->bytes && (l->text[at] == '-' || (statement && l->text[at] == '+'));
    if (sign && is_at(l, at + 1, mark))
        return l->text[at] == '-' ? skip_white(l, at + 3) : at + 3;
    if (!is_at(l, at, mark))
        return 0;
    return at + 2 + (statement && is_at(l, at + 2, "\n"));
}

/* Return the position after `{% raw %}`, or with `end` `{% endraw %}`; 0: it does not begin at
 * `at`. */
static size_t raw_tag(const struct lexer *l, size_t at, const char *word, bool end)
{
    if (!is_at(l, at, "{%"))
        return 0;
    at += 2;
    if (at < l->bytes && (l->text[at] == '-' || l->text[at] == '+'))
        at++;
    at = skip_white(l, at);
    if (!is_at(l, at, word))
        return 0;
    at = skip_white(l, at + strlen(word));
    if (end)
        return tag_end(l, at, "%}", true);
    return is_at(l, at, "-%}") ? skip_white(l, at + 3) : is_at(l, at, "%}") ? at + 2 : 0;
}

/* ---- text ---- */

/* Add the text up to a tag, without the white space that the tag removes. */
static int add_text(struct lexer *l, size_t begin, size_t tag, bool output)
{
    size_t end = tag;
    const char sign = tag + 2 < l->bytes ? l->text[tag + 2] : '\0';
    if (sign == '-') {
        end = begin + text_rstrip(l->text + begin, tag - begin);
    } else if (sign != '+' && !output) {
        size_t line = tag;
        while (line > begin && l->text[line - 1] != '\n')
            line--;
        if ((line > begin || l->line_starts) && skip_white(l, line) >= tag)
            end = line;
    }
    return end > begin ? add(l, TOKEN_TEXT, value_text(l->text + begin, end - begin)) : 0;
}

static int lex_comment(struct lexer *l, size_t at)
{
    size_t end = 0;
    advance(l, at);
    for (at += 2; at < l->bytes && end == 0; at++)
        end = tag_end(l, at, "#}", true);
    if (end == 0)
        return bad(l, "a comment has no end; write #}");
    advance(l, end);
    return 0;
}

static int lex_raw(struct lexer *l, size_t begin)
{
    size_t at = begin, end = 0;
    advance(l, begin);
    if (begin == l->bytes)
        return 0; /* jinja2 does not require an end if nothing follows */
    while (at < l->bytes && (end = raw_tag(l, at, "endraw", true)) == 0)
        at++;
    if (end == 0)
        return bad(l, "raw has no end; write {% endraw %}");
    const int rc = add_text(l, begin, at, false);
    advance(l, end);
    return rc;
}

/* ---- tokens in tags ---- */

static size_t digits(const struct lexer *l, size_t at)
{
    while (at < l->bytes && l->text[at] >= '0' && l->text[at] <= '9')
        at += at + 2 < l->bytes && l->text[at + 1] == '_' && l->text[at + 2] >= '0' &&
                      l->text[at + 2] <= '9'
                  ? 2
                  : 1;
    return at;
}

static bool is_digit_at(const struct lexer *l, size_t at)
{
    return at < l->bytes && l->text[at] >= '0' && l->text[at] <= '9';
}

/* Copy a number without its underscores. */
static bool plain_number(const struct lexer *l, size_t end, char out[64])
{
    size_t n = 0;
    for (size_t i = l->at; i < end; i++)
        if (l->text[i] != '_') {
            if (n == 63)
                return false;
            out[n++] = l->text[i];
        }
    out[n] = '\0';
    return true;
}

/* Return the end of a number with a point or an exponent; 0: it is not one. */
static size_t float_end(const struct lexer *l)
{
    const size_t whole = digits(l, l->at);
    size_t end = whole;
    if (l->at > 0 && l->text[l->at - 1] == '.')
        return 0;
    if (is_at(l, end, ".") && is_digit_at(l, end + 1))
        end = digits(l, end + 1);
    if (end < l->bytes && (l->text[end] | 32) == 'e') {
        const size_t sign = is_at(l, end + 1, "+") || is_at(l, end + 1, "-");
        if (is_digit_at(l, end + 1 + sign))
            end = digits(l, end + 1 + sign);
    }
    return end > whole ? end : 0;
}

/* Return the base of 0x1f, 0o17 and 0b1. */
static int base_at(const struct lexer *l)
{
    static const char letters[] = "xob";
    static const int bases[] = {16, 8, 2};
    const char c =
        l->text[l->at] == '0' && l->at + 2 < l->bytes ? (char)(l->text[l->at + 1] | 32) : 0;
    const char *found = c ? strchr(letters, c) : NULL;
    return found ? bases[found - letters] : 10;
}

static bool digit_of_base(char c, int base)
{
    const int value = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' ? (c | 32) - 'a' + 10 : 99;
    return value < base;
}

static int lex_integer(struct lexer *l)
{
    char text[64];
    const int base = base_at(l);
    size_t end = base == 10 ? digits(l, l->at) : l->at + 2;
    if (base == 10 && l->text[l->at] == '0') /* 01 is read as two numbers */
        for (end = l->at; end < l->bytes && l->text[end] == '0';)
            end++;
    while (base != 10 && end < l->bytes &&
           (digit_of_base(l->text[end], base) || l->text[end] == '_'))
        end++;
    errno = 0;
    const bool fits = plain_number(l, end, text);
    const long long value = fits ? strtoll(base == 10 ? text : text + 2, NULL, base) : 0;
    if (!fits || errno)
        return bad(l, "a whole number has more than 64 bits");
    const int rc = add(l, TOKEN_INT, value_int(value));
    advance(l, end);
    return rc;
}

static int lex_number(struct lexer *l)
{
    char text[64];
    const size_t end = base_at(l) == 10 ? float_end(l) : 0;
    if (end == 0)
        return lex_integer(l);
    if (!plain_number(l, end, text))
        return bad(l, "a number is too long");
    const int rc = add(l, TOKEN_FLOAT, value_float(strtod(text, NULL)));
    advance(l, end);
    return rc;
}

static bool is_name_letter(uint32_t cp)
{
    return cp == '_' ||
           (cp < 0x80 ? (cp >= '0' && cp <= '9') || ((cp | 32) >= 'a' && (cp | 32) <= 'z')
                      : cp != NOT_UTF8 && (letter_alpha(cp) || letter_numeric(cp)));
}

static size_t name_end(const struct lexer *l)
{
    uint32_t cp;
    size_t at = l->at;
    while (at < l->bytes) {
        const size_t n = utf8_next((const unsigned char *)l->text + at, l->bytes - at, &cp);
        if (!is_name_letter(cp))
            break;
        at += n;
    }
    return at;
}

/* Read the digits of an escape; -1: there are not enough. */
static int64_t hex_digits(const char *text, const char *end, int count)
{
    int64_t value = 0;
    if (end - text < count)
        return -1;
    for (int i = 0; i < count; i++) {
        if (!digit_of_base(text[i], 16))
            return -1;
        value = value * 16 + (text[i] <= '9' ? text[i] - '0' : (text[i] | 32) - 'a' + 10);
    }
    return value;
}

/* Read one escape after its backslash. Return the number of bytes read, 0 if it is not an escape
 * and stands for itself; *cp -1: it is invalid. */
static size_t read_escape(const char *text, const char *end, int64_t *cp)
{
    static const char simple[] = "n\nt\tr\r\\\\''\"\"a\ab\bf\fv\v";
    static const char hex[] = "xuU";
    static const int lengths[] = {2, 4, 8};
    for (size_t i = 0; simple[i]; i += 2)
        if (simple[i] == *text) {
            *cp = (unsigned char)simple[i + 1];
            return 1;
        }
    const char *kind = strchr(hex, *text);
    if (kind && *text) {
        *cp = hex_digits(text + 1, end, lengths[kind - hex]);
        if (*cp >= 0xd800 && (*cp < 0xe000 || *cp > 0x10ffff))
            *cp = -1;
        return 1 + (size_t)lengths[kind - hex];
    }
    size_t n = 0;
    for (*cp = 0; n < 3 && text + n < end && text[n] >= '0' && text[n] <= '7'; n++)
        *cp = *cp * 8 + (text[n] - '0');
    if (*text == 'N')
        *cp = -1;
    return *text == 'N' ? 1 : n;
}

/* Make the text of a string from the characters between its quotes. */
static int unescape(struct lexer *l, const char *text, const char *end, struct value *out)
{
    char *made = arena_take(&l->template->arena, (size_t)(end - text) + 1), *to = made;
    if (!made)
        return syntax_no_memory(l->template);
    while (text < end) {
        int64_t cp;
        if (*text != '\\' || text + 1 == end) {
            *to++ = *text++;
            continue;
        }
        text++;
        if (*text == '\n') { /* line continuation */
            text++;
            continue;
        }
        const size_t n = read_escape(text, end, &cp);
        if (n > 0 && cp < 0)
            return bad(l, "an escape in a string is not understood");
        if (n == 0)
            *to++ = '\\';
        else
            to += letter_put((uint32_t)cp, to);
        text += n;
    }
    *out = value_text(made, (size_t)(to - made));
    return 0;
}

static int lex_string(struct lexer *l)
{
    struct value value;
    const char quote = l->text[l->at];
    size_t end = l->at + 1;
    while (end < l->bytes && l->text[end] != quote)
        end += l->text[end] == '\\' ? 2 : 1;
    if (end >= l->bytes)
        return bad(l, "a string has no end");
    int rc = unescape(l, l->text + l->at + 1, l->text + end, &value);
    if (rc == 0)
        rc = add(l, TOKEN_STRING, value);
    advance(l, end + 1);
    return rc;
}

static int lex_operator(struct lexer *l, char *open, int *opened)
{
    enum { OPEN_MOST = 200 };
    static const char *const two[] = {"//", "**", "==", "!=", ">=", "<="};
    static const char one[] = "+-/*%~[](){}><=.:|,;", begins[] = "([{", ends[] = ")]}";
    const char c = l->text[l->at];
    size_t n = 0;
    for (size_t i = 0; i < 6 && n == 0; i++)
        n = is_at(l, l->at, two[i]) ? 2 : 0;
    if (n == 0 && (c == '\0' || !strchr(one, c)))
        return bad(l, "a tag has a character that is not part of an expression");
    n = n ? n : 1;
    const char *begin = n == 1 ? strchr(begins, c) : NULL, *end = n == 1 ? strchr(ends, c) : NULL;
    if (begin && *opened == OPEN_MOST)
        return bad(l, "brackets are nested too deeply");
    if (begin)
        open[(*opened)++] = ends[begin - begins];
    if (end && (*opened == 0 || open[--*opened] != c))
        return syntax_fail(l->template, l->line, "'%c' closes nothing", c);
    const int rc = add(l, TOKEN_OPERATOR, value_text(l->text + l->at, n));
    advance(l, l->at + n);
    return rc;
}

static int lex_token(struct lexer *l, char *open, int *opened)
{
    const char c = l->text[l->at];
    const size_t name = name_end(l);
    if (c >= '0' && c <= '9')
        return lex_number(l);
    if (c == '\'' || c == '"')
        return lex_string(l);
    if (name == l->at)
        return lex_operator(l, open, opened);
    const int rc = add(l, TOKEN_NAME, value_text(l->text + l->at, name - l->at));
    advance(l, name);
    return rc;
}

/* Lex a tag, from its first mark to its last. */
static int lex_tag(struct lexer *l, size_t at, bool output)
{
    char open[200];
    int opened = 0;
    size_t end = 0;
    advance(l, at);
    int rc = add(l, output ? TOKEN_OUTPUT_BEGIN : TOKEN_BLOCK_BEGIN, value_text("", 0));
    at += 2;
    if (at < l->bytes && (l->text[at] == '-' || l->text[at] == '+'))
        at++;
    advance(l, at);
    while (rc == 0) {
        advance(l, skip_white(l, l->at));
        if (l->at >= l->bytes)
            return bad(l, output ? "the end of }} is missing" : "the end of %} is missing");
        end = opened == 0 ? tag_end(l, l->at, output ? "}}" : "%}", !output) : 0;
        if (end > 0)
            break;
        rc = lex_token(l, open, &opened);
    }
    if (rc == 0)
        rc = add(l, output ? TOKEN_OUTPUT_END : TOKEN_BLOCK_END, value_text("", 0));
    if (rc == 0)
        advance(l, end);
    return rc;
}

/* ---- templates ---- */

/* Return where the next tag begins. */
static size_t find_tag(const struct lexer *l)
{
    size_t at = l->at;
    while (at < l->bytes && !is_at(l, at, "{{") && !is_at(l, at, "{%") && !is_at(l, at, "{#"))
        at++;
    return at;
}

static int lex_next(struct lexer *l)
{
    const size_t begin = l->at, tag = find_tag(l);
    if (tag >= l->bytes) {
        const int rc = add(l, TOKEN_TEXT, value_text(l->text + begin, l->bytes - begin));
        advance(l, l->bytes);
        return rc;
    }
    const bool output = is_at(l, tag, "{{");
    const size_t raw = raw_tag(l, tag, "raw", false);
    TRY(add_text(l, begin, tag, output));
    if (is_at(l, tag, "{#"))
        return lex_comment(l, tag);
    return raw > 0 ? lex_raw(l, raw) : lex_tag(l, tag, output);
}

/* Copy the template with each line end as a line feed, without the last one. */
static int normalize(struct lexer *l, const char *text, size_t bytes)
{
    char *made = arena_take(&l->template->arena, bytes + 1);
    size_t n = 0;
    if (!made)
        return syntax_no_memory(l->template);
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] == '\r' && i + 1 < bytes && text[i + 1] == '\n')
            continue;
        made[n++] = text[i] == '\r' ? '\n' : text[i];
    }
    l->bytes = n > 0 && made[n - 1] == '\n' ? n - 1 : n;
    l->text = made;
    return 0;
}

int lex(struct template *t, const char *text, size_t bytes, struct tokens *tokens)
{
    struct lexer l = {.template = t, .tokens = tokens, .line = 1, .line_starts = true};
    *tokens = (struct tokens){0};
    TRY(normalize(&l, text, bytes));
    while (l.at < l.bytes)
        TRY(lex_next(&l));
    return add(&l, TOKEN_END, value_text("", 0));
}
