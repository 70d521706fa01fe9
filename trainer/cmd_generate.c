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
    size_t bytes;
    const char *text = tokenizer_decode(t, id, &bytes);
    fwrite(text, 1, bytes, stdout);
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
        if (next == r->tokenizer.end_of_text || next == r->tokenizer.end_of_turn)
            break;
        put_token(&r->tokenizer, next);
        id = next;
    }
    putchar('\n');
    return 0;
}

/* The prompt after the token that begins texts; without either, after the one that ends them. */
static int encode_prompt(struct run *r, int32_t **ids, size_t *count)
{
    const int32_t begin = tokenizer_begin_of_text(&r->tokenizer);
    const int32_t start = begin >= 0 ? begin : r->tokenizer.end_of_text;
    const char *prompt = r->s->prompt;
    size_t capacity = 1;
    *ids = malloc(sizeof **ids);
    if (*ids == NULL)
        return fail(NJ_E_NOMEM, "out of memory for the prompt");
    if (begin >= 0 || prompt[0] == '\0')
        (*ids)[(*count)++] = start;
    if (start < 0 && prompt[0] == '\0')
        return fail(NJ_E_ARG,
                    "--prompt is empty and no token of the model begins a text; give one");
    return tokenizer_encode(&r->tokenizer, prompt, strlen(prompt), ids, count, &capacity);
}

static int generate(struct run *r)
{
    int32_t *ids = NULL;
    size_t count = 0;
    int err = tokenizer_open(r->student, &r->tokenizer);
    if (!err)
        err = run_engine_options(r);
    if (!err)
        err = encode_prompt(r, &ids, &count);
    const int64_t needed = (int64_t)count + r->s->max_tokens;
    if (r->options.seq_len == 0)
        r->options.seq_len = (int)needed;
    if (!err && needed > r->options.seq_len)
        err = fail(NJ_E_ARG,
                   "prompt and --max-tokens make %lld token%s, more than --seq-len %d; raise it",
                   (long long)needed, plural(needed), r->options.seq_len);
    r->options.batch_size = 1;
    r->options.steps = 0;
    if (!err)
        err = engine_create(r->ctx, r->student, NULL, &r->options, run_say, r, &r->engine);
    if (!err)
        err = continue_text(r, ids, (int64_t)count);
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
