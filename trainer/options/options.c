/* SPDX-License-Identifier: Apache-2.0
 *
 * options.c: the table of options, made of the rows of options.def.
 */
#include "options/options.h"

#include "engine/engine.h"
#include "options/settings.h"

#define AT(field) offsetof(struct settings, field)
#define LEARNING (CMD_DISTILL | CMD_TRAIN)
#define TRAINING (LEARNING | CMD_PLAN)
#define RUNS (TRAINING | CMD_EVAL)
#define SETTABLE (RUNS | CMD_CACHE | CMD_GENERATE | CMD_INIT)

static const char models[] = "Models and data";
static const char shape[] =
    "Shape (random weights; anything not given comes from --like or --preset)";
static const char objective[] = "Objective";
static const char policy[] = "On-policy distillation";
static const char length[] = "Length";
static const char optimizer[] = "Optimizer";
static const char adapters[] = "Adapters (LoRA)";
static const char run[] = "Run";
static const char text[] = "Text";

#define OPTION(option_kind, field, ...)                                                            \
    {.kind = OPT_##option_kind, .offset = AT(field), __VA_ARGS__},
#define OPTION_TOO OPTION
/* The value of .applied: a field of struct train_options. */
#define ENGINE(field)                                                                              \
    {                                                                                              \
        .type = _Generic(((struct train_options *)0)->field, int                                   \
                         : ENGINE_INT, unsigned                                                    \
                         : ENGINE_INT, int64_t                                                     \
                         : ENGINE_INT64, uint64_t                                                  \
                         : ENGINE_INT64, float                                                     \
                         : ENGINE_FLOAT, double                                                    \
                         : ENGINE_DOUBLE),                                                         \
        .offset = offsetof(struct train_options, field)                                            \
    }

const struct option options[] = {
#include "options/options.def"
    {.name = NULL},
};
