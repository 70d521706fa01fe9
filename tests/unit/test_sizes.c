/* SPDX-License-Identifier: Apache-2.0
 *
 * test_sizes.c: sizes that come from files and options: sizes that cannot be addressed are refused, and nothing wraps
 * before that. tests/fuzz/engine/fuzz_plan.c compares plans with a sum in 128 bits.
 */
#include "base/checked.h"
#include "engine/engine.h"
#include "io/json_text.h"
#include "model/init.h"
#include "report/report.h"
#include "state/engine_struct.h"
#include "text/bpe.h"
#include "unit.h"

#include <sys/stat.h>

static void sums_and_products_stick(void **state)
{
    (void)state;
    const size_t half = (size_t)1 << 63, root = (size_t)1 << 32;
    assert_int_equal(size_add(SIZE_MAX - 1, 1), SIZE_MAX);
    assert_int_equal(size_add(half, half), SIZE_MAX);
    assert_int_equal(size_add(3, 4), 7);
    assert_int_equal(size_mul(root, root), SIZE_MAX);
    assert_int_equal(size_mul(root, root - 1), (root - 1) << 32);
    assert_int_equal(size_mul(SIZE_MAX, 0), 0);
    assert_int_equal(size_product(root, 8, root / 8 - 1), root * 8 * (root / 8 - 1));
    assert_int_equal(size_product(root, 8, root / 8, 1), SIZE_MAX);
    assert_int_equal(size_sub(SIZE_MAX, 256), SIZE_MAX);
    assert_int_equal(size_sub(512, 256), 256);
    assert_int_equal(size_up(257, 256), 512);
    assert_int_equal(size_up(SIZE_MAX - 255, 256), SIZE_MAX - 255);
    assert_int_equal(size_up(SIZE_MAX - 254, 256), SIZE_MAX);
}

/* The largest model and batch that are valid by themselves. */
static const struct model_config widest = {
    .model_type = "qwen2",
    .hidden_size = 1 << 24,
    CONFIG_PLAIN(1, 1, 64, 1 << 24, 0),
    .layers = 1024,
    .vocab_size = 8,
    .max_positions = 1 << 12,
    .bos_id = -1,
    .eos_id = -1,
    .rms_eps = 1e-6f,
    CONFIG_ROPE(1e4),
    .tied = true,
};
static const struct train_options most = {
    .batch_size = 1 << 12, .seq_len = 1 << 12, .grad_accum = 1, .steps = 1, .dtype = NJ_F32};

static void plans_beyond_all_addresses_are_refused(void **state)
{
    (void)state;
    struct train_options o = most;
    struct plan p;
    check_ok(config_check(&widest, "widest"), "config");
    check_refused(plan_make(&widest, NULL, &o, &p), NJ_E_NOMEM, "more memory than can be addressed",
                  "widest");
    o.batch_size = 1;
    o.seq_len = 8;
    check_ok(plan_make(&widest, NULL, &o, &p), "one sequence");
    assert_true(p.total_bytes > (size_t)1 << 63);
    o = most;
    o.seq_len++;
    check_refused(plan_make(&widest, NULL, &o, &p), NJ_E_ARG, "is too large; lower one", "rows");
}

/* If a plan has too many regions to list, it is too large, and nothing is written after its end. */
static void regions_are_counted(void **state)
{
    (void)state;
    struct {
        struct plan plan;
        unsigned char after[sizeof(struct plan_region)];
    } full = {.plan = {.count = PLAN_REGIONS}};
    const unsigned char zeros[sizeof full.after] = {0};
    struct net n = {.c = preset_find("nojit-tiny")->config, .T = NJ_F32};
    struct lora lora = {0};
    struct teacher none = {0};
    struct memory m;
    const struct train_options o = {
        .batch_size = 1, .seq_len = 8, .grad_accum = 1, .dtype = NJ_F32};
    check_ok(net_layout(&n, &o.lora, NULL, &lora), "layout");
    plan_layout(&n, &none, &o, (struct carve){0}, NULL, &m, &full.plan);
    assert_int_equal(full.plan.count, PLAN_REGIONS);
    assert_int_equal(full.plan.total_bytes, SIZE_MAX);
    assert_memory_equal(full.after, zeros, sizeof zeros);
    net_free(&n);
}

/* ---- files ---- */

static int read_model(const char *dir)
{
    struct model_config c;
    return config_read(dir, &c);
}

static int read_adapters(const char *dir)
{
    struct lora_config c;
    return lora_config_read(dir, &c);
}

static int read_index(const char *dir)
{
    struct tensors w;
    return st_open(dir, &w);
}

static int read_tokenizer(const char *dir)
{
    struct bpe *b;
    return bpe_read(dir, &b);
}

static int read_run(const char *dir)
{
    json_t *run;
    return report_read(dir, &run);
}

static const struct reader {
    const char *file;
    int (*read)(const char *dir);
    size_t most; /* bytes of a file; 0: any size */
} readers[] = {
    {"config.json", read_model, (size_t)16 << 20},
    {"adapter_config.json", read_adapters, (size_t)16 << 20},
    {"tokenizer.json", read_tokenizer, (size_t)256 << 20},
    {"model.safetensors.index.json", read_index, (size_t)256 << 20},
    {"metrics.jsonl", read_run, 0},
};
enum { READERS = sizeof readers / sizeof *readers };

static const char *path_in(const char *dir, const char *name)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

/* A pipe without a writer would block whoever opens it as a file, and a device never ends. */
static void what_is_no_file_is_refused(void **state)
{
    (void)state;
    for (int i = 0; i < READERS; i++) {
        const struct reader *r = &readers[i];
        char dir[512], name[32];
        for (int kind = 0; kind < 3; kind++) {
            snprintf(name, sizeof name, "kind%d-%d", i, kind);
            snprintf(dir, sizeof dir, "%s", make_folder(name));
            const char *path = path_in(dir, r->file);
            const int rc = kind == 0   ? mkfifo(path, 0600)
                           : kind == 1 ? symlink("/dev/zero", path)
                                       : mkdir(path, 0700);
            assert_int_equal(rc, 0);
            check_refused(r->read(dir), NJ_E_IO, "not a regular file", r->file);
        }
    }
}

static void files_have_a_bound(void **state)
{
    (void)state;
    for (int i = 0; i < READERS; i++) {
        const struct reader *r = &readers[i];
        char dir[512], name[32];
        if (r->most == 0)
            continue;
        snprintf(name, sizeof name, "large%d", i);
        snprintf(dir, sizeof dir, "%s", make_folder(name));
        write_text(path_in(dir, r->file), "{}");
        assert_int_equal(truncate(path_in(dir, r->file), (off_t)r->most + 1), 0);
        check_refused(r->read(dir), NJ_E_FORMAT, "the limit for this file is", r->file);
    }
}

/* Read a list that contains a text of `count` times `piece`. */
static int read_list(const char *piece, size_t count)
{
    const size_t each = strlen(piece), bytes = each * count + 3;
    char *text = malloc(bytes + 1);
    json_t *list;
    assert_non_null(text);
    text[0] = '[';
    for (size_t i = 0; i < count; i++)
        memcpy(text + 1 + i * each, piece, each);
    memcpy(text + 1 + count * each, "0]", 3);
    const int rc = json_read_text("list", text, bytes, 0, "use another", &list);
    assert_int_equal(rc == 0, list != NULL);
    json_decref(list);
    free(text);
    return rc;
}

static void lists_take_so_much_memory(void **state)
{
    (void)state;
    check_ok(read_list("[\"a\",\"b\"],", 1 << 18), "pairs, as merges are");
    check_ok(read_list("1,", 1 << 20), "numbers");
    check_ok(read_list("{},", 1 << 16), "few objects");
    check_refused(read_list("{},", 1 << 20), NJ_E_FORMAT, "needs more than the limit of",
                  "objects");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_and_products_stick),
        cmocka_unit_test(plans_beyond_all_addresses_are_refused),
        cmocka_unit_test(regions_are_counted),
        cmocka_unit_test(what_is_no_file_is_refused),
        cmocka_unit_test(files_have_a_bound),
        cmocka_unit_test(lists_take_so_much_memory),
    };
    alarm(60); /* kills the test if a pipe blocks it */
    return cmocka_run_group_tests_name("sizes", tests, scratch_begin, scratch_end);
}
