/* SPDX-License-Identifier: Apache-2.0
 *
 * speculation.c: see speculation.h. A text ends with a token that ends texts of the teacher, whose texts they are, or
 * with its number of tokens.
 */
#include "eval/speculation.h"

#include <math.h>

#include "base/clock.h"
#include "base/plural.h"
#include "batch/prompts.h"
#include "eval/texts.h"
#include "io/error.h"
#include "model/model_open.h"
#include "run/run_engine.h"
#include "run/run_inputs.h"
#include "run/teacher_types.h"
#include "teacher/teacher_cache.h"

/* Defaults: draft tokens of a turn without --draft-tokens; most rows of logits at a time. */
enum { DRAFT_TOKENS = 4, CHUNK_MOST = 2048 };

struct writer {
    struct run *run;
    const struct prompts *prompts;
    int64_t taken, done, tokens;
};

double tokens_per_verification(double acceptance, int draft)
{
    double tokens = 1;
    for (int i = 0; i < draft; i++)
        tokens = 1 + acceptance * tokens;
    return tokens;
}

static int draft_tokens(const struct run *r)
{
    return r->s->draft_tokens > 0 ? (int)r->s->draft_tokens : DRAFT_TOKENS;
}

/* ---- before ---- */

static int open_prompts(struct run *r, struct prompts **out)
{
    if (cache_is_there(r->teacher))
        return fail(NJ_E_ARG,
                    "--teacher %s is a cache of hidden states, which has none for new texts; name "
                    "the model, or give --data",
                    r->teacher);
    TRY(run_open_tokenizer(r));
    TRY(run_engine_options(r));
    TRY(run_student_types(r));
    struct prompts_options o = {.vocab_size = r->vocab};
    return run_open_prompts(r, &o, out);
}

/* Set the length of a sequence to that of the longest text, which both models must support. */
static int fit_length(struct run *r, const struct prompts *p)
{
    struct train_options *o = &r->options;
    const int64_t needed = prompts_longest_text(p, r->s->max_tokens);
    struct model_config c;
    TRY(texts_check_length(r->student, "the longest prompt", needed, o->seq_len));
    TRY(texts_check_length(r->teacher, "the longest prompt", needed, 0));
    TRY(source_config(r->teacher, &c));
    o->seq_len = (int)needed;
    return generation_read(r->teacher, &r->tokenizer, c.vocab_size, &r->ends);
}

/* Set the batch size: no more logits at a time than a verification needs. */
static void fit_batch_size(struct run *r, const struct prompts *p)
{
    struct train_options *o = &r->options;
    if (o->batch_size > prompts_count(p))
        o->batch_size = (int)prompts_count(p);
    const int rows = o->batch_size * (draft_tokens(r) + 1);
    o->head_chunk = rows < CHUNK_MOST ? rows : CHUNK_MOST;
}

/* ---- callbacks of the decoder ---- */

static int next(void *user, struct decode_prompt *out)
{
    struct writer *w = user;
    struct prompt p;
    if (w->taken == prompts_count(w->prompts))
        return 0;
    prompts_get(w->prompts, 0, w->taken, &p);
    *out = (struct decode_prompt){
        .ids = p.ids,
        .count = (int)p.count,
        .most = p.most > 0 ? p.most : (int)w->run->s->max_tokens,
        .number = (int32_t)w->taken++,
    };
    return 1;
}

static int generated(void *user, const struct decode_prompt *p, const int32_t *ids, int count,
                     enum decode_end end)
{
    struct writer *w = user;
    (void)p;
    (void)ids;
    w->tokens += count;
    w->done += end != DECODE_MORE;
    progress_texts(&w->run->progress, w->done, prompts_count(w->prompts), w->tokens);
    return 0;
}

/* ---- after ---- */

/* Means over the turns, and over the tested tokens. */
struct figures {
    int64_t turns;
    /* Accepted fraction of the tested tokens, its standard error; expected probability. */
    double share, error, acceptance;
    double tokens, predicted; /* tokens of a turn */
};

static struct figures figures_of(const struct speculate_result *x)
{
    const double tested = (double)x->tested;
    struct figures f = {
        .share = (double)x->accepted / tested,
        .error = sqrt(x->variance) / tested,
        .acceptance = x->expected / tested,
    };
    for (int k = 0; k <= SPECULATE_DRAFT_MOST; k++) {
        f.turns += x->turns[k];
        f.predicted += (double)x->turns[k] * tokens_per_verification(f.acceptance, k);
    }
    f.predicted /= (double)f.turns;
    f.tokens = (double)x->tokens / (double)f.turns;
    return f;
}

static void print_json(const struct speculate_result *x, const struct figures *f)
{
    const struct {
        const char *name;
        int64_t count;
    } counted[] = {{"texts", x->texts},     {"tokens", x->tokens}, {"turns", f->turns},
                   {"drafted", x->drafted}, {"tested", x->tested}, {"accepted", x->accepted}};
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++)
        printf("%s\"%s\": %lld", i > 0 ? ", " : "{", counted[i].name, (long long)counted[i].count);
    printf(", \"accepted_share\": %.9g, \"accepted_share_stderr\": %.9g, \"acceptance\": %.9g",
           f->share, f->error, f->acceptance);
    printf(", \"tokens_per_turn\": %.9g, \"tokens_per_turn_predicted\": %.9g}\n", f->tokens,
           f->predicted);
}

static void print_text(const struct speculate_result *x, const struct figures *f)
{
    printf("texts            %lld, %lld tokens\n", (long long)x->texts, (long long)x->tokens);
    printf("turns            %lld (a draft and its verification)\n", (long long)f->turns);
    printf("draft tokens     %lld, %lld tested, %lld accepted\n", (long long)x->drafted,
           (long long)x->tested, (long long)x->accepted);
    printf("accepted share   %.6f of the tested, standard error %.6f\n", f->share, f->error);
    printf("acceptance       %.6f expected: sum of min(p, q), mean over the same positions\n",
           f->acceptance);
    printf("tokens/verify    %.4f counted, %.4f predicted from the acceptance\n", f->tokens,
           f->predicted);
}

static int report(struct run *r, const struct speculate_result *x, double seconds)
{
    const struct figures f = figures_of(x);
    if (x->tested == 0)
        return fail(NJ_E_ARG, "no text has room for a draft token and one of the teacher; raise "
                              "--max-tokens or max_tokens of the prompts");
    progress_say(&r->progress, "%lld text%s in %.2f s", (long long)x->texts, plural(x->texts),
                 seconds);
    (r->s->json ? print_json : print_text)(x, &f);
    return 0;
}

static int speculate(struct run *r, const struct prompts *p)
{
    struct writer w = {.run = r, .prompts = p};
    const struct decode_io io = {
        .next = next,
        .generated = generated,
        .user = &w,
        .how = {.temperature = 1, .seed = r->options.seed},
        .stop = r->ends.stop,
        .stops = r->ends.stops,
    };
    struct speculate_result x;
    const double from = clock_seconds();
    r->progress.started = from;
    const int rc = engine_speculate(r->engine, &io, draft_tokens(r), &x);
    progress_clear(&r->progress);
    return rc != 0 ? rc : report(r, &x, clock_seconds() - from);
}

int run_speculation(struct run *r)
{
    struct prompts *p = NULL;
    int rc = open_prompts(r, &p);
    if (rc == 0)
        rc = fit_length(r, p);
    if (rc == 0) {
        fit_batch_size(r, p);
        rc = run_open_engine(r);
    }
    if (rc == 0)
        rc = speculate(r, p);
    prompts_close(p);
    return rc;
}
