/* SPDX-License-Identifier: Apache-2.0
 *
 * test_task_growth.c: the bytes that are encoded for the choices of an item. The sources are compiled here again, with
 * a counter of the bytes that they pass to the tokenizer.
 */
#include "text/bpe.h"
#include "text/tokenizer.h"

/* Bytes of all calls, and of the largest. */
static size_t encoded, largest;

static int encode_counted(const struct tokenizer *t, struct span *spans, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += spans[i].bytes;
    encoded += bytes;
    largest = bytes > largest ? bytes : largest;
    return tokenizer_encode_spans(t, spans, count);
}

#define tokenizer_encode_spans encode_counted
#define rows_read counted_rows_read
#define rows_read_file counted_rows_read_file
#define rows_encode_full counted_rows_encode_full
#define jsonl_read_id counted_jsonl_read_id
#define tasks_open counted_tasks_open
#define tasks_close counted_tasks_close
#define tasks_count counted_tasks_count
#define tasks_get counted_tasks_get
#define tasks_choices counted_tasks_choices
#define tasks_choice counted_tasks_choice
#define tasks_until counted_tasks_until
#define tasks_names counted_tasks_names
#define tasks_name counted_tasks_name
#define tasks_passed_over counted_tasks_passed_over
#include "batch/tasks.c"
#include "data/rows_read.c"
#undef tokenizer_encode_spans
#include "tokenizer_fixture.h"

#include <inttypes.h>

enum { CHOICES = 100 };

/* Write an item whose context is `words` times the text, and the letter x. */
static size_t write_item(const char *text, int words)
{
    FILE *f = fopen(at("quiz.jsonl"), "w");
    assert_non_null(f);
    fputs("{\"answer\": 0, \"context\": \"", f);
    for (int i = 0; i < words; i++)
        fputs(text, f);
    fputs("x\", \"choices\": [\" 0\"", f);
    for (int i = 1; i < CHOICES; i++)
        fprintf(f, ", \" %d\"", i);
    fputs("]}", f);
    assert_int_equal(fclose(f), 0);
    return strlen(text) * (size_t)words + 1;
}

static void open_item(const struct tokenizer *t)
{
    const char *path = at("quiz.jsonl");
    const struct tasks_options o = {.paths = &path, .path_count = 1, .vocab_size = t->vocab_size};
    struct tasks *tasks;
    encoded = largest = 0;
    check_ok(tasks_open(&o, t, &tasks), path);
    assert_int_equal(tasks_choices(tasks), CHOICES);
    tasks_close(tasks);
}

static void a_context_is_encoded_once(void **state)
{
    (void)state;
    struct tokenizer t = open_golden("qwen2", NULL, NULL);
    for (int words = 1000; words <= 4000; words *= 2) {
        const size_t bytes = write_item("a word ", words);
        open_item(&t);
        assert_in_range(encoded, bytes, bytes + (size_t)CHOICES * 16);
    }
    tokenizer_close(&t);
}

/* A context that cannot be cut is encoded with each choice, but not with all of them at once. */
static void a_context_in_one_piece_is_encoded_in_batches(void **state)
{
    (void)state;
    struct tokenizer t = open_golden("qwen2", NULL, NULL);
    const size_t bytes = write_item("7, ", 50000);
    open_item(&t);
    assert_in_range(encoded, CHOICES * bytes, (CHOICES + 2) * bytes);
    assert_in_range(largest, bytes, BATCH_BYTES + 2 * bytes);
    tokenizer_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_context_is_encoded_once),
        cmocka_unit_test(a_context_in_one_piece_is_encoded_in_batches),
    };
    return cmocka_run_group_tests_name("task_growth", tests, scratch_begin, scratch_end);
}
