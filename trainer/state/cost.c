/* SPDX-License-Identifier: Apache-2.0
 *
 * cost.c: see cost.h.
 */
#include "state/cost.h"

#include "net/fp8.h"
#include "net/student_fp8.h"
#include "state/plan_layout.h"

#include <math.h>

/* Return the number of trained elements beside a frozen model. */
static double adapter_parameters(const struct net *n)
{
    double count = 0;
    for (size_t i = 0; net_is_frozen(n) && i < n->trained->specs; i++)
        count += (double)tensor_elements(&n->trained->spec[i]);
    return count;
}

/* Return the operations of attention for one token in all layers. */
static double attention_flops(const struct model_config *c, double seq_len)
{
    double sum = 0;
    for (int l = 0; l < c->layers; l++) {
        const struct layer *layer = arch_layer(&c->arch, l);
        for (int b = 0; b < layer->blocks; b++)
            sum += block_attention_flops(&layer->block[b], seq_len);
    }
    return sum;
}

/* Operations of a model. Forward: 2 per token and weight that it uses (the embedding table counts as the head, not for
 * look-ups), and attention. Backward: as many for the gradients of inputs, and again for trained weights. */
struct flops {
    double weights, attention; /* operations of the forward pass */
};

static struct flops forward_flops(const struct model_config *c, double tokens, double seq_len)
{
    double weights = (double)config_active_parameters(c);
    if (!c->tied)
        weights -= (double)c->vocab_size * c->hidden_size;
    return (struct flops){tokens * 2.0 * weights, tokens * attention_flops(c, seq_len)};
}

/* Return the weights of experts that a token uses in all layers. */
static double expert_weights(const struct model_config *c)
{
    double sum = 0;
    for (int l = 0; l < c->layers; l++) {
        const struct layer *layer = arch_layer(&c->arch, l);
        for (int b = 0; b < layer->blocks; b++)
            if (layer->block[b].kind == BLOCK_EXPERTS)
                sum += 3.0 * c->hidden_size * (double)block_ffn_used(&layer->block[b]);
    }
    return sum;
}

static double tokens_of(const struct train_options *o)
{
    return (double)o->batch_size * o->seq_len * o->grad_accum;
}

struct step_flops step_flops_count(const struct net *student, const struct net *teacher,
                                   const struct train_options *o, bool fp8_head)
{
    const double tokens = tokens_of(o), S = (double)o->seq_len;
    const struct flops s = forward_flops(&student->c, tokens, S);
    /* Number of passes over weights: forward, for the gradients of inputs, and for the gradients of trained
     * weights. */
    const double passes = net_is_frozen(student) ? 2.0 : 3.0;
    const double layers = 2.0 * tokens * (double)student_fp8_weights(student);
    const double head = 2.0 * tokens * (double)student_fp8_head_weights(student);
    const double f8 = passes * layers + (fp8_head ? passes : 1.0) * head;
    struct step_flops out = {.student = passes * s.weights - f8 + 3.0 * s.attention,
                             .student_fp8 = f8,
                             .attention = 3.0 * s.attention};
    out.student += 6.0 * tokens * adapter_parameters(student);
    if (teacher) {
        const struct flops t = forward_flops(&teacher->c, tokens, S);
        const double plain = 2.0 * tokens * (double)fp8_elements(teacher, &matrix_fp8_refused);
        out.teacher_fp8 = o->teacher_fp8 ? t.weights - plain : 0;
        out.teacher = t.weights - out.teacher_fp8;
        out.teacher += t.attention;
        out.attention += t.attention;
    }
    return out;
}

/* Return the number of weights of the products that are recomputed: of gate and up in all layers, or of whole
 * layers. */
static double recomputed_weights(const struct net *n)
{
    const struct model_config *c = &n->c;
    double elements = 0;
    for (int l = 0; l < c->layers; l++) {
        const struct layer *layer = arch_layer(&c->arch, l);
        for (int i = 0; i < layer->blocks; i++) {
            const struct block *b = &layer->block[i];
            const int64_t gate_up = 2 * (int64_t)b->ffn_size, down = b->ffn_size;
            const int64_t out = (int64_t)b->heads * b->head_dim;
            const bool gated = b->kind == BLOCK_DELTA || block_has(b, FEATURE_GATE);
            const int64_t attention = block_qkv_size(b) + (gated ? 2 : 1) * out;
            const int64_t conv = 3 * (int64_t)b->channels;
            elements += (double)c->hidden_size * (double)(n->recompute == RECOMPUTE_MLP
                                                              ? gate_up
                                                              : gate_up + down + attention + conv);
        }
    }
    return elements;
}

/* Add the operations that the backward pass recomputes. */
static void add_recomputed(const struct net *n, double tokens, double seq_len,
                           struct step_work *out)
{
    if (n->recompute == RECOMPUTE_NONE)
        return;
    out->gemm += 2.0 * tokens * recomputed_weights(n);
    if (n->recompute == RECOMPUTE_BLOCK)
        out->attention += forward_flops(&n->c, tokens, seq_len).attention;
}

/* Return the bytes that kernels between the GEMMs of all layers move per token, forward and (of a student) back: 16-bit
 * elements of the MLP's width, of the residual stream, of queries, keys and values, of convolutions and their gates. */
static double layers_bytes(const struct model_config *c, bool train)
{
    const double stream = (train ? 20.0 : 8.0) * c->hidden_size;
    double sum = 0;
    for (int l = 0; l < c->layers; l++) {
        const struct layer *layer = arch_layer(&c->arch, l);
        for (int i = 0; i < layer->blocks; i++) {
            const struct block *b = &layer->block[i];
            const double ffn = (double)block_ffn_used(b), qkv = (double)block_qkv_size(b);
            const double channels = block_channels(b);
            sum += 4.0 * b->experts_used * c->hidden_size; /* a result of each expert of a row */
            sum += stream + (train ? 18 * ffn + 8 * qkv : 6 * ffn + 4 * qkv);
            sum += (train ? 34 : 8) * channels;
        }
    }
    return sum;
}

/* Return the bytes that an update moves per parameter: AdamW, and the gradient once more for its norm. */
static double update_bytes(const struct train_options *o)
{
    const double norm = sizeof(float);
    if (o->optimizer_state == STATE_BF16)
        return 16 + norm;
    return (o->dtype == NJ_F32 ? 28 : 30) + norm;
}

struct step_work forward_work_count(const struct model_config *c, const struct train_options *o,
                                    double sequences)
{
    const double tokens = sequences * o->seq_len;
    const struct flops f = forward_flops(c, tokens, o->seq_len);
    const double head = 2 * tokens * c->vocab_size * c->hidden_size;
    const double experts = 2 * tokens * expert_weights(c);
    return (struct step_work){.tokens = tokens,
                              .gemm = f.weights - head - experts,
                              .gemm_experts = experts,
                              .attention = f.attention,
                              .bytes =
                                  (double)dtype_bytes(o->dtype) * tokens * layers_bytes(c, false),
                              .layers = c->layers * ceil(sequences / o->batch_size)};
}

struct step_work step_work_count(const struct net *student, const struct net *teacher, int batches,
                                 const struct train_options *o, bool fp8_head)
{
    struct step_work out = {0};
    const int ranks = o->ranks > 1 && o->rank != RANKS_VIRTUAL ? o->ranks : 1;
    const double tokens = tokens_of(o) / ranks, micro = (double)o->grad_accum / ranks;
    const double wide = o->dtype == NJ_F32 ? 2 : 1; /* size of elements relative to 16 bits */
    const double trained =
        net_is_frozen(student) ? adapter_parameters(student) : (double)student->p.count;
    const struct step_flops f = step_flops_count(student, teacher, o, fp8_head);
    if (o->steps == 0)
        return out;
    out.tokens = tokens * ranks;
    out.attention = f.attention / ranks;
    out.gemm_experts = 6 * tokens * expert_weights(&student->c);
    if (teacher)
        out.gemm_experts += 2 * tokens * expert_weights(&teacher->c);
    out.gemm = (f.student + f.teacher - f.attention) / ranks - out.gemm_experts;
    out.gemm_fp8 = (f.student_fp8 + f.teacher_fp8) / ranks;
    add_recomputed(student, tokens, o->seq_len, &out);
    out.layers = 3 * student->c.layers * micro;
    out.bytes = trained * update_bytes(o) / ranks;
    out.bytes += wide * tokens * layers_bytes(&student->c, true);
    /* the objective reads logits and writes their gradient in place */
    out.bytes += wide * tokens * student->c.vocab_size * (teacher ? 6 : 4);
    if (!teacher)
        return out;
    const double passes = micro / batches;
    out.layers += teacher->c.layers * passes;
    out.bytes += wide * tokens * layers_bytes(&teacher->c, false);
    /* no matrix is in the arena: read as they are, written in 16 bits */
    if (teacher->p.embed < 0 && teacher->p.head < 0)
        out.bytes += 3 * passes * (double)config_parameters(&teacher->c);
    return out;
}
