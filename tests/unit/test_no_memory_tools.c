/* SPDX-License-Identifier: Apache-2.0
 *
 * test_no_memory_tools.c: blobcheck reading a model, with each allocation refused in turn: it must report that and free
 * what it had.
 */
#include "check/blobcheck.h"
#include "refused_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/nojit-keys-XXXXXX";
static char path[64];

static int load(char why[WHY_BYTES])
{
    static struct key of[] = {{.key = "add.lp"}, {.key = "attn_fwd.lp.d64"}};
    const struct key_table keys = {.keys = of, .count = 2};
    struct report r = {0};
    struct model_keys m;
    const int rc = model_keys_read(dir, &keys, &m, &r, why);
    if (rc == 0) {
        assert_true(m.used[0] && m.used[1]);
        model_keys_free(&m);
    }
    report_free(&r);
    return rc;
}

static void refusals_are_told_and_leak_nothing(void **state)
{
    for (int stays_so = 0; stays_so < 2; stays_so++) {
        for (long n = 0;; n++) {
            char why[WHY_BYTES] = "";
            refuse_from(n, stays_so);
            const int rc = load(why);
            armed = false;
            assert_int_equal(live, 0);
            if (rc == 0 && until >= 0) {
                assert_true(n > 5);
                break;
            }
            if (rc == 0 || !strstr(why, "memory"))
                fail_msg("without allocation %ld: got %d \"%s\"", n + 1, rc, why);
        }
    }
    (void)state;
}

static int write_config(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/config.json", dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("{\"model_type\": \"qwen2\", \"hidden_size\": 128, \"num_attention_heads\": 2}", f);
    assert_int_equal(fclose(f), 0);
    return 0;
}

static int remove_config(void **state)
{
    (void)state;
    return unlink(path) | rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(refusals_are_told_and_leak_nothing)};
    return cmocka_run_group_tests(tests, write_config, remove_config);
}
