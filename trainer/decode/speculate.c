/* SPDX-License-Identifier: Apache-2.0
 *
 * speculate.c: speculative decoding with the student as draft model of the teacher, to count accepted tokens. Drafts
 * are drawn on the host from the same logits that they are judged by: a decoder with a cache may round differently,
 * and tokens would come from another distribution than the q of the rule. So nothing is cached, each token of a draft
 * is a pass of the student, and the loop is exact but not fast.
 */
#include "decode/speculate.h"

#include "base/try.h"
#include "decode/rejection.h"
#include "decode/row_logits.h"
#include "io/error.h"
#include "io/random.h"
#include "state/engine_struct.h"

#include <stdlib.h>
#include <string.h>

/* Purposes of the random numbers of a position. Each is used once: a position has one token, and drafts behind a
 * rejected one are dropped before they are judged. */
enum purpose { TO_DRAFT, TO_ACCEPT, TO_REPLACE, PURPOSES };

/* A text being written. */
struct text {
    struct decode_prompt prompt;
    int32_t *ids;      /* tokens: prompt, text so far, draft */
    int count, drafts; /* number of tokens before the draft, and in it */
    bool active, ends; /* ends: the draft's last token ends the text */
};

struct session {
    struct engine *e;
    const struct decode_io *io;
    int draft; /* largest number of tokens of a draft */
    struct speculate_result *out;
    int B, S, V;
    int32_t *ids, *pos, *doc_start, *at; /* arrays of a batch; at: [B (draft + 1)] */
    struct text *text;                   /* [B] */
    float *student, *teacher;            /* logits, [B, draft, V] and [B, draft + 1, V] */
    float **to;                          /* [B (draft + 1)] */
    double *p, *q;                       /* [V] */
    bool more;                           /* prompts may still come */
};

static double uniform(const struct session *s, const struct text *t, int position, enum purpose why)
{
    const uint64_t text = random_mix(s->io->how.seed) + (uint32_t)t->prompt.number;
    const uint64_t place = (uint64_t)position * PURPOSES + why;
    return (double)(random_mix(random_mix(text) + place) >> 11) * 0x1p-53;
}

static int left(const struct text *t)
{
    return t->prompt.count + t->prompt.most - t->count;
}

static float *student_row(const struct session *s, const struct text *t, int i)
{
    const size_t row = (size_t)(t - s->text) * (size_t)s->draft + (size_t)i;
    return s->student + row * (size_t)s->V;
}

static float *teacher_row(const struct session *s, const struct text *t, int i)
{
    const size_t row = (size_t)(t - s->text) * ((size_t)s->draft + 1) + (size_t)i;
    return s->teacher + row * (size_t)s->V;
}

/* Ask for the logits behind the first i tokens of a text's draft. */
static void ask(const struct session *s, struct logits_batch *b, const struct text *t, int i)
{
    s->at[b->count] = (int)(t - s->text) * s->S + t->count + i - 1;
    s->to[b->count++] = b->teacher ? teacher_row(s, t, i) : student_row(s, t, i);
}

static struct logits_batch batch_of(const struct session *s, bool teacher)
{
    return (struct logits_batch){teacher, s->ids, s->pos, s->doc_start, s->at, s->to, 0};
}

static int softmax_of(const struct session *s, const float *logits, double *out)
{
    if (softmax_row(logits, s->V, out))
        return 0;
    return fail(NJ_E_FORMAT, "the logits of a model are not finite; use intact weights, or "
                             "--dtype float32 if activations overflow");
}

/* ---- prompts ---- */

static int check_prompt(const struct session *s, const struct decode_prompt *p)
{
    if (p->count < 1 || p->most < 1 || p->count > s->S || p->most > s->S - p->count)
        return fail(NJ_E_ARG,
                    "a prompt of %d tokens that %d may follow does not fit the %d positions of a "
                    "sequence",
                    p->count, p->most, s->S);
    return 0;
}

static int take_prompts(struct session *s)
{
    for (int b = 0; b < s->B && s->more; b++) {
        struct text *t = &s->text[b];
        if (t->active)
            continue;
        const int got = s->io->next(s->io->user, &t->prompt);
        s->more = got > 0;
        TRY(got > 0 ? check_prompt(s, &t->prompt) : got);
        if (!s->more)
            return 0;
        t->active = true;
        t->count = t->prompt.count;
        memcpy(t->ids, t->prompt.ids, (size_t)t->count * sizeof *t->ids);
        s->out->texts++;
    }
    return 0;
}

/* ---- a turn ---- */

/* Return whether a text's draft goes on with token i. It ends where the text would, and leaves a token for the
 * teacher. */
static bool wants_draft(const struct text *t, int i)
{
    return t->active && t->drafts == i && !t->ends && i < left(t) - 1;
}

static int draft_token(struct session *s, struct text *t)
{
    const int at = t->count + t->drafts;
    TRY(softmax_of(s, student_row(s, t, t->drafts), s->q));
    t->ids[at] = draw_from(s->q, s->V, uniform(s, t, at, TO_DRAFT));
    t->ends = decode_stops(s->io, t->ids[at]);
    t->drafts++;
    s->out->drafted++;
    return 0;
}

/* Draw token i of all drafts that have one. */
static int draft_tokens(struct session *s, int i)
{
    struct logits_batch asked = batch_of(s, false);
    for (int b = 0; b < s->B; b++)
        if (wants_draft(&s->text[b], i))
            ask(s, &asked, &s->text[b], i);
    if (asked.count > 0)
        TRY(engine_logits(s->e, &asked));
    for (int b = 0; b < s->B; b++)
        if (wants_draft(&s->text[b], i))
            TRY(draft_token(s, &s->text[b]));
    return 0;
}

/* Compute the teacher's logits behind every token of every draft, in one pass. */
static int verify(struct session *s)
{
    struct logits_batch asked = batch_of(s, true);
    for (int b = 0; b < s->B; b++)
        for (int i = 0; s->text[b].active && i <= s->text[b].drafts; i++)
            ask(s, &asked, &s->text[b], i);
    return engine_logits(s->e, &asked);
}

/* Return whether token i of a draft is accepted; replace it if not. */
static bool judge_token(struct session *s, struct text *t, int i)
{
    struct speculate_result *out = s->out;
    const int at = t->count + i;
    const double rate = acceptance_of(s->p, s->q, s->V);
    const bool accepted = accepts(s->p, s->q, t->ids[at], uniform(s, t, at, TO_ACCEPT));
    out->tested++;
    out->accepted += accepted;
    out->expected += rate;
    out->variance += rate * (1 - rate);
    if (!accepted) {
        subtract_draft(s->p, s->q, s->V);
        t->ids[at] = draw_from(s->p, s->V, uniform(s, t, at, TO_REPLACE));
    }
    return accepted;
}

/* Verify a draft. *generated: number of tokens kept of it, with one of the teacher behind them. */
static int judge(struct session *s, struct text *t, int *generated)
{
    bool accepted = true;
    int i = 0;
    for (; accepted && i < t->drafts; i++) {
        TRY(softmax_of(s, teacher_row(s, t, i), s->p));
        TRY(softmax_of(s, student_row(s, t, i), s->q));
        accepted = judge_token(s, t, i);
    }
    *generated = i;
    if (!accepted || t->ends)
        return 0;
    const int at = t->count + i;
    TRY(softmax_of(s, teacher_row(s, t, i), s->p));
    t->ids[at] = draw_from(s->p, s->V, uniform(s, t, at, TO_REPLACE));
    *generated = i + 1;
    return 0;
}

static int end_turn(struct session *s, struct text *t)
{
    struct speculate_result *out = s->out;
    const int32_t *ids = &t->ids[t->count];
    enum decode_end end = DECODE_MORE;
    int generated;
    TRY(judge(s, t, &generated));
    out->turns[t->drafts]++;
    out->tokens += generated;
    t->count += generated;
    t->drafts = 0;
    t->ends = false;
    if (decode_stops(s->io, ids[generated - 1]))
        end = DECODE_STOPPED;
    else if (left(t) == 0)
        end = DECODE_LENGTH;
    const int rc = s->io->generated(s->io->user, &t->prompt, ids, generated, end);
    t->active = end == DECODE_MORE && rc == 0;
    return rc < 0 ? rc : 0;
}

static bool any_active(const struct session *s)
{
    int b = 0;
    while (b < s->B && !s->text[b].active)
        b++;
    return b < s->B;
}

static int run(struct session *s)
{
    TRY(take_prompts(s));
    while (any_active(s)) {
        for (int i = 0; i < s->draft; i++)
            TRY(draft_tokens(s, i));
        TRY(verify(s));
        for (int b = 0; b < s->B; b++)
            if (s->text[b].active)
                TRY(end_turn(s, &s->text[b]));
        TRY(take_prompts(s));
    }
    return 0;
}

/* ---- memory ---- */

static int allocate(struct session *s)
{
    const size_t n = (size_t)s->B * (size_t)s->S, V = (size_t)s->V;
    const size_t drafts = (size_t)s->B * (size_t)s->draft, rows = drafts + (size_t)s->B;
    s->ids = calloc(3 * n + rows, sizeof *s->ids);
    s->text = calloc((size_t)s->B, sizeof *s->text);
    s->student = calloc(drafts + rows, V * sizeof *s->student);
    s->to = calloc(rows, sizeof *s->to);
    s->p = calloc(2 * V, sizeof *s->p);
    if (!s->ids || !s->text || !s->student || !s->to || !s->p)
        return fail(NJ_E_NOMEM, "no host memory for the logits of %zu tokens; lower --batch-size",
                    drafts + rows);
    s->pos = s->ids + n;
    s->doc_start = s->pos + n;
    s->at = s->doc_start + n;
    s->teacher = s->student + drafts * V;
    s->q = s->p + V;
    for (int b = 0; b < s->B; b++)
        s->text[b].ids = s->ids + (size_t)b * (size_t)s->S;
    for (size_t i = 0; i < n; i++)
        s->pos[i] = (int32_t)(i % (size_t)s->S);
    return 0;
}

int engine_speculate(struct engine *e, const struct decode_io *io, int draft,
                     struct speculate_result *out)
{
    struct session s = {
        .e = e,
        .io = io,
        .draft = draft,
        .out = out,
        .B = e->o.batch_size,
        .S = e->o.seq_len,
        .V = e->shape.vocab,
        .more = true,
    };
    *out = (struct speculate_result){0};
    int rc = 0;
    if (draft < 1 || draft > SPECULATE_DRAFT_MOST)
        rc = fail(NJ_E_ARG, "drafts of %d tokens; 1 to %d are possible", draft,
                  SPECULATE_DRAFT_MOST);
    if (rc == 0)
        rc = allocate(&s);
    if (rc == 0)
        rc = run(&s);
    free(s.ids);
    free(s.text);
    free(s.student);
    free(s.to);
    free(s.p);
    return rc;
}
