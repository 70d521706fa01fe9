/* SPDX-License-Identifier: Apache-2.0
 *
 * sample.c: see sample.h.
 */
#include "record/sample.h"

#include <stdlib.h>
#include <string.h>

#include "io/error.h"
#include "io/random.h"

/* Uniform in [0,1) from (seed, position), so that a text can be repeated. */
static float uniform(uint64_t seed, uint64_t position)
{
    const uint64_t z = random_mix(seed * UINT64_C(0x9e3779b97f4a7c15) +
                                  (position + 1) * UINT64_C(0xbf58476d1ce4e5b9));
    return (float)(z >> 40) * 0x1p-24f;
}

int sample_encode(const struct tokenizer *t, const char *prompt, int32_t **ids, size_t *count)
{
    const int32_t begin = tokenizer_begin_of_text(t);
    const int32_t start = begin >= 0 ? begin : t->end_of_text;
    size_t capacity = 1;
    *count = 0;
    *ids = malloc(sizeof **ids);
    if (*ids == NULL)
        return fail(NJ_E_NOMEM, "out of memory for the prompt");
    if (begin >= 0 || prompt[0] == '\0')
        (*ids)[(*count)++] = start;
    if (start < 0 && prompt[0] == '\0')
        return fail(NJ_E_ARG,
                    "the prompt is empty and no token of the model begins a text; give one");
    return tokenizer_encode(t, prompt, strlen(prompt), ids, count, &capacity);
}

int sample_continue(const struct sampling *s, const int32_t *prompt, int64_t count, int64_t tokens,
                    FILE *out)
{
    const struct tokenizer *t = s->tokenizer;
    int32_t id = prompt[0], next = 0;
    for (int64_t pos = 0; pos + 1 < count + tokens; pos++) {
        const int err =
            engine_generate(s->engine, id, (int)pos, uniform(s->seed, (uint64_t)pos), &next);
        if (err)
            return err;
        if (pos + 1 < count) {
            id = prompt[pos + 1];
            continue;
        }
        if (next == t->end_of_text || next == t->end_of_turn)
            break;
        size_t bytes;
        const char *text = tokenizer_decode(t, next, &bytes);
        fwrite(text, 1, bytes, out);
        fflush(out);
        id = next;
    }
    return 0;
}
