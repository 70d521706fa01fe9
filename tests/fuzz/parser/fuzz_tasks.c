/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_tasks.c: lines of tasks, and the rows that their choices make, with a tokenizer that has the tokens of ChatML.
 * Run from the root of the tree.
 */
#include "batch/task_rows.h"
#include "fuzz.h"
#include "golden_tokenizer.h"
#include "io/error.h"

enum { LIMIT = 64, BATCH = 2 };

static void check_ids(const struct tokenizer *t, const int32_t *ids, int count)
{
    FUZZ_CHECK(count > 0);
    for (int i = 0; i < count; i++)
        FUZZ_CHECK(ids[i] >= 0 && ids[i] < t->vocab_size);
}

static void check_choices(const struct tokenizer *t, const struct tasks *tasks,
                          const struct task_item *it)
{
    FUZZ_CHECK(it->choices >= 2 && it->gold >= 0 && it->gold < it->choices);
    for (int i = 0; i < it->choices; i++) {
        struct task_choice c;
        tasks_choice(tasks, it->choice + i, &c);
        check_ids(t, c.ids, c.count);
        FUZZ_CHECK(c.characters > 0);
    }
}

static void check_text(const struct tasks *tasks, const struct task_item *it)
{
    FUZZ_CHECK(it->answer && it->answer[it->answer_bytes] == '\0' && it->most >= 0);
    for (int i = 0; i < it->untils; i++) {
        size_t bytes;
        const char *until = tasks_until(tasks, it->until + i, &bytes);
        FUZZ_CHECK(bytes > 0 && until[bytes] == '\0');
    }
}

static void check_items(const struct tokenizer *t, const struct tasks *tasks)
{
    FUZZ_CHECK(tasks_count(tasks) > 0 && tasks_names(tasks) > 0);
    for (int64_t i = 0; i < tasks_count(tasks); i++) {
        struct task_item it;
        tasks_get(tasks, i, &it);
        check_ids(t, it.ids, it.count);
        FUZZ_CHECK(it.line > 0 && it.task >= 0 && it.task < tasks_names(tasks));
        FUZZ_CHECK(*tasks_name(tasks, it.task) && (!it.id || *it.id));
        if (it.kind == TASK_CHOICE)
            check_choices(t, tasks, &it);
        else
            check_text(tasks, &it);
    }
}

/* Each choice is scored, within the batch. */
static void check_rows(const struct tasks *tasks)
{
    struct task_rows *rows;
    struct task_batch b;
    int64_t choices = 0;
    if (task_rows_make(tasks, LIMIT, LIMIT / 2, &rows) != 0)
        return; /* a choice is longer */
    const int S = task_rows_length(rows);
    FUZZ_CHECK(S >= 1 && S <= LIMIT && task_batch_open(rows, BATCH, &b) == 0);
    for (int64_t row = 0; row < task_rows_count(rows); row += BATCH) {
        task_batch_fill(rows, row, &b);
        choices += b.choices;
        FUZZ_CHECK(b.count <= BATCH * S);
        for (int i = 0; i < b.count; i++)
            FUZZ_CHECK(b.at[i] >= 0 && b.at[i] < BATCH * S && b.owner[i] >= 0);
    }
    FUZZ_CHECK(choices == tasks_choices(tasks));
    task_batch_close(&b);
    task_rows_free(rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct tokenizer t;
    if (!t.bpe)
        open_qwen2(&t);
    const char *path = fuzz_file("lines.jsonl", data, bytes);
    const struct tasks_options o = {.paths = &path, .path_count = 1, .vocab_size = t.vocab_size};
    struct tasks *tasks;
    const int rc = tasks_open(&o, &t, &tasks);
    fuzz_verdict(rc == 0, fail_text());
    if (rc == 0) {
        check_items(&t, tasks);
        if (tasks_choices(tasks) > 0)
            check_rows(tasks);
    }
    tasks_close(tasks);
    return 0;
}
