/* SPDX-License-Identifier: Apache-2.0
 *
 * decode_kl.c: measures the divergence between the predictions of a forward pass, of the decoder, and of the decoder
 * with a cache of bytes, after the same contexts. Exit status: 0, 1 after a failure, 2 usage.
 */
#include "batch/data.h"
#include "decode/row_logits.h"
#include "engine/engine.h"
#include "io/error.h"
#include "model/model_open.h"
#include "state/engine_struct.h"
#include "weights/packed_experts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char USAGE[] =
    "usage: decode_kl MODEL DATA [--contexts N] [--seq-len S] [--device auto|cpu|cuda|vulkan]\n"
    "                 [--dtype auto|float32|bfloat16]\n"
    "Divergence of next-token predictions: of the decoder from a forward pass over the same\n"
    "tokens, and of the decoder with a cache in int8 (--kv-dtype int8) from that without.\n"
    "\n"
    "  MODEL         folder, GGUF or APR file\n"
    "  DATA          text (.txt, .jsonl), which the model's tokenizer encodes, or a token file;\n"
    "                document boundaries do not matter\n"
    "  --contexts N  at places spread over DATA, with lengths spread from 16 to S - 1 [200]\n"
    "  --seq-len S   [2048, or the model's maximum if that is less]\n"
    "\n"
    "KL(p||q) is in nats, over the whole vocabulary, computed in float64 from the logits.\n";

enum { SHORTEST = 16, USUAL_LENGTH = 2048, HEAD_ROWS = 64 };
enum way { FORWARD, DECODER, DECODER_INT8, WAYS };

struct job {
    const char *model, *data;
    int contexts, seq_len, device, dtype, vocab;
    int32_t *ids; /* [contexts, seq_len] tokens; a context is the first few of a row */
    /* [seq_len] positions and document start of a row, which is one document */
    int32_t *pos, *start;
    float *logits[WAYS]; /* [contexts, vocab] logits of each way */
};

static const char *const devices[] = {"auto", "cpu", "cuda", "vulkan",
                                      NULL}; /* enum nj_device_kind */
enum { DTYPE_AUTO, DTYPE_F32, DTYPE_BF16 };
static const char *const dtypes[] = {"auto", "float32", "bfloat16", NULL};

static int length_of(const struct job *j, int i)
{
    const int64_t span = j->seq_len - 1 - SHORTEST;
    return SHORTEST + (int)(j->contexts > 1 ? i * span / (j->contexts - 1) : span);
}

static int take_rows(struct data *d, struct job *j)
{
    const size_t S = (size_t)j->seq_len;
    const int64_t rows = data_windows(d), apart = rows > j->contexts ? rows / j->contexts : 1;
    int rc = 0;
    for (int i = 0; rc == 0 && i < j->contexts; i++) {
        struct batch b;
        batches_seek(data_batches(d), &(struct data_state){.window = (uint64_t)(i * apart % rows)});
        rc = batches_next(data_batches(d), &b);
        if (rc == 0)
            memcpy(j->ids + (size_t)i * S, b.ids, S * sizeof *b.ids);
    }
    return rc;
}

static int read_contexts(struct job *j)
{
    const struct data_options o = {.paths = &j->data,
                                   .path_count = 1,
                                   .seq_len = j->seq_len,
                                   .batch_size = 1,
                                   .vocab_size = j->vocab};
    struct tokenizer t = {0};
    struct data *d = NULL;
    int rc = tokenizer_open(j->model, &t);
    if (rc == 0)
        rc = data_open(&o, &t, &d);
    if (rc == 0)
        rc = take_rows(d, j);
    data_close(d);
    tokenizer_close(&t);
    return rc;
}

/* ---- logits ---- */

static int forward(struct engine *e, const struct job *j, int i, float *to)
{
    const int32_t last = length_of(j, i) - 1, *ids = j->ids + (size_t)i * (size_t)j->seq_len;
    const struct logits_batch b = {
        .ids = ids, .pos = j->pos, .doc_start = j->start, .at = &last, .to = &to, .count = 1};
    return engine_logits(e, &b);
}

static int next(void *prompt, struct decode_prompt *out)
{
    struct decode_prompt *p = prompt;
    const int got = p->count > 0;
    *out = *p;
    p->count = 0;
    return got;
}

static int generated(void *user, const struct decode_prompt *p, const int32_t *ids, int count,
                     enum decode_end end)
{
    (void)user, (void)p, (void)ids, (void)count, (void)end;
    return 0;
}

static int decode(struct engine *e, const struct job *j, int i, float *to)
{
    struct decode_prompt p = {
        .ids = j->ids + (size_t)i * (size_t)j->seq_len, .count = length_of(j, i), .most = 1};
    const struct decode_io io = {.next = next, .generated = generated, .user = &p};
    const int rc = engine_decode(e, &io);
    if (rc != 0)
        return rc;
    struct work w = engine_work(e);
    logits_to_host(&w, e, e->mem.decoder.logits, 1, &to);
    return w.rc == 0 ? 0 : engine_fail(e, w.rc, "reading logits");
}

static int choose_dtype(const struct nj_device_info *d, int wanted, enum nj_dtype *out)
{
    *out = wanted == DTYPE_F32 || (wanted == DTYPE_AUTO && d->sm == 0) ? NJ_F32 : NJ_LP;
    if (wanted == DTYPE_BF16 && (!d->lp || d->lp_is_f16))
        return fail(NJ_E_ARG, "--dtype bfloat16: %s has no bfloat16; use auto or float32", d->name);
    return 0;
}

/* Measure with one engine; a cache of bytes needs another. No graphs are used: the logits of a step are read before the
 * next step overwrites them. */
static int measure(nj_context *ctx, const struct job *j, bool bytes)
{
    struct train_options o = {.batch_size = 1,
                              .seq_len = j->seq_len,
                              .grad_accum = 1,
                              .temperature = 1,
                              .head_chunk = HEAD_ROWS,
                              .use_graph = 0,
                              .decode_rows = 1,
                              .decode_bytes = bytes};
    struct engine *e = NULL;
    unsigned char *types = NULL;
    int rc = choose_dtype(nj_context_device(ctx), j->dtype, &o.dtype);
    if (rc == 0)
        rc = packed_experts(ctx, j->model, o.dtype, &types);
    o.student_types = types;
    if (rc == 0)
        rc = engine_create(ctx, j->model, NULL, &o, NULL, NULL, &e);
    for (int i = 0; rc == 0 && i < j->contexts; i++) {
        const size_t row = (size_t)i * (size_t)j->vocab;
        rc = bytes ? 0 : forward(e, j, i, j->logits[FORWARD] + row);
        if (rc == 0)
            rc = decode(e, j, i, j->logits[bytes ? DECODER_INT8 : DECODER] + row);
    }
    engine_destroy(e);
    free(types);
    return rc;
}

/* ---- divergence ---- */

static int likeliest(const float *logits, int count)
{
    int best = 0;
    for (int v = 1; v < count; v++)
        best = logits[v] > logits[best] ? v : best;
    return best;
}

static double log_sum(const float *logits, int count)
{
    const double top = (double)logits[likeliest(logits, count)];
    double sum = 0;
    for (int v = 0; v < count; v++)
        sum += exp((double)logits[v] - top);
    return top + log(sum);
}

static double divergence(const float *p, const float *q, int count)
{
    const double of_p = log_sum(p, count), of_q = log_sum(q, count);
    double sum = 0;
    for (int v = 0; v < count; v++) {
        const double log_p = (double)p[v] - of_p;
        sum += exp(log_p) * (log_p - ((double)q[v] - of_q));
    }
    return sum;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_pair(const struct job *j, const char *name, enum way of, enum way against,
                       double *kl)
{
    double sum = 0;
    int same = 0;
    for (int i = 0; i < j->contexts; i++) {
        const float *p = j->logits[of] + (size_t)i * (size_t)j->vocab;
        const float *q = j->logits[against] + (size_t)i * (size_t)j->vocab;
        kl[i] = divergence(p, q, j->vocab);
        sum += kl[i];
        same += likeliest(p, j->vocab) == likeliest(q, j->vocab);
    }
    qsort(kl, (size_t)j->contexts, sizeof *kl, ascending);
    printf("%-24s %10.2e %10.2e %10.2e %8.2f %%\n", name, sum / j->contexts,
           kl[(99 * (int64_t)j->contexts + 99) / 100 - 1], kl[j->contexts - 1],
           100.0 * same / j->contexts);
}

/* Print the table. kl has room for the divergence of each context. */
static void print_table(const struct job *j, double *kl)
{
    static const struct {
        const char *name;
        enum way p, q;
    } pairs[] = {{"KL(forward||decoder)", FORWARD, DECODER},
                 {"KL(decoder||int8 cache)", DECODER, DECODER_INT8}};
    printf("%d contexts of %d to %d tokens\n%-24s %10s %10s %10s %10s\n", j->contexts,
           length_of(j, 0), length_of(j, j->contexts - 1), "nats per token", "mean", "p99", "max",
           "top-1");
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        print_pair(j, pairs[i].name, pairs[i].p, pairs[i].q, kl);
}

static int check_length(struct job *j)
{
    struct model_config m;
    const int rc = source_config(j->model, &m);
    if (rc != 0)
        return rc;
    j->vocab = m.vocab_size;
    if (j->seq_len == 0)
        j->seq_len = m.max_positions < USUAL_LENGTH ? m.max_positions : USUAL_LENGTH;
    return j->seq_len <= m.max_positions
               ? 0
               : fail(NJ_E_ARG, "--seq-len %d: %s takes %d at most; lower it", j->seq_len, j->model,
                      m.max_positions);
}

static int run(nj_context *ctx, struct job *j)
{
    const size_t count = (size_t)j->contexts, S = (size_t)j->seq_len;
    const size_t each = count * (size_t)j->vocab;
    double *kl = calloc(count, sizeof *kl);
    float *logits = calloc(WAYS * each, sizeof *logits);
    int32_t *ids = calloc((count + 2) * S, sizeof *ids);
    int rc = kl && logits && ids ? 0 : fail(NJ_E_NOMEM, "no host memory; use fewer --contexts");
    for (size_t w = 0; rc == 0 && w < WAYS; w++)
        j->logits[w] = logits + w * each;
    if (rc == 0) {
        j->ids = ids;
        j->start = ids + count * S;
        j->pos = j->start + S;
        for (int i = 0; i < j->seq_len; i++)
            j->pos[i] = i;
        rc = read_contexts(j);
    }
    for (int bytes = 0; rc == 0 && bytes < 2; bytes++)
        rc = measure(ctx, j, bytes);
    if (rc == 0)
        print_table(j, kl);
    free(kl);
    free(logits);
    free(ids);
    return rc;
}

static int open_and_run(struct job *j)
{
    nj_context *ctx = NULL;
    int rc =
        nj_context_create(&ctx, &(struct nj_options){.device = (enum nj_device_kind)j->device});
    rc = rc == 0 ? check_length(j) : fail_context(rc, ctx, "--device");
    if (rc == 0) {
        const struct nj_device_info *d = nj_context_device(ctx);
        fprintf(stderr, "on %s (%s) %s\n", d->name, d->backend, d->fallback);
        rc = run(ctx, j);
    }
    nj_context_destroy(ctx);
    return rc;
}

/* ---- options ---- */

struct setting {
    const char *name;
    int *to;
    const char *const *words; /* words to choose from; NULL: a number, from `low` to `high` */
    int low, high;
};

static int parse_value(const struct setting *s, const char *value)
{
    char *end;
    if (!s->words) {
        const long n = strtol(value, &end, 10);
        *s->to = (int)n;
        if (end != value && *end == '\0' && n >= s->low && n <= s->high)
            return 0;
        return fail(NJ_E_ARG, "%s %s: must be a number from %d to %d", s->name, value, s->low,
                    s->high);
    }
    for (*s->to = 0; s->words[*s->to]; ++*s->to)
        if (strcmp(s->words[*s->to], value) == 0)
            return 0;
    return fail(NJ_E_ARG, "%s %s: must be one of %s|%s|%s", s->name, value, s->words[0],
                s->words[1], s->words[2]);
}

static int parse(char **arg, struct job *j)
{
    const struct setting settings[] = {{"--contexts", &j->contexts, NULL, 1, 100000},
                                       {"--seq-len", &j->seq_len, NULL, 2 * SHORTEST, 1 << 20},
                                       {"--device", &j->device, devices, 0, 0},
                                       {"--dtype", &j->dtype, dtypes, 0, 0}};
    const size_t count = sizeof settings / sizeof *settings;
    int rc = 0;
    while (rc == 0 && *arg) {
        const char *name = *arg++;
        size_t i = 0;
        while (i < count && strcmp(settings[i].name, name) != 0)
            i++;
        const char **place = !j->model ? &j->model : &j->data;
        if (i < count)
            rc = *arg ? parse_value(&settings[i], *arg++)
                      : fail(NJ_E_ARG, "%s needs a value; see decode_kl --help", name);
        else if (name[0] == '-' || *place)
            rc = fail(NJ_E_ARG, "unknown argument %s; see decode_kl --help", name);
        else
            *place = name;
    }
    if (rc == 0 && !j->data)
        rc = fail(NJ_E_ARG, "MODEL and DATA are needed; see decode_kl --help");
    return rc;
}

int main(int argc, char **argv)
{
    struct job j = {.contexts = 200};
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return fputs(USAGE, stdout) < 0;
    const bool usage = nj_forbid_jit() != 0 || parse(argv + 1, &j) != 0;
    if (!usage && open_and_run(&j) == 0)
        return 0;
    fprintf(stderr, "decode_kl: %s\n", fail_text());
    return usage ? 2 : 1;
}
