/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_options.c: a YAML file of options, for `nojit distill`.
 */
#include "fuzz.h"
#include "io/error.h"
#include "options/options.h"

static void visit(void *user, const struct setting *s)
{
    (void)user;
    for (size_t i = 0; i < s->count; i++)
        FUZZ_CHECK(s->name && s->value[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const struct command_info *c = &commands[0]; /* distill */
    struct settings s = {0};
    const int rc = option_file_read(c, fuzz_file("options.yaml", data, bytes), &s);
    fuzz_verdict(rc == 0 && s.refused_count == 0, fail_text());
    if (rc == 0)
        settings_visit(c, &s, visit, NULL);
    settings_free(&s);
    return 0;
}
