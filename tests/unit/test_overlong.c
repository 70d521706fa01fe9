/* SPDX-License-Identifier: Apache-2.0
 *
 * test_overlong.c: documents longer than a row: conversations stay whole, and longer ones are cut, dropped or split
 * according to --overlong, and counted.
 */
#include "batch/data.h"
#include "unit.h"

enum { S = 8, END = 256 };
static const struct tokenizer bytes_tokenizer = {
    .kind = "bytes", .vocab_size = END + 1, .end_of_text = END, .end_of_turn = -1};

/* 8 tokens, which fit into 7 positions; 12 tokens, longer than a row, with 3 targets beyond it; a prompt of 12, which
 * leaves no target in a row; a text of 12. */
static const char lines[] = "{\"prompt\": \"aaaa\", \"completion\": \"bbb\"}\n"
                            "{\"prompt\": \"cccc\", \"completion\": \"ddddddd\"}\n"
                            "{\"prompt\": \"eeeeeeeeeeee\", \"completion\": \"f\"}\n"
                            "{\"text\": \"ggggggggggg\"}\n";

static struct data_options options(const char *const *path, enum packing packing,
                                   enum overlong overlong)
{
    return (struct data_options){.paths = path,
                                 .path_count = 1,
                                 .packing = packing,
                                 .overlong = overlong,
                                 .seq_len = S,
                                 .batch_size = 1,
                                 .vocab_size = END + 1};
}

/* Open the lines and return all targets of an epoch as text; rows are separated by '|', and '.' is the end of a
 * text. */
static char *targets(enum packing packing, enum overlong overlong, struct overlong_count *n,
                     char *out)
{
    write_text(at("long.jsonl"), lines);
    const char *path = at("long.jsonl");
    const struct data_options o = options(&path, packing, overlong);
    struct data *d;
    struct batch b;
    size_t length = 0;
    check_ok(data_open(&o, &bytes_tokenizer, &d), "open");
    for (int64_t row = 0; row < data_windows(d); row++) {
        check_ok(batches_next(data_batches(d), &b), "next");
        for (int i = 0; i < S; i++)
            if (b.target[i] != IGNORED)
                out[length++] = b.target[i] == END ? '.' : (char)b.target[i];
        out[length++] = '|';
    }
    out[length] = '\0';
    data_overlong(d, n);
    data_close(d);
    return out;
}

static void prompts_are_cut_and_texts_split(void **state)
{
    (void)state;
    struct overlong_count n;
    char got[256];
    assert_string_equal(targets(PACKING_AUTO, OVERLONG_AUTO, &n, got), "bbb.|ddddd|gggggggg|gg.|");
    assert_int_equal(n.documents, 4);
    assert_int_equal(n.cut, 1);
    assert_int_equal(n.dropped, 1);
    assert_int_equal(n.empty, 1);
    assert_int_equal(n.split, 1);
    assert_int_equal(n.lost, 3 + 2);
    assert_int_equal(n.longest, 14);
}

static void each_way_of_overlong_does_what_it_says(void **state)
{
    (void)state;
    struct overlong_count n;
    char got[256];
    assert_string_equal(targets(PACKING_NONE, OVERLONG_CUT, &n, got), "bbb.|ddddd|gggggggg|");
    assert_int_equal(n.cut, 2);
    assert_int_equal(n.lost, 3 + 2 + 3);
    assert_string_equal(targets(PACKING_NONE, OVERLONG_DROP, &n, got), "bbb.|");
    assert_int_equal(n.dropped, 3);
    assert_int_equal(n.lost, 8 + 2 + 11);
    assert_string_equal(targets(PACKING_NONE, OVERLONG_SPLIT, &n, got),
                        "bbb.|ddddd|dd.||f.|gggggggg|gg.|");
    assert_int_equal(n.split, 3);
    assert_int_equal(n.lost, 0);
}

static void text_alone_is_wrapped(void **state)
{
    (void)state;
    write_text(at("text.jsonl"), "{\"text\": \"aaaaaaaaaaa\"}\n{\"text\": \"b\"}\n");
    const char *path = at("text.jsonl");
    struct data_options o = options(&path, PACKING_AUTO, OVERLONG_AUTO);
    struct data *d;
    check_ok(data_open(&o, &bytes_tokenizer, &d), "open");
    assert_int_equal(data_packing(d), PACKING_WRAPPED);
    data_close(d);
    o.overlong = OVERLONG_DROP;
    check_refused(data_open(&o, &bytes_tokenizer, &d), NJ_E_ARG, "add --packing bfd", "wrapped");
}

/* Held-out answers are evaluated after their prompts, and each of them once. */
static void held_out_prompts_stay_whole(void **state)
{
    (void)state;
    write_text(at("held.jsonl"), lines);
    const char *path = at("held.jsonl");
    struct data_options o = options(&path, PACKING_AUTO, OVERLONG_AUTO);
    struct data *d;
    struct batch b;
    int64_t valid = 0;
    o.once = true;
    check_ok(data_open(&o, &bytes_tokenizer, &d), "open");
    assert_int_equal(data_packing(d), PACKING_BFD);
    while (batches_next(data_batches(d), &b) == 0)
        valid += b.valid;
    assert_int_equal(valid, 4 + 8 + 2 + 11);
    data_close(d);
}

static void what_was_too_long_is_said(void **state)
{
    (void)state;
    write_text(at("long.jsonl"), lines);
    const char *path = at("long.jsonl");
    struct data_options o = options(&path, PACKING_BFD, OVERLONG_AUTO);
    struct data *d;
    char text[512];
    check_ok(data_open(&o, &bytes_tokenizer, &d), "open");
    assert_string_equal(
        data_overlong_text(d, text, sizeof text),
        "3 of 4 documents are longer than a sequence of 8: 1 cut at its end, 1 left "
        "out, for a row would hold nothing trained, 1 split over several; 5 trained "
        "tokens are lost; --seq-len 13 holds the longest");
    data_close(d);
    o.seq_len = 13;
    check_ok(data_open(&o, &bytes_tokenizer, &d), "longer");
    assert_null(data_overlong_text(d, text, sizeof text));
    data_close(d);
    o.seq_len = 2;
    o.overlong = OVERLONG_DROP;
    check_refused(data_open(&o, &bytes_tokenizer, &d), NJ_E_FORMAT,
                  "each document is longer than a sequence of 2, so none remains; raise --seq-len "
                  "(the longest takes 13)",
                  "all dropped");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prompts_are_cut_and_texts_split),
        cmocka_unit_test(each_way_of_overlong_does_what_it_says),
        cmocka_unit_test(text_alone_is_wrapped),
        cmocka_unit_test(held_out_prompts_stay_whole),
        cmocka_unit_test(what_was_too_long_is_said),
    };
    return cmocka_run_group_tests_name("overlong", tests, scratch_begin, scratch_end);
}
