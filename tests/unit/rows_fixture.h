/* SPDX-License-Identifier: Apache-2.0
 *
 * rows_fixture.h: the documents of a file of rows, as text.
 */
#ifndef NOJIT_TESTS_ROWS_FIXTURE_H
#define NOJIT_TESTS_ROWS_FIXTURE_H

#include "batch/data.h"
#include "batch/tokenize.h"
#include "tokenizer_fixture.h"

static const struct row_rules plain;
static const struct split_choice together;

static inline struct data *open_file(const char *path, const struct row_rules *rules,
                                     const struct tokenizer *t, int seq_len)
{
    struct data *d = NULL;
    const struct data_options o = {.paths = &path,
                                   .path_count = 1,
                                   .packing = PACKING_WRAPPED,
                                   .seq_len = seq_len,
                                   .batch_size = 1,
                                   .vocab_size = t->vocab_size,
                                   .rules = *rules,
                                   .once = true};
    check_ok(data_open(&o, t, &d), path);
    return d;
}

/* Write the documents of a file as text: the tokens of all ids, with braces around targets that have a loss. */
static inline char *as_text(const char *path, const struct row_rules *rules,
                            const struct tokenizer *t, char *out, size_t room)
{
    struct data *d = open_file(path, rules, t, 512);
    struct batch b;
    size_t n = 0, bytes;
    bool special, open = false;
    assert_int_equal(batches_next(data_batches(d), &b), 0);
    const int tokens = (int)data_tokens(d);
    assert_in_range(tokens, 2, 512);
    for (int i = 0; i < tokens; i++) {
        const bool loss = i > 0 && b.target[i - 1] != IGNORED;
        /* the last token is a target only */
        const int32_t id = i < tokens - 1 ? b.ids[i] : t->end_of_text;
        const char *text = tokenizer_token(t, id, &bytes, &special);
        n += (size_t)snprintf(out + n, room - n, "%s%.*s",
                              loss == open ? ""
                              : loss       ? "{"
                                           : "}",
                              (int)bytes, text);
        open = loss;
        if (loss)
            assert_int_equal(b.target[i - 1], id);
    }
    if (open)
        snprintf(out + n, room - n, "}");
    data_close(d);
    return out;
}

#endif
