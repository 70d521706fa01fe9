/* SPDX-License-Identifier: Apache-2.0
 *
 * book.h: prompts for a decoder, and the texts that it writes after them. The including file defines the largest number
 * of texts, BOOK_TEXTS, and of tokens per text, BOOK_TOKENS.
 */
#ifndef NOJIT_TESTS_BOOK_H
#define NOJIT_TESTS_BOOK_H

#include "engine_fixture.h"

/* The texts that some prompts led to. */
struct book {
    const struct decode_prompt *prompt;
    int count, taken;
    int32_t text[BOOK_TEXTS][BOOK_TOKENS];
    int length[BOOK_TEXTS];
    enum decode_end end[BOOK_TEXTS];
};

static void book_open(struct book *b, const struct decode_prompt *prompts, int count)
{
    assert_true(count <= BOOK_TEXTS);
    memset(b, 0, sizeof *b);
    b->prompt = prompts;
    b->count = count;
}

static int book_next(void *user, struct decode_prompt *out)
{
    struct book *b = user;
    if (b->taken == b->count)
        return 0;
    *out = b->prompt[b->taken];
    out->user = &b->text[b->taken++];
    return 1;
}

static int book_generated(void *user, const struct decode_prompt *p, const int32_t *ids, int count,
                          enum decode_end end)
{
    struct book *b = user;
    const ptrdiff_t i = (int32_t(*)[BOOK_TOKENS])p->user - b->text;
    assert_int_equal(b->end[i], DECODE_MORE);
    assert_true(count > 0 && b->length[i] + count <= p->most);
    memcpy(&b->text[i][b->length[i]], ids, (size_t)count * sizeof *ids);
    b->length[i] += count;
    b->end[i] = end;
    return 0;
}

/* Make prompts of 1, 2, ... tokens, all different. */
static void make_prompts(struct decode_prompt *out, int32_t (*ids)[BOOK_TOKENS], int count)
{
    for (int i = 0; i < count; i++) {
        const int length = 1 + i * i % 17;
        for (int k = 0; k < length; k++)
            ids[i][k] = (7 * i + 3 * k + 1) % VOCAB;
        out[i] = (struct decode_prompt){.ids = ids[i],
                                        .count = length,
                                        .most = 9 + 5 * i % (BOOK_TOKENS - 9),
                                        .number = 100 + i};
    }
}

#endif
