/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_generate.c: `nojit generate`: continues a text, a token at a time.
 */
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "run.h"

/* Uniform in [0,1) from (seed, position): splitmix64 (Steele, Lea and Flood 2014), so that a text
 * can be repeated. */
static float uniform(uint64_t seed, uint64_t position)
{
    uint64_t z =
        seed * UINT64_C(0x9e3779b97f4a7c15) + (position + 1) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    return (float)(z >> 40) * 0x1p-24f;
}

static void put_token(const struct tokenizer *t, int32_t id)
{
    char bytes[8];
    fwrite(bytes, 1, (size_t)tokenizer_decode(t, id, bytes), stdout);
    fflush(stdout);
}

static int continue_text(struct run *r, const int32_t *prompt, int64_t count)
{
    const struct settings *s = r->s;
    const int64_t end = count + s->max_tokens;
    int32_t id = prompt[0], next = 0;
    fwrite(s->prompt, 1, strlen(s->prompt), stdout);
    for (int64_t pos = 0; pos + 1 < end; pos++) {
        const int err = engine_generate(r->engine, id, (int)pos, (float)s->sample_temperature,
                                        uniform((uint64_t)s->seed, (uint64_t)pos), &next);
        if (err)
            return err;
        if (pos + 1 < count) {
            id = prompt[pos + 1];
            continue;
        }
        if (next == r->tokenizer.end_of_text)
            break;
        put_token(&r->tokenizer, next);
        id = next;
    }
    putchar('\n');
    return 0;
}

static int generate(struct run *r)
{
    int32_t *ids = NULL;
    size_t count = 0, capacity = 0;
    int err = tokenizer_open(r->student, &r->tokenizer);
    if (!err)
        err = run_engine_options(r);
    if (!err && r->s->prompt[0] != '\0')
        err = tokenizer_encode(&r->tokenizer, r->s->prompt, strlen(r->s->prompt), &ids, &count,
                               &capacity);
    const int32_t start = r->tokenizer.end_of_text;
    const int64_t needed = (int64_t)(count > 0 ? count : 1) + r->s->max_tokens;
    if (!err && needed > r->options.seq_len)
        err = fail(NJ_E_ARG,
                   "prompt and --max-tokens make %lld tokens, more than --seq-len %d; raise it",
                   (long long)needed, r->options.seq_len);
    r->options.batch_size = 1;
    r->options.steps = 0;
    if (!err)
        err = engine_create(r->ctx, r->student, NULL, &r->options, run_say, r, &r->engine);
    if (!err)
        err = continue_text(r, count > 0 ? ids : &start, count > 0 ? (int64_t)count : 1);
    free(ids);
    return err;
}

int cmd_generate(const struct settings *s)
{
    struct run r;
    int err = need(s->student, "model", "generate");
    if (err)
        return err;
    err = run_open(&r, s);
    if (!err)
        err = generate(&r);
    run_close(&r);
    return err;
}
