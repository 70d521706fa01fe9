/* SPDX-License-Identifier: Apache-2.0
 *
 * slices.c: a[from:to:step].
 */
#include "template/builtins.h"

#include "io/error.h"
#include "template/letters.h"

struct slice {
    int64_t from, to, step;
};

/* Read one end of a slice of `count` items. */
static int slice_end(struct run *r, const struct value *v, int64_t otherwise, int64_t least,
                     int64_t most, int64_t count, int64_t *out)
{
    *out = otherwise;
    if (v->kind == VALUE_ABSENT || v->kind == VALUE_NONE)
        return 0;
    if (!value_is_whole(v))
        return run_type_error(r, "an end of a slice must be a whole number", v);
    *out = v->whole < 0 ? (v->whole < -count ? -1 : v->whole + count) : v->whole;
    *out = *out < least ? least : *out > most ? most : *out;
    return 0;
}

static int slice_make(struct run *r, const struct value *from, const struct value *to,
                      const struct value *step, size_t items, struct slice *out)
{
    const int64_t count = (int64_t)items;
    *out = (struct slice){.step = 1};
    if (value_given(step) && step->kind != VALUE_NONE) {
        if (!value_is_whole(step) || step->whole == 0)
            return run_type_error(r, "the step of a slice must be a whole number, not 0", step);
        out->step = step->whole > count    ? count + 1
                    : step->whole < -count ? -count - 1
                                           : step->whole;
    }
    const bool back = out->step < 0;
    const int64_t least = back ? -1 : 0, most = back ? count - 1 : count;
    TRY(slice_end(r, from, back ? most : least, least, most, count, &out->from));
    return slice_end(r, to, back ? least : most, least, most, count, &out->to);
}

static bool slice_goes_on(const struct slice *s, int64_t at)
{
    return s->step > 0 ? at < s->to : at > s->to;
}

static int slice_list(struct run *r, const struct value *a, const struct slice *s,
                      struct value *out)
{
    struct list *list;
    const bool piece = s->step == 1;
    const size_t count = piece && s->to > s->from ? (size_t)(s->to - s->from) : 0;
    int rc = list_make(r, 0, &list);
    if (rc != 0)
        return rc;
    if (piece) { /* shares the items, which never change */
        list->at = count ? a->list->at + s->from : NULL;
        list->count = list->capacity = count;
    }
    for (int64_t i = s->from; !piece && slice_goes_on(s, i) && rc == 0; i += s->step)
        rc = list_add(r, list, a->list->at[i]);
    *out = value_list(a->kind, list);
    return rc != 0 ? rc : run_spend(r, list->count);
}

static int slice_text(struct run *r, const struct value *a, const struct slice *s,
                      struct value *out)
{
    struct list *letters;
    if (s->step == 1) {
        const size_t from = letters_offset(a->text, a->bytes, (size_t)s->from);
        const size_t wanted = s->to > s->from ? (size_t)(s->to - s->from) : 0;
        *out = value_text(a->text + from, letters_offset(a->text + from, a->bytes - from, wanted));
        out->markup = a->markup;
        return run_spend(r, a->bytes);
    }
    int rc = value_items(r, a, &letters);
    if (rc != 0)
        return rc;
    const size_t begin = run_capture(r);
    for (int64_t i = s->from; slice_goes_on(s, i) && rc == 0; i += s->step)
        rc = run_write(r, letters->at[i].text, letters->at[i].bytes);
    return run_captured(r, begin, rc, out);
}

int get_slice(struct run *r, const struct value *a, const struct value *from,
              const struct value *to, const struct value *step, struct value *out)
{
    struct slice s;
    size_t count;
    if (a->kind != VALUE_STRING && a->kind != VALUE_LIST && a->kind != VALUE_TUPLE)
        return run_type_error(r, "it cannot be sliced", a);
    TRY(value_length(r, a, &count));
    TRY(slice_make(r, from, to, step, count, &s));
    return a->kind == VALUE_STRING ? slice_text(r, a, &s, out) : slice_list(r, a, &s, out);
}
