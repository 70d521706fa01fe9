/* SPDX-License-Identifier: Apache-2.0
 *
 * test_template_limits.c: templates that would never end, or that fail, end with one sentence and the line.
 */
#include "template/template.h"
#include "unit.h"

#define NEST4(x) x x x x

static const struct {
    const char *template, *part;
} failing[] = {
    {"{% set l = range(99999) %}{% for a in l %}{% for b in l %}{% endfor %}{% endfor %}",
     "beyond the limit of steps"},
    {"{% set ns = namespace(a='abcdefgh') %}{% for i in range(99) %}{% set ns.a = ns.a + ns.a %}"
     "{% endfor %}",
     "more than the limit of 512 MiB of memory"},
    {"{% set a = 'abcdefgh' * 1000000 %}{% for i in range(99) %}{{ a }}{% endfor %}",
     "more than the limit of 256 MiB"},
    {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "beyond the limit of 1000 levels"},
    {"{% set ns = namespace(a=[]) %}{% for i in range(2000) %}{% set ns.a = [ns.a] %}{% endfor %}"
     "{{ ns.a }}",
     "beyond the limit of 1000 levels"},
    {"a\nb\n{{ raise_exception('odd roles') }}",
     "t.jinja:3: the chat template refuses the conversation: odd roles"},
    {"a\n{{ missing.x }}", "t.jinja:2: 'missing' is undefined, and so it has no attributes"},
    {"\n\n{% nope %}", "t.jinja:3: 'nope' where a statement that chat templates have must come"},
    {"{{ x | urlize }}", "t.jinja:1: the filter urlize of jinja2 is not supported"},
    {"{% include 'x' %}", "'include' where a statement that chat templates have must come"},
    {"{{ 'a'.encode() }}", "encode of a value of type str is not supported"},
    {"{{ 9223372036854775807 + 1 }}", "a whole number has more than 64 bits"},
    {"{{ 99999999999999999999 }}", "a whole number has more than 64 bits"},
    {"{% if 1 %}\n{{ '\xff' }}", "t.jinja:2: not UTF-8"},
    {"{{ " NEST4(NEST4(NEST4(NEST4("(")))) "1", "nested"},
};

static void failures_have_a_sentence_and_the_line(void **state)
{
    (void)state;
    json_t *none = json_object();
    for (size_t i = 0; i < sizeof failing / sizeof *failing; i++) {
        struct template *t;
        struct template_text text = {0};
        const char *source = failing[i].template;
        int rc = template_parse("t.jinja", source, strlen(source), &t);
        if (!rc)
            rc = template_render(t, none, &text);
        check_refused(rc, NJ_E_FORMAT, failing[i].part, source);
        template_text_free(&text);
        template_free(t);
    }
    json_decref(none);
}

/* A template is parsed once and run many times, each time with the same result. */
static void runs_of_templates_leave_nothing_behind(void **state)
{
    (void)state;
    static const char source[] = "{% set ns = namespace(n=n) %}{% set ns.n = ns.n + 1 %}"
                                 "{% generation %}{{ ns.n }}{% endgeneration %}{{ x }}";
    struct template *t;
    struct template_text text = {0};
    check_ok(template_parse("t.jinja", source, strlen(source), &t), "parse");
    for (int i = 9; i < 12; i++) {
        char want[16];
        json_t *variables = json_pack("{s:i}", "n", i);
        snprintf(want, sizeof want, "%d", i + 1);
        check_ok(template_render(t, variables, &text), "render");
        assert_int_equal(text.bytes, strlen(want));
        assert_memory_equal(text.text, want, text.bytes);
        assert_int_equal(text.spans, 1);
        assert_int_equal(text.span[0].end, text.bytes);
        json_decref(variables);
    }
    template_text_free(&text);
    template_free(t);
}

/* The output of a macro has no place in the text until it is written. */
static void parts_marked_within_a_macro_have_no_place(void **state)
{
    (void)state;
    static const char source[] = "{% macro m() %}{% generation %}a{% endgeneration %}{% endmacro %}"
                                 "{{ m() }}";
    struct template *t;
    struct template_text text = {0};
    json_t *none = json_object();
    check_ok(template_parse("t.jinja", source, strlen(source), &t), "parse");
    check_ok(template_render(t, none, &text), "render");
    assert_true(text.spans_unknown && text.spans == 0 && template_marks_generation(t));
    template_text_free(&text);
    template_free(t);
    json_decref(none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failures_have_a_sentence_and_the_line),
        cmocka_unit_test(runs_of_templates_leave_nothing_behind),
        cmocka_unit_test(parts_marked_within_a_macro_have_no_place),
    };
    return cmocka_run_group_tests_name("template_limits", tests, NULL, NULL);
}
