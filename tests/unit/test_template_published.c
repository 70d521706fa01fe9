/* SPDX-License-Identifier: Apache-2.0
 *
 * test_template_published.c: published chat templates, which are not kept in the tree, write the same text as jinja2,
 * byte for byte, and raise where it raises. tests/golden/make_templates.py says how to get them.
 */
#include "template/template.h"
#include "template_fixture.h"

static void published_templates_write_what_jinja2_writes(void **state)
{
    (void)state;
    const char *path = getenv("PUBLISHED_TEMPLATES");
    if (!path) {
        print_message("PUBLISHED_TEMPLATES names no file of tests/golden/make_templates.py\n");
        skip();
    }
    check_golden(path, 60, 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_templates_write_what_jinja2_writes),
    };
    return cmocka_run_group_tests_name("template_published", tests, NULL, NULL);
}
