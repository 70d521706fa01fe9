/* SPDX-License-Identifier: Apache-2.0
 *
 * logits-of: what the model of a GGUF file says to a text, on the CPU in float32: as a student, whose weights are
 * expanded; as a teacher, whose weights stay as they lie in the file; and the tokens that it goes on with.
 *
 *   logits-of FILE.gguf COUNT ID... >OUT
 * OUT: the student's logits, float32 [ids, vocabulary]; the teacher's; COUNT ids of greedy decoding, int32.
 */
#include "engine/engine.h"
#include "io/error.h"
#include "state/engine_struct.h"

#include <stdio.h>
#include <stdlib.h>

enum { TOKENS_MOST = 512 };

/* Of each id: the student's logits, then the teacher's. */
static int put_logits(struct engine *e, const int32_t *ids, int count)
{
    const size_t rows = (size_t)e->shape.rows, vocab = (size_t)e->shape.vocab;
    int32_t *batch = calloc(3 * rows, sizeof *batch); /* ids, positions, starts of documents */
    float *logits = calloc((size_t)count * vocab, sizeof *logits), *to[TOKENS_MOST];
    int rc = batch && logits ? 0 : fail(NJ_E_NOMEM, "no memory for the logits");
    for (int i = 0; rc == 0 && i < (int)rows; i++)
        batch[rows + (size_t)i] = i;
    for (int i = 0; rc == 0 && i < count; i++) {
        batch[i] = ids[i];
        to[i] = logits + (size_t)i * vocab;
    }
    for (int teacher = 0; rc == 0 && teacher < 2; teacher++) {
        const int32_t *pos = batch + rows;
        rc = engine_logits(e,
                           &(struct logits_batch){teacher, batch, pos, pos + rows, pos, to, count});
        fwrite(logits, sizeof *logits, (size_t)count * vocab, stdout);
    }
    free(batch);
    free(logits);
    return rc;
}

static int next(void *prompt, struct decode_prompt *out)
{
    struct decode_prompt *p = prompt;
    const int got = p->count > 0;
    *out = *p;
    p->count = 0;
    return got;
}

static int put_ids(void *user, const struct decode_prompt *p, const int32_t *ids, int count,
                   enum decode_end end)
{
    (void)user;
    (void)p;
    (void)end;
    fwrite(ids, sizeof *ids, (size_t)count, stdout);
    return 0;
}

static int put_greedy(struct engine *e, const int32_t *ids, int count, int more)
{
    struct decode_prompt p = {.ids = ids, .count = count, .most = more};
    const struct decode_io io = {.next = next, .generated = put_ids, .user = &p};
    return engine_decode(e, &io);
}

static int run(const char *path, const int32_t *ids, int count, int more)
{
    const struct train_options o = {.batch_size = 1,
                                    .seq_len = count + more,
                                    .grad_accum = 1,
                                    .temperature = 1,
                                    .kd_ratio = 1,
                                    .dtype = NJ_F32,
                                    .head_chunk = count + more,
                                    .decode_rows = 1};
    nj_context *context = NULL;
    struct engine *e = NULL;
    int rc = nj_context_create(&context, &(struct nj_options){.device = NJ_DEVICE_CPU});
    if (rc == 0)
        rc = engine_create(context, path, path, &o, NULL, NULL, &e);
    if (rc == 0)
        rc = put_logits(e, ids, count);
    if (rc == 0)
        rc = put_greedy(e, ids, count, more);
    engine_destroy(e);
    nj_context_destroy(context);
    return rc;
}

int main(int argc, char **argv)
{
    int32_t ids[TOKENS_MOST];
    const int count = argc - 3;
    if (count < 1 || count > TOKENS_MOST) {
        fprintf(stderr, "usage: logits-of FILE.gguf COUNT ID... >OUT\n");
        return 2;
    }
    for (int i = 0; i < count; i++)
        ids[i] = (int32_t)strtol(argv[3 + i], NULL, 10);
    const int rc = run(argv[1], ids, count, (int)strtol(argv[2], NULL, 10));
    if (rc != 0)
        fprintf(stderr, "logits-of: %s\n", fail_text());
    return rc != 0;
}
