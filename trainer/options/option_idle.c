/* SPDX-License-Identifier: Apache-2.0
 *
 * option_idle.c: notes about given options that have no effect with the other options.
 */
#include "options/options.h"

#include "batch/data.h"
#include "io/notes.h"
#include "options/settings.h"

static bool writes_answers(const struct settings *s)
{
    return s->on_policy > 0;
}
static bool has_samples(const struct settings *s)
{
    return s->sample_prompts.count > 0;
}

static bool decodes(const struct settings *s)
{
    return writes_answers(s) || has_samples(s);
}
static bool counts_epochs(const struct settings *s)
{
    return s->steps == 0;
}
static bool takes_ratio(const struct settings *s)
{
    return s->warmup_steps == 0;
}
static bool decays(const struct settings *s)
{
    return s->lr_schedule != SCHEDULE_CONSTANT;
}
static bool keeps_documents(const struct settings *s)
{
    return s->packing != PACKING_WRAPPED;
}
static bool reads_prompts(const struct settings *s)
{
    return s->prompts.count > 0;
}
static bool samples(const struct settings *s)
{
    return s->sample_temperature > 0;
}
static bool writes_texts(const struct settings *s)
{
    return s->tasks.count > 0 || s->prompts.count > 0;
}
static bool tries_kernels(const struct settings *s)
{
    return s->self_test;
}
static bool reads_data(const struct settings *s)
{
    return s->data.count > 0;
}

enum { NAMES_MOST = 8 };

static const struct idle {
    unsigned commands;
    const char *with; /* options that they need: "--on-policy" */
    bool (*has)(const struct settings *s);
    const char *names[NAMES_MOST + 1];
} rows[] = {
    {CMD_DISTILL,
     "--on-policy",
     writes_answers,
     {"max-new", "group", "rollout-temperature", "rollout-top-p", "reuse", "rollout-batch"}},
    {CMD_DISTILL, "--on-policy or --sample-prompt", decodes, {"kv-dtype"}},
    {CMD_DISTILL | CMD_TRAIN,
     "--sample-prompt",
     has_samples,
     {"sample-tokens", "sample-temperature", "sample-min-p"}},
    {CMD_DISTILL | CMD_TRAIN, "--steps 0", counts_epochs, {"epochs"}},
    {CMD_DISTILL | CMD_TRAIN, "--warmup-steps 0", takes_ratio, {"warmup-ratio"}},
    {CMD_DISTILL | CMD_TRAIN, "a --lr-schedule that decays", decays, {"min-lr-ratio"}},
    {CMD_DISTILL | CMD_TRAIN, "--packing bfd or none", keeps_documents, {"overlong"}},
    {CMD_GENERATE, "--prompts", reads_prompts, {"batch-size", "skip-unusable"}},
    {CMD_GENERATE, "a --temperature above 0", samples, {"top-k", "top-p", "min-p", "seed"}},
    {CMD_EVAL, "--tasks or --prompts", writes_texts, {"max-tokens"}},
    {CMD_DOCTOR, "--self-test", tries_kernels, {"report"}},
    {CMD_EVAL, "--data", reads_data, {"fields", "split", "train-on-prompts", "skip-unusable"}},
};

void options_note_idle(const struct command_info *c, const struct settings *s)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct idle *r = &rows[i];
        if (!(r->commands & c->bit) || r->has(s))
            continue;
        for (const char *const *name = r->names; *name != NULL; name++)
            if (settings_given(s, *name))
                note("--%s has no effect without %s", *name, r->with);
    }
}
