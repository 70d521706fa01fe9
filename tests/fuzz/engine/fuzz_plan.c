/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_plan.c: the plan of two models and the options of a run, as numbers. What it comes to is held
 * against a sum in 128 bits, written down a second time: equal where that can be addressed, refused
 * where it cannot.
 */
#include "engine/engine.h"
#include "fuzz.h"
#include "io/error.h"
#include "state/engine_struct.h"

#include <string.h>

typedef unsigned __int128 wide;

/* The fields of an input, all int32; make_corpus.py writes them by these names. */
struct model {
    int32_t hidden, intermediate, layers, heads, kv_heads, head_dim, vocab, tied, qkv_bias, qk_norm;
};
struct input {
    struct model student;
    int32_t batch_size, seq_len, grad_accum, steps, f32, head_chunk, recompute, state16;
    int32_t rank, targets, dropout, vocab, workspace, teacher_fp8;
    int32_t decode_rows, decode_positions, teacher_writes, teacher_has_context, has_teacher;
    struct model teacher;
};

/* More positions of a decoder than --seq-len or --max-tokens and a prompt may ask for. */
enum { POSITIONS_MOST = 1 << 21 };

static struct model_config config_of(const struct model *m)
{
    struct model_config c = {
        .model_type = "qwen2",
        .hidden_size = m->hidden,
        .layers = m->layers,
        .vocab_size = m->vocab,
        .max_positions = 1 << 24,
        .bos_id = -1,
        .eos_id = -1,
        .rms_eps = 1e-6f,
        CONFIG_ROPE(1e4),
        .tied = m->tied != 0,
        CONFIG_PLAIN(m->heads, m->kv_heads, m->head_dim, m->intermediate,
                     (m->qkv_bias ? FEATURE_BIT(FEATURE_QKV_BIAS) : 0) |
                         (m->qk_norm ? FEATURE_BIT(FEATURE_QK_NORM) : 0)),
    };
    return c;
}

static struct train_options options_of(const struct input *in)
{
    struct train_options o = {
        .batch_size = in->batch_size,
        .seq_len = in->seq_len,
        .grad_accum = in->grad_accum,
        .steps = in->steps,
        .dtype = in->f32 ? NJ_F32 : NJ_LP,
        .head_chunk = in->head_chunk,
        .recompute = (int)((uint32_t)in->recompute % 3),
        .optimizer_state = in->state16 ? STATE_BF16 : STATE_F32,
        .vocab = in->vocab,
        .workspace_bytes = (size_t)(uint32_t)in->workspace,
        .teacher_fp8 = in->teacher_fp8 != 0,
        .teacher_writes = in->teacher_writes != 0,
        .teacher_has_context = in->teacher_has_context != 0,
        .decode_rows = (int)((uint32_t)in->decode_rows % (BATCH_MOST + 1)),
        .decode_positions = (int)((uint32_t)in->decode_positions % POSITIONS_MOST),
        .lora = {.rank = (int)((uint32_t)in->rank % 65537), .dropout = in->dropout ? 0.5 : 0},
    };
    for (int t = 0; t < LORA_TARGETS; t++)
        o.lora.target[t] = (in->targets >> t & 1) != 0;
    return o;
}

/* ---- the sum ---- */

static wide up(wide n, wide multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

static wide array(wide bytes)
{
    return up(bytes, 256);
}

static wide larger(wide a, wide b)
{
    return a > b ? a : b;
}

/* Sizes of a model as wide numbers. */
struct sizes {
    wide C, I, L, H, HD, KD, QKV, V, D, heads;
};

static const struct block *attention_of(const struct model_config *c)
{
    return arch_block(&c->arch, 0, BLOCK_ATTENTION);
}

static struct sizes sizes_of(const struct model_config *c)
{
    const struct block *b = attention_of(c);
    const wide H = (wide)b->heads, K = (wide)b->kv_heads, D = (wide)b->head_dim;
    return (struct sizes){(wide)c->hidden_size,
                          (wide)arch_block(&c->arch, 0, BLOCK_GLU)->ffn_size,
                          (wide)c->layers,
                          H,
                          H * D,
                          K * D,
                          (H + 2 * K) * D,
                          (wide)c->vocab_size,
                          D,
                          H + K};
}

static wide matrices(const struct sizes *s)
{
    return s->L * s->C * (s->QKV + s->HD + 3 * s->I);
}

static wide elements(const struct model_config *c, bool f8)
{
    const struct sizes s = sizes_of(c);
    const wide table = up(s.V * s.C, 64), gains = 2 * s.L + 1;
    wide sum = f8 ? table : table + matrices(&s) + (c->tied ? 0 : table);
    sum += gains * up(s.C, 64) + (block_has(attention_of(c), FEATURE_QK_NORM) ? 2 * s.L * s.D : 0);
    return sum + (block_has(attention_of(c), FEATURE_QKV_BIAS) ? s.L * s.QKV : 0);
}

static wide adapter_elements(const struct model_config *c, const struct lora_config *o)
{
    const struct sizes s = sizes_of(c);
    const wide shape[LORA_TARGETS][2] = {
        [LORA_Q] = {s.HD, s.C},   [LORA_K] = {s.KD, s.C},   [LORA_V] = {s.KD, s.C},
        [LORA_O] = {s.C, s.HD},   [LORA_GATE] = {s.I, s.C}, [LORA_UP] = {s.I, s.C},
        [LORA_DOWN] = {s.C, s.I},
    };
    const wide r = (wide)o->rank;
    wide sum = 0;
    for (int t = 0; t < LORA_TARGETS; t++)
        if (o->target[t])
            sum += s.L * (up(r * shape[t][0], 64) + up(r * shape[t][1], 64));
    return sum;
}

static wide f8_bytes(wide rows, wide columns)
{
    return array(rows * columns) + array(rows * sizeof(float));
}

static wide acts_bytes(const struct model_config *c, const struct train_options *o, wide N,
                       enum acts_mode mode, bool f8)
{
    const struct sizes s = sizes_of(c);
    const bool train = mode == ACTS_TRAIN, lora = !f8 && o->lora.rank > 0;
    const wide e = dtype_bytes(o->dtype), f = sizeof(float);
    const wide kept = train && o->recompute != RECOMPUTE_BLOCK ? s.L : 1;
    const wide kept_gu = train && o->recompute == RECOMPUTE_NONE ? s.L : 1;
    const wide inputs = train ? s.L + 1 : 1, widest_x = larger(larger(s.HD, s.C), s.I);
    wide sum = array(inputs * N * s.C * e) + array(inputs * N * f) + 2 * array(N * s.C * e);
    sum += array(kept * N * s.QKV * e) + array(kept * N * s.HD * e);
    sum += array(kept * N * s.H * f) + array(kept_gu * N * 2 * s.I * e);
    sum += block_has(attention_of(c), FEATURE_QK_NORM) ? array(kept * N * s.heads * f) : 0;
    sum += f8 ? f8_bytes(N, widest_x) : array(N * s.I * e);
    sum += lora ? array(N * (wide)o->lora.rank * e) : 0;
    if (!train)
        return sum;
    sum += array(kept * N * s.C * e) + array(kept * N * f);
    sum += block_has(attention_of(c), FEATURE_QK_NORM) ? array(kept * N * s.QKV * e) : 0;
    sum += array(N * s.C * e) + array(N * s.QKV * e) + array(N * s.HD * e) + array(N * s.H * f);
    sum += array((wide)partial_sums((int)N) * larger(s.QKV, s.C) * f);
    if (lora)
        sum += array(N * s.I * e) + array(N * (wide)o->lora.rank * e) +
               (o->lora.dropout > 0 ? array(N * widest_x * e) : 0);
    return sum;
}

static wide trained_bytes(const struct model_config *c, const struct train_options *o)
{
    const bool lora = o->lora.rank > 0, f32 = o->dtype == NJ_F32;
    const wide e = dtype_bytes(o->dtype), whole = elements(c, false);
    const wide count = lora ? adapter_elements(c, &o->lora) : whole;
    const wide moment = optimizer_state_bytes((enum optimizer_state)o->optimizer_state);
    wide sum = array(whole * e) + (lora ? array(count * e) : 0);
    if (o->steps == 0)
        return sum;
    sum += !f32 && o->optimizer_state == STATE_F32 ? array(count * sizeof(float)) : 0;
    return sum + 2 * array(count * moment) + array(count * sizeof(float));
}

static wide teacher_bytes(const struct model_config *c, const struct train_options *o)
{
    const struct sizes s = sizes_of(c);
    wide sum = array(elements(c, o->teacher_fp8) * dtype_bytes(o->dtype));
    if (o->teacher_fp8)
        sum += s.L * (f8_bytes(s.QKV, s.C) + f8_bytes(s.C, s.HD) + f8_bytes(2 * s.I, s.C) +
                      f8_bytes(s.C, s.I)) +
               f8_bytes(up(s.V, 16), s.C);
    return sum;
}

static wide rows_bytes(const struct shape *s)
{
    const wide n = (wide)s->rows * 4, p = (wide)s->padded * 4;
    return 5 * array(n) + array(n + 4) + 2 * array(p) + array(8) +
           (s->arrays & USE_TEACHER ? 3 * array(n) + array(p) : 0);
}

/* ---- the decoder ---- */

static wide positions_of(const struct train_options *o)
{
    return (wide)(o->decode_positions > 0 ? o->decode_positions : o->seq_len);
}

/* Rows of a pass over prompts: those of all, at most 8192, but a whole prompt. */
static wide prefill_of(const struct train_options *o)
{
    const wide positions = positions_of(o), all = (wide)o->decode_rows * positions;
    return up(larger(all < 8192 ? all : 8192, positions), 64);
}

/* Return the bytes that host and device both have: rows of prompts and of a step, and the tokens of 8 steps. */
static wide decoder_rows(const struct train_options *o)
{
    const wide rows = (wide)o->decode_rows;
    return 4 * array(prefill_of(o) * 4) + 5 * array(rows * 4) + array(4) + array(8 * rows * 4);
}

/* Return the bytes of the model that writes: keys and values, activations, sums over chunks of 256 keys, and the logits
 * with the draws from them, which at least 256 blocks share. */
static wide decoder_bytes(const struct model_config *c, const struct train_options *o,
                          const struct shape *shape, bool f8)
{
    const struct sizes s = sizes_of(c);
    const wide e = dtype_bytes(o->dtype), f = sizeof(float), rows = (wide)o->decode_rows;
    const wide held = up(positions_of(o), 64), most = up(held, 256) / 256;
    wide chunks = 1;
    while (chunks * 256 < positions_of(o))
        chunks *= 2;
    if (chunks > most)
        chunks = most;
    wide sum = 2 * array(s.L * rows * held * s.KD * e);
    sum += acts_bytes(c, o, larger(prefill_of(o), rows), ACTS_INFER, f8);
    sum += array(chunks * rows * s.H * (s.D + 2) * f);
    sum += decoder_rows(o) + (f8 ? f8_bytes(rows, s.C) : 0);
    sum += array(rows * (wide)shape->ld * e) + array(rows * f) + 2 * array((rows + 256) * f);
    return sum + array(8 * 4);
}

/* Return the bytes that a teacher leaves for several micro-batches that it runs over at once: as many as fit in the
 * room of other users of activations, in equal passes. */
static wide pass_bytes(const struct model_config *t, const struct train_options *o,
                       const struct train_options *plain, const struct shape *shape, wide room)
{
    const wide N = (wide)o->batch_size * (wide)o->seq_len;
    const wide ranks = o->ranks > 1 ? (wide)o->ranks : 1;
    const wide micro = o->steps > 0 ? (wide)o->grad_accum / ranks : 1;
    wide batches = o->steps > 0 && N < 8192 ? 8192 / N : 1;
    batches = batches < micro ? batches : micro;
    while (batches > 1 && (micro % batches != 0 ||
                           acts_bytes(t, plain, batches * N, ACTS_INFER, o->teacher_fp8) > room))
        batches--;
    const wide rows = batches * (wide)shape->rows;
    return batches > 1
               ? array(rows * (wide)t->hidden_size * dtype_bytes(o->dtype)) + 3 * array(rows * 4)
               : 0;
}

/* The student's logits take no bytes where a step is one micro-batch and the layers' gradients have room for them. */
static wide logits_bytes(const struct model_config *s, const struct train_options *o, wide logits)
{
    const struct sizes sizes = sizes_of(s);
    const bool idle = o->steps > 0 && o->lora.rank == 0 && o->grad_accum == 1;
    return idle && logits <= matrices(&sizes) * sizeof(float) ? 0 : logits;
}

static wide device_bytes(const struct model_config *s, const struct model_config *t,
                         const struct train_options *o, const struct shape *shape)
{
    const wide e = dtype_bytes(o->dtype), f = sizeof(float), chunk = (wide)shape->chunk;
    const wide padded = (wide)shape->padded, logits = array(chunk * (wide)shape->ld * e);
    const struct train_options plain = {
        .seq_len = o->seq_len,
        .dtype = o->dtype,
        .decode_rows = o->decode_rows,
        .decode_positions = o->decode_positions,
    };
    const wide N = (wide)o->batch_size * (wide)o->seq_len;
    wide acts = acts_bytes(s, o, N, o->steps > 0 ? ACTS_TRAIN : ACTS_INFER, false);
    if (o->decode_rows > 0)
        acts = larger(acts, t && o->teacher_writes ? decoder_bytes(t, &plain, shape, o->teacher_fp8)
                                                   : decoder_bytes(s, o, shape, false));
    wide sum = trained_bytes(s, o) + rows_bytes(shape) + 4 * array(chunk * f);
    sum += array(padded * (wide)s->hidden_size * e) + logits_bytes(s, o, logits);
    sum += array(NJ_STEP_SLOTS * f) + array(8 * f) + array((wide)pieces_sumsq(&shape->pieces) * f) +
           array(f);
    if (!t)
        return sum + acts;
    sum += teacher_bytes(t, o) + logits + array(padded * (wide)t->hidden_size * e) + array(f);
    sum += o->teacher_fp8 ? f8_bytes(chunk, (wide)t->hidden_size) : 0;
    const wide room = larger(acts, acts_bytes(t, &plain, N, ACTS_INFER, o->teacher_fp8));
    return sum + room + pass_bytes(t, o, &plain, shape, room);
}

static wide host_bytes(bool teacher, const struct train_options *o, const struct shape *shape)
{
    const wide micro = o->steps > 0 ? (wide)o->grad_accum : 1;
    const wide tokens = array((wide)shape->padded * sizeof(float));
    return array(rows_bytes(shape) * micro) + array(sizeof(struct pinned)) + array(32 << 20) +
           (teacher && o->steps == 0 ? 2 * tokens : 0) + (o->decode_rows > 0 ? decoder_rows(o) : 0);
}

/* ---- the target ---- */

/* The shape that the plan is made of; its numbers are small. */
static struct shape shape_of(const struct model_config *s, const struct model_config *t,
                             const struct train_options *o)
{
    struct net n = {.c = *s, .T = o->dtype};
    struct lora lora = {0};
    struct shape shape;
    FUZZ_CHECK(net_layout(&n, &o->lora, NULL, &lora) == 0);
    plan_shape(&n, t, o, &shape);
    net_free(&n);
    lora_free(&lora);
    return shape;
}

static void check_plan(int rc, const struct plan *p, const struct model_config *s,
                       const struct model_config *t, const struct train_options *o)
{
    const struct shape shape = shape_of(s, t, o);
    const wide device = device_bytes(s, t, o, &shape) + o->workspace_bytes;
    const wide host = host_bytes(t != NULL, o, &shape);
    wide sum = 0;
    FUZZ_CHECK((rc == 0) == (device < SIZE_MAX && host < SIZE_MAX));
    if (rc)
        return;
    for (int i = 0; i < p->count; i++)
        sum += p->region[i].bytes;
    FUZZ_CHECK(p->total_bytes == device && p->host_bytes == host && sum == device + host);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct input in = {0};
    struct plan plan;
    memcpy(&in, data, bytes < sizeof in ? bytes : sizeof in);
    const struct model_config s = config_of(&in.student), t = config_of(&in.teacher);
    const struct model_config *teacher = in.has_teacher ? &t : NULL;
    const struct train_options o = options_of(&in);
    int rc = config_check(&s, "student");
    if (rc == 0 && teacher)
        rc = config_check(teacher, "teacher");
    if (rc == 0) {
        rc = plan_make(&s, teacher, &o, &plan);
        if (rc == 0 || rc == NJ_E_NOMEM)
            check_plan(rc, &plan, &s, teacher, &o);
    }
    fuzz_verdict(rc == 0, fail_text());
    return 0;
}
