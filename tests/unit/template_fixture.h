/* SPDX-License-Identifier: Apache-2.0
 *
 * template_fixture.h: outputs of jinja2, written by tests/golden/make_templates.py.
 */
#ifndef NOJIT_TESTS_TEMPLATE_FIXTURE_H
#define NOJIT_TESTS_TEMPLATE_FIXTURE_H

#include "io/error.h"
#include "template/template.h"
#include "unit.h"

#include <jansson.h>

/* Print the first difference of two texts. */
static inline void say_difference(const char *name, size_t set, int rc,
                                  const struct template_text *text, const json_t *want)
{
    const char *wanted = json_string_value(want);
    const size_t bytes = json_string_length(want);
    size_t at = 0;
    while (!rc && wanted && at < bytes && at < text->bytes && text->text[at] == wanted[at])
        at++;
    print_message("%s, variables %zu, byte %zu: %.*s; jinja2: %.80s\n", name, set, at,
                  rc ? (int)strlen(fail_text())
                     : (int)(text->bytes - at > 80 ? 80 : text->bytes - at),
                  rc ? fail_text() : text->text + at, wanted ? wanted + at : "raises");
}

static inline bool text_is(const json_t *want, const char *text, size_t bytes)
{
    return json_string_length(want) == bytes &&
           (bytes == 0 || memcmp(json_string_value(want), text, bytes) == 0);
}

/* Return whether the marked parts equal those listed after the text. */
static inline bool same_spans(const struct template_text *text, const json_t *want)
{
    bool same = text->spans + 1 == json_array_size(want) && !text->spans_unknown;
    for (size_t i = 0; i < text->spans && same; i++)
        same = text_is(json_array_get(want, i + 1), text->text + text->span[i].begin,
                       text->span[i].end - text->span[i].begin);
    return same;
}

/* Compare one output; print a difference, and return whether there is one. */
static inline bool output_differs(const char *name, size_t set, int rc,
                                  const struct template_text *text, const json_t *want)
{
    const json_t *whole = json_is_array(want) ? json_array_get(want, 0) : want;
    const bool same = json_is_null(want) ? rc == NJ_E_FORMAT
                                         : rc == 0 && text_is(whole, text->text, text->bytes) &&
                                               (!json_is_array(want) || same_spans(text, want));
    if (!same)
        say_difference(name, set, rc, text, whole);
    return !same;
}

/* Run a template on all sets of variables; return how many outputs differ. */
static inline int compare_template(const json_t *row, json_t *sets)
{
    const char *name = json_string_value(json_object_get(row, "name"));
    const json_t *source = json_object_get(row, "text"), *wants = json_object_get(row, "out");
    struct template_text text = {0};
    struct template *t;
    json_t *variables;
    size_t i;
    int differ = 0;
    const int parsed =
        template_parse(name, json_string_value(source), json_string_length(source), &t);
    json_array_foreach(sets, i, variables)
    {
        const int rc = parsed ? parsed : template_render(t, variables, &text);
        differ += output_differs(name, i, rc, &text, json_array_get(wants, i));
    }
    template_text_free(&text);
    template_free(t);
    return differ;
}

/* Compare a file with at least this many templates and sets of variables. */
static inline void check_golden(const char *path, size_t templates, size_t sets)
{
    json_t *root = json_load_file(path, 0, NULL), *row;
    json_t *rows = json_object_get(root, "templates"), *all = json_object_get(root, "variables");
    size_t i;
    int differ = 0;
    assert_true(json_array_size(rows) >= templates && json_array_size(all) >= sets);
    json_array_foreach(rows, i, row) differ += compare_template(row, all);
    json_decref(root);
    assert_int_equal(differ, 0);
}

#endif
