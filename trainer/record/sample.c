/* SPDX-License-Identifier: Apache-2.0
 *
 * sample.c: see sample.h.
 */
#include "record/sample.h"

#include <stdlib.h>
#include <string.h>

#include "io/error.h"
#include "io/json_text.h"
#include "io/waits.h"

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

/* A text that is being continued. */
struct text {
    const struct sampling *how;
    const struct decode_prompt *prompt; /* NULL: it was taken */
    FILE *out;
    struct stopped_text generated; /* text so far, for the texts that end it */
    size_t written;                /* number of bytes of it that were written */
    enum decode_end end;           /* end of the tokens so far */
};

static int next(void *user, struct decode_prompt *out)
{
    struct text *t = user;
    if (t->prompt == NULL)
        return 0;
    *out = *t->prompt;
    t->prompt = NULL;
    return 1;
}

static void put_text(const struct tokenizer *t, const int32_t *ids, int count, FILE *out)
{
    for (int i = 0; i < count; i++) {
        size_t bytes;
        const char *text = tokenizer_decode(t, ids[i], &bytes);
        fwrite(text, 1, bytes, out);
    }
}

static int write_tokens(void *user, const struct decode_prompt *p, const int32_t *ids, int count,
                        enum decode_end end)
{
    struct text *t = user;
    int kept = end == DECODE_STOPPED ? count - 1 : count;
    (void)p;
    t->end = end;
    if (!stop_add_tokens(&t->how->stops, &t->generated, t->how->tokenizer, ids, &kept))
        return fail(NJ_E_NOMEM, "out of memory for the text");
    const size_t sure =
        end == DECODE_MORE ? stop_sure(&t->how->stops, &t->generated) : t->generated.text.count;
    if (sure > t->written)
        fwrite((const char *)t->generated.text.at + t->written, 1, sure - t->written, t->out);
    t->written = sure > t->written ? sure : t->written;
    fflush(t->out);
    waits_spoke();
    return t->generated.by != NULL;
}

json_t *sample_text(const struct tokenizer *t, const int32_t *ids, int count)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    if (f == NULL)
        return NULL;
    put_text(t, ids, count, f);
    json_t *out = fclose(f) == 0 ? json_text(text, bytes) : NULL;
    free(text);
    return out;
}

int sample_continue(const struct sampling *s, const int32_t *prompt, int64_t count, int64_t tokens,
                    FILE *out, struct sample_generated *generated)
{
    const struct decode_prompt p = {.ids = prompt, .count = (int)count, .most = (int)tokens};
    struct text t = {.how = s, .prompt = &p, .out = out};
    const struct decode_io io = {
        .next = next,
        .generated = write_tokens,
        .user = &t,
        .how = s->how,
        .stop = s->ends->stop,
        .stops = s->ends->stops,
    };
    int rc = engine_decode(s->engine, &io);
    if (generated != NULL)
        *generated = (struct sample_generated){
            rc ? NULL : json_text(t.generated.text.at, t.generated.text.count),
            t.end == DECODE_LENGTH && t.generated.by == NULL};
    if (rc == 0 && generated != NULL && generated->text == NULL)
        rc = fail(NJ_E_NOMEM, "out of memory for the text");
    free(t.generated.text.at);
    return rc;
}
