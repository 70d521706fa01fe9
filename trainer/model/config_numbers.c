/* SPDX-License-Identifier: Apache-2.0
 *
 * config_numbers.c: see config_numbers.h. What a number multiplies is as in the families' modeling files of
 * transformers 5.24.
 */
#include "model/config_numbers.h"

#include "base/try.h"
#include "io/error.h"

#include <math.h>

/* Set a factor that follows from a field; 1 is 0, which counts as 1 and costs nothing. */
static int set_factor(const struct fields *f, const char *name, double value, float *out)
{
    *out = value == 1 ? 0 : (float)value;
    if (value == 1 || (*out > 0 && isfinite(*out)))
        return 0;
    return field_refuse(f, NJ_E_FORMAT, name, field_get(f, name),
                        "float32 cannot hold what follows from it");
}

static int read_factor(const struct fields *f, const char *name, float *out)
{
    double value;
    TRY(field_number(f, name, 1, &value));
    return set_factor(f, name, value, out);
}

static int read_multipliers(const struct fields *f, struct model_config *c, struct block *attention)
{
    static const char logits[] = "logits_scaling";
    double divisor, scale;
    TRY(read_factor(f, "embedding_multiplier", &c->embedding_scale));
    TRY(read_factor(f, "residual_multiplier", &c->residual_scale));
    TRY(field_number(f, "attention_multiplier", 1, &scale));
    TRY(field_number(f, logits, 1, &divisor));
    attention->score_scale = (float)scale;
    return set_factor(f, logits, 1 / divisor, &c->logit_scale);
}

/* Read the factors of MiniCPM (Hu et al. 2024, arXiv:2404.06395, section 3), whose classes are remote code. */
static int read_depth(const struct fields *f, struct model_config *c)
{
    static const char depth[] = "scale_depth", base[] = "dim_model_base";
    double residual, width;
    TRY(read_factor(f, "scale_emb", &c->embedding_scale));
    TRY(field_number(f, depth, 1, &residual));
    TRY(field_number(f, base, 1, &width));
    TRY(set_factor(f, depth, residual / sqrt(c->layers), &c->residual_scale));
    return set_factor(f, base, width / c->hidden_size, &c->logit_scale);
}

static int read_gemma(const struct fields *f, struct model_config *c, struct block *attention)
{
    enum { SCALAR = 256 }; /* default of Gemma 3 */
    static const char cap[] = "final_logit_softcapping";
    double scalar, most;
    TRY(field_number(f, "query_pre_attn_scalar", SCALAR, &scalar));
    attention->score_scale = (float)(1 / sqrt(scalar));
    if (!field_get(f, cap))
        return 0;
    TRY(field_number(f, cap, NAN, &most));
    c->logit_cap = (float)most;
    return 0;
}

/* Read the numbers of Muse Glimmer, whose defaults are those of its class. */
static int read_muse(const struct fields *f, struct model_config *c, struct block *attention)
{
    static const char multiplier[] = "output_multiplier";
    double score, factor, cap, eps;
    TRY(field_number(f, "qk_scale_factor", 3.87, &score));
    TRY(field_number(f, multiplier, 0.19611613513818404, &factor));
    TRY(field_number(f, "final_logit_softcapping", 20, &cap));
    TRY(field_number(f, "post_norm_eps", 1e-8, &eps));
    attention->score_scale = (float)(score / sqrt(attention->head_dim));
    c->logit_cap = (float)cap;
    c->after_eps = (float)eps;
    return set_factor(f, multiplier, factor, &c->logit_scale);
}

int config_numbers(const struct fields *f, const struct family *family, struct model_config *c,
                   struct block *attention)
{
    if (family->fields & FIELDS_MULTIPLIERS)
        TRY(read_multipliers(f, c, attention));
    if (family->fields & FIELDS_GEMMA)
        TRY(read_gemma(f, c, attention));
    if (family->fields & FIELDS_MUSE)
        TRY(read_muse(f, c, attention));
    if (family->fields & FIELDS_DEPTH)
        TRY(read_depth(f, c));
    if (family->embed_root)
        c->embedding_scale = sqrtf((float)c->hidden_size);
    return 0;
}
