/* SPDX-License-Identifier: Apache-2.0
 *
 * methods_text.c: methods of Python's strings, except those that split (methods_split.c).
 */
#include "template/builtins.h"

#include "base/utf8.h"
#include "io/error.h"
#include "template/letters.h"
#include "template/spaces.h"
#include "template/syntax.h"
#include "template/write.h"

#include <stdlib.h>

#define SELF (&a->at[0])

/* ---- case ---- */

static int lower(struct run *r, const struct arguments *a, struct value *out)
{
    return letters_case(r, CASE_LOWER, SELF, out);
}
static int upper(struct run *r, const struct arguments *a, struct value *out)
{
    return letters_case(r, CASE_UPPER, SELF, out);
}
static int title(struct run *r, const struct arguments *a, struct value *out)
{
    return letters_case(r, CASE_TITLE, SELF, out);
}
static int capitalize(struct run *r, const struct arguments *a, struct value *out)
{
    return letters_case(r, CASE_CAPITAL, SELF, out);
}
static int swapcase(struct run *r, const struct arguments *a, struct value *out)
{
    return letters_case(r, CASE_SWAP, SELF, out);
}

/* ---- white space and other ends ---- */

static bool among(const struct value *set, const char *letter, size_t bytes)
{
    uint32_t cp;
    if (set->kind == VALUE_STRING)
        return memmem(set->text, set->bytes, letter, bytes) != NULL;
    utf8_next((const unsigned char *)letter, bytes, &cp);
    return is_white(cp);
}

/* Remove letters of the set from one end or both. */
static int strip_ends(struct run *r, const struct arguments *a, bool left, bool right,
                      struct value *out)
{
    const struct value *set = &a->at[1];
    *out = *SELF;
    if (value_given(set) && set->kind != VALUE_STRING && set->kind != VALUE_NONE)
        return run_type_error(r, "what is stripped must be a string", set);
    while (left && out->bytes > 0) {
        const size_t n = letters_offset(out->text, out->bytes, 1);
        if (!among(set, out->text, n))
            break;
        out->text += n;
        out->bytes -= n;
    }
    while (right && out->bytes > 0) {
        size_t n = 1;
        while (inside_letter(out->text[out->bytes - n]))
            n++;
        if (!among(set, out->text + out->bytes - n, n))
            break;
        out->bytes -= n;
    }
    return run_spend(r, (SELF->bytes - out->bytes) * (1 + (value_given(set) ? set->bytes / 8 : 0)));
}

static int strip(struct run *r, const struct arguments *a, struct value *out)
{
    return strip_ends(r, a, true, true, out);
}
static int lstrip(struct run *r, const struct arguments *a, struct value *out)
{
    return strip_ends(r, a, true, false, out);
}
static int rstrip(struct run *r, const struct arguments *a, struct value *out)
{
    return strip_ends(r, a, false, true, out);
}

static bool begins(const struct value *text, const struct value *part)
{
    return part->bytes <= text->bytes && memcmp(text->text, part->text, part->bytes) == 0;
}

static bool ends(const struct value *text, const struct value *part)
{
    return part->bytes <= text->bytes &&
           memcmp(text->text + text->bytes - part->bytes, part->text, part->bytes) == 0;
}

/* Reduce the text to the range given by the arguments after `part`. *fits: whether the start is
 * within it. */
static int cut_to_range(struct run *r, const struct arguments *a, struct value *text, bool *fits)
{
    const struct value none = {0};
    const size_t count = letters_count(SELF->text, SELF->bytes);
    *fits = !value_is_whole(&a->at[2]) || a->at[2].whole <= (int64_t)count;
    *text = *SELF;
    if (!value_given(&a->at[2]) && !value_given(&a->at[3]))
        return 0;
    return get_slice(r, SELF, &a->at[2], &a->at[3], &none, text);
}

/* Check for one text, or any of a tuple. */
static int has_end(struct run *r, const struct arguments *a,
                   bool (*asks)(const struct value *text, const struct value *part),
                   struct value *out)
{
    const struct value *part = &a->at[1];
    const size_t count = part->kind == VALUE_TUPLE ? part->list->count : 1;
    struct value text;
    bool has = false, fits;
    int rc = cut_to_range(r, a, &text, &fits);
    for (size_t i = 0; i < count && rc == 0 && !has; i++) {
        const struct value *one = part->kind == VALUE_TUPLE ? &part->list->at[i] : part;
        rc = argument_text(r, one, "the start or end of a string must be a string");
        has = rc == 0 && fits && asks(&text, one);
    }
    *out = value_bool(has);
    return rc;
}

static int startswith(struct run *r, const struct arguments *a, struct value *out)
{
    return has_end(r, a, begins, out);
}
static int endswith(struct run *r, const struct arguments *a, struct value *out)
{
    return has_end(r, a, ends, out);
}

static int removeprefix(struct run *r, const struct arguments *a, struct value *out)
{
    const int rc = argument_text(r, &a->at[1], "a prefix must be a string");
    *out = *SELF;
    if (rc == 0 && begins(SELF, &a->at[1])) {
        out->text += a->at[1].bytes;
        out->bytes -= a->at[1].bytes;
    }
    return rc;
}

static int removesuffix(struct run *r, const struct arguments *a, struct value *out)
{
    const int rc = argument_text(r, &a->at[1], "a suffix must be a string");
    *out = *SELF;
    if (rc == 0 && ends(SELF, &a->at[1]))
        out->bytes -= a->at[1].bytes;
    return rc;
}

/* ---- finding ---- */

/* Return the byte at which the part first, or last, occurs; -1: it does not. */
static int64_t find_part(const struct value *text, const struct value *part, bool last)
{
    if (part->bytes > text->bytes)
        return -1;
    if (!last) {
        const char *at =
            part->bytes ? memmem(text->text, text->bytes, part->text, part->bytes) : text->text;
        return at ? at - text->text : -1;
    }
    for (size_t at = text->bytes - part->bytes + 1; at-- > 0;)
        if (memcmp(text->text + at, part->text, part->bytes) == 0)
            return (int64_t)at;
    return -1;
}

static int find_in(struct run *r, const struct arguments *a, bool last, struct value *out)
{
    const struct value none = {0};
    struct value text, before;
    bool fits;
    int rc = argument_text(r, &a->at[1], "what is looked for must be a string");
    if (rc == 0)
        rc = cut_to_range(r, a, &text, &fits);
    if (rc == 0)
        rc = run_spend(r, text.bytes * (1 + a->at[1].bytes / 64));
    if (rc != 0)
        return rc;
    const int64_t at = fits ? find_part(&text, &a->at[1], last) : -1;
    *out = value_int(-1);
    if (at < 0)
        return 0;
    /* Letters before the range count, too. */
    rc = get_slice(r, SELF, &none,
                   value_given(&a->at[2]) ? &a->at[2] : &(struct value){.kind = VALUE_INT}, &none,
                   &before);
    *out = value_int(
        (int64_t)(letters_count(before.text, before.bytes) + letters_count(text.text, (size_t)at)));
    return rc;
}

static int find(struct run *r, const struct arguments *a, struct value *out)
{
    return find_in(r, a, false, out);
}
static int rfind(struct run *r, const struct arguments *a, struct value *out)
{
    return find_in(r, a, true, out);
}

static int index_in(struct run *r, const struct arguments *a, bool last, struct value *out)
{
    const int rc = find_in(r, a, last, out);
    return rc != 0 || out->whole >= 0 ? rc : run_fail(r, "index(): the string has no such part");
}

static int index_of(struct run *r, const struct arguments *a, struct value *out)
{
    return index_in(r, a, false, out);
}
static int rindex_of(struct run *r, const struct arguments *a, struct value *out)
{
    return index_in(r, a, true, out);
}

static int count(struct run *r, const struct arguments *a, struct value *out)
{
    struct value text;
    bool fits;
    int64_t found = 0;
    TRY(argument_text(r, &a->at[1], "what is counted must be a string"));
    TRY(cut_to_range(r, a, &text, &fits));
    TRY(run_spend(r, text.bytes));
    const struct value *part = &a->at[1];
    if (part->bytes == 0)
        found = fits ? (int64_t)letters_count(text.text, text.bytes) + 1 : 0;
    for (const char *at; part->bytes > 0 && text.bytes > 0 &&
                         (at = memmem(text.text, text.bytes, part->text, part->bytes));
         found++) {
        text.bytes -= (size_t)(at - text.text) + part->bytes;
        text.text = at + part->bytes;
    }
    *out = value_int(found);
    return 0;
}

/* ---- replacing ---- */

/* Insert the new text before each letter and at the end. */
static int replace_nothing(struct run *r, const struct arguments *a, int64_t most)
{
    int rc = 0;
    for (size_t at = 0, n; at < SELF->bytes && rc == 0; at += n) {
        n = letters_offset(SELF->text + at, SELF->bytes - at, 1);
        if (most != 0)
            rc = run_write(r, a->at[2].text, a->at[2].bytes);
        if (rc == 0)
            rc = run_write(r, SELF->text + at, n);
        most -= most > 0;
    }
    return rc != 0 || most == 0 ? rc : run_write(r, a->at[2].text, a->at[2].bytes);
}

static int replace_parts(struct run *r, const struct arguments *a, int64_t most)
{
    const struct value *from = &a->at[1];
    const char *at = SELF->text, *end = at + SELF->bytes;
    int rc = 0;
    for (const char *next; rc == 0 && most != 0 && at < end &&
                           (next = memmem(at, (size_t)(end - at), from->text, from->bytes));
         most--) {
        rc = run_write(r, at, (size_t)(next - at));
        if (rc == 0)
            rc = run_write(r, a->at[2].text, a->at[2].bytes);
        at = next + from->bytes;
    }
    return rc != 0 ? rc : run_write(r, at, (size_t)(end - at));
}

static int replace(struct run *r, const struct arguments *a, struct value *out)
{
    int64_t most;
    int rc = argument_text(r, &a->at[1], "what is replaced must be a string");
    if (rc == 0)
        rc = argument_text(r, &a->at[2], "what replaces must be a string");
    if (rc == 0)
        rc = argument_whole(r, &a->at[3], "the count of replace() must be a whole number", -1,
                            &most);
    if (rc != 0)
        return rc;
    const size_t from = run_capture(r);
    rc = a->at[1].bytes ? replace_parts(r, a, most) : replace_nothing(r, a, most);
    rc = run_captured(r, from, rc, out);
    out->markup = SELF->markup;
    return rc;
}

static int join(struct run *r, const struct arguments *a, struct value *out)
{
    struct list *list;
    int rc = value_items(r, &a->at[1], &list);
    const size_t from = run_capture(r);
    for (size_t i = 0; rc == 0 && i < list->count; i++) {
        rc = argument_text(r, &list->at[i], "join() joins strings alone");
        if (rc == 0 && i > 0)
            rc = run_write(r, SELF->text, SELF->bytes);
        if (rc == 0)
            rc = run_write(r, list->at[i].text, list->at[i].bytes);
    }
    return run_captured(r, from, rc, out);
}

/* ---- width ---- */

static int fill(struct run *r, const struct value *with, int64_t times)
{
    for (; times > 0; times--)
        TRY(value_given(with) ? run_write(r, with->text, with->bytes) : run_write(r, " ", 1));
    return 0;
}

/* Pad the text at its end (sides 1), its start (-1) or both (0): if the number is odd, an odd
 * width has one more at the start. */
static int widen(struct run *r, const struct arguments *a, int sides, struct value *out)
{
    int64_t width;
    const struct value *with = &a->at[2];
    int rc = argument_whole(r, &a->at[1], "a width must be a whole number", 0, &width);
    if (rc == 0 && value_given(with) &&
        (with->kind != VALUE_STRING || letters_count(with->text, with->bytes) != 1))
        rc = run_fail(r, "the fill of a string must be one character");
    if (rc != 0)
        return rc;
    const int64_t missing = width - (int64_t)letters_count(SELF->text, SELF->bytes);
    const int64_t more = missing > 0 ? missing : 0;
    const int64_t left = sides == 0 ? more / 2 + (more & width & 1) : sides < 0 ? more : 0;
    const size_t from = run_capture(r);
    rc = fill(r, with, left);
    if (rc == 0)
        rc = run_write(r, SELF->text, SELF->bytes);
    if (rc == 0)
        rc = fill(r, with, more - left);
    return run_captured(r, from, rc, out);
}

static int ljust(struct run *r, const struct arguments *a, struct value *out)
{
    return widen(r, a, 1, out);
}
static int rjust(struct run *r, const struct arguments *a, struct value *out)
{
    return widen(r, a, -1, out);
}
static int center(struct run *r, const struct arguments *a, struct value *out)
{
    return widen(r, a, 0, out);
}

static int zfill(struct run *r, const struct arguments *a, struct value *out)
{
    int64_t width;
    int rc = argument_whole(r, &a->at[1], "a width must be a whole number", 0, &width);
    const bool sign = SELF->bytes > 0 && (SELF->text[0] == '-' || SELF->text[0] == '+');
    const struct value zero = value_text("0", 1);
    const size_t from = run_capture(r);
    if (rc == 0)
        rc = run_write(r, SELF->text, sign);
    if (rc == 0)
        rc = fill(r, &zero, width - (int64_t)letters_count(SELF->text, SELF->bytes));
    if (rc == 0)
        rc = run_write(r, SELF->text + sign, SELF->bytes - sign);
    return run_captured(r, from, rc, out);
}

/* ---- queries ---- */

/* Return whether there is a letter and all pass. */
static bool all_letters(const struct value *text, bool (*passes)(uint32_t cp))
{
    uint32_t cp;
    for (size_t at = 0; at < text->bytes;) {
        at += utf8_next((const unsigned char *)text->text + at, text->bytes - at, &cp);
        if (!passes(cp))
            return false;
    }
    return text->bytes > 0;
}

static bool is_alnum(uint32_t cp)
{
    return letter_alpha(cp) || letter_digit(cp) || letter_decimal(cp) || letter_numeric(cp);
}
static bool not_lower(uint32_t cp)
{
    return !letter_lower(cp);
}
static bool not_upper(uint32_t cp)
{
    return !letter_upper(cp);
}

#define ASKS(name, what)                                                                           \
    static int name(struct run *r, const struct arguments *a, struct value *out)                   \
    {                                                                                              \
        *out = value_bool(what);                                                                   \
        return run_spend(r, SELF->bytes);                                                          \
    }
ASKS(isalpha_text, all_letters(SELF, letter_alpha))
ASKS(isdigit_text, all_letters(SELF, letter_digit))
ASKS(isdecimal_text, all_letters(SELF, letter_decimal))
ASKS(isnumeric_text, all_letters(SELF, letter_numeric))
ASKS(isalnum_text, all_letters(SELF, is_alnum))
ASKS(isspace_text, all_letters(SELF, is_white))
ASKS(isupper_text, all_letters(SELF, not_lower) && !all_letters(SELF, not_upper))
ASKS(islower_text, all_letters(SELF, not_upper) && !all_letters(SELF, not_lower))
ASKS(isascii_text, letters_count(SELF->text, SELF->bytes) == SELF->bytes)

/* ---- format ---- */

/* Write the value of a replacement field: a number, a name, or the next argument. */
static int format_place(struct run *r, const struct arguments *a, const struct value *name,
                        size_t *next)
{
    if (memchr(name->text, ':', name->bytes) || memchr(name->text, '!', name->bytes) ||
        memchr(name->text, '.', name->bytes) || memchr(name->text, '[', name->bytes))
        return run_fail(r, "format() with %.*s in a place is not supported; use the filter format",
                        (int)(name->bytes > 32 ? 32 : name->bytes), name->text);
    char *end;
    const char *digits = arena_copy(&r->arena, name->text, name->bytes);
    if (!digits)
        return run_no_memory(r);
    const size_t place = name->bytes ? strtoul(digits, &end, 10) : (*next)++;
    if (name->bytes == 0 || *end == '\0')
        return place + 1 < a->count ? write_str(r, &a->at[place + 1])
                                    : run_fail(r, "format() has more places than arguments");
    for (size_t i = 0; i < a->named_count; i++)
        if (value_same(&a->named[i].key, name))
            return write_str(r, &a->named[i].value);
    return run_fail(r, "format() has no argument %.*s", (int)(name->bytes > 32 ? 32 : name->bytes),
                    name->text);
}

static int format(struct run *r, const struct arguments *a, struct value *out)
{
    const char *at = SELF->text, *end = at + SELF->bytes;
    const size_t from = run_capture(r);
    size_t next = 0;
    int rc = 0;
    while (at < end && rc == 0) {
        if (at + 1 < end && at[0] == at[1] && (*at == '{' || *at == '}')) {
            rc = run_write(r, at, 1);
            at += 2;
        } else if (*at == '{') {
            const char *close = memchr(at, '}', (size_t)(end - at));
            const struct value name = value_text(at + 1, close ? (size_t)(close - at) - 1 : 0);
            rc = close ? format_place(r, a, &name, &next)
                       : run_fail(r, "format(): a place has no end");
            at = close ? close + 1 : end;
        } else {
            rc = *at == '}' ? run_fail(r, "format(): } closes nothing") : run_write(r, at, 1);
            at++;
        }
    }
    return run_captured(r, from, rc, out);
}

static const struct builtin methods[] = {
    {"lower", lower, "self", 1},
    {"upper", upper, "self", 1},
    {"title", title, "self", 1},
    {"capitalize", capitalize, "self", 1},
    {"swapcase", swapcase, "self", 1},
    {"strip", strip, "self chars", 1},
    {"lstrip", lstrip, "self chars", 1},
    {"rstrip", rstrip, "self chars", 1},
    {"startswith", startswith, "self prefix start end", 2},
    {"endswith", endswith, "self suffix start end", 2},
    {"removeprefix", removeprefix, "self prefix", 2},
    {"removesuffix", removesuffix, "self suffix", 2},
    {"find", find, "self sub start end", 2},
    {"rfind", rfind, "self sub start end", 2},
    {"index", index_of, "self sub start end", 2},
    {"rindex", rindex_of, "self sub start end", 2},
    {"count", count, "self sub start end", 2},
    {"replace", replace, "self old new count", 3},
    {"join", join, "self iterable", 2},
    {"ljust", ljust, "self width fillchar", 2},
    {"rjust", rjust, "self width fillchar", 2},
    {"center", center, "self width fillchar", 2},
    {"zfill", zfill, "self width", 2},
    {"isalpha", isalpha_text, "self", 1},
    {"isdigit", isdigit_text, "self", 1},
    {"isdecimal", isdecimal_text, "self", 1},
    {"isnumeric", isnumeric_text, "self", 1},
    {"isalnum", isalnum_text, "self", 1},
    {"isspace", isspace_text, "self", 1},
    {"isupper", isupper_text, "self", 1},
    {"islower", islower_text, "self", 1},
    {"isascii", isascii_text, "self", 1},
    {"format", format, NULL, 1},
};

const struct builtin *methods_text(size_t *total)
{
    *total = sizeof methods / sizeof *methods;
    return methods;
}
