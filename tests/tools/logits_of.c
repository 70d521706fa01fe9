/* SPDX-License-Identifier: Apache-2.0
 *
 * logits-of: what the model of a GGUF file says to a text, on the CPU in float32: as a student, whose weights are
 * expanded; as a teacher, whose weights stay as they lie in the file; and the tokens that it goes on with.
 *
 *   logits-of FILE.gguf COUNT ID... >OUT
 * OUT: the student's logits, float32 [ids, vocabulary]; the teacher's; COUNT ids of greedy decoding, int32.
 */
#include "engine/engine_struct.h"
#include "engine/forward.h"
#include "engine/teacher.h"
#include "io/error.h"
#include "nojit_ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS_MOST = 512 };

static void put(const char *logits, const struct shape *s, int count)
{
    for (int i = 0; i < count; i++)
        fwrite(logits + (size_t)i * (size_t)s->ld * sizeof(float), sizeof(float), (size_t)s->vocab,
               stdout);
}

/* Device memory is the host's on the CPU. */
static void set_rows(struct engine *e, const int32_t *ids, int count)
{
    const struct shape *s = &e->shape;
    for (int i = 0; i < s->rows; i++) {
        e->mem.rows.ids[i] = i < count ? ids[i] : 0;
        e->mem.rows.pos[i] = i;
        e->mem.rows.doc_start[i] = 0;
    }
    for (int i = 0; i < s->chunk * s->chunks; i++)
        e->mem.rows.valid[i] = i < s->rows ? i : -1;
}

static int put_logits(struct engine *e, const int32_t *ids, int count)
{
    struct work w = engine_work(e);
    struct memory *m = &e->mem;
    const struct net *n = &e->student;
    const struct shape *s = &e->shape;
    const struct linear head = {n->T, s->chunk, s->vocab, n->c.hidden_size, .ldy = s->ld};
    set_rows(e, ids, count);
    net_forward(&w, n, &m->student, &m->rows);
    linear_fwd(&w, &head, m->logits, m->student.y, net_weight(n, n->p.head));
    put(m->logits, s, count);
    teacher_forward(&w, &e->teacher, &m->rows);
    teacher_keep(&w, &e->teacher, &m->rows, s->chunk * s->chunks);
    teacher_logits(&w, &e->teacher, 0, s->chunk, s->vocab, s->ld, m->logits);
    put(m->logits, s, count);
    return w.rc;
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
    const struct decode_io io = {.next = next, .said = put_ids, .user = &p};
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
