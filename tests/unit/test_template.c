/* SPDX-License-Identifier: Apache-2.0
 *
 * test_template.c: templates write the same text as jinja2.
 */
#include "template/template.h"
#include "template_fixture.h"

static void templates_write_what_jinja2_writes(void **state)
{
    (void)state;
    check_golden("tests/golden/templates.json", 200, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(templates_write_what_jinja2_writes),
    };
    return cmocka_run_group_tests_name("template", tests, NULL, NULL);
}
