/* SPDX-License-Identifier: Apache-2.0
 *
 * lora_config.c: see lora_config.h. It decides which adapters of PEFT this program accepts, and writes them in PEFT's
 * form.
 */
#include "model/lora_config.h"

#include "base/families.h"
#include "base/try.h"
#include "formats/safetensors.h"
#include "io/error.h"
#include "io/json_text.h"
#include "io/path.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const enum tensor_role role_of[LORA_TARGETS] = {
    [LORA_Q] = ROLE_Q_WEIGHT,          [LORA_K] = ROLE_K_WEIGHT,
    [LORA_V] = ROLE_V_WEIGHT,          [LORA_O] = ROLE_O_WEIGHT,
    [LORA_GATE] = ROLE_GATE_WEIGHT,    [LORA_UP] = ROLE_UP_WEIGHT,
    [LORA_DOWN] = ROLE_DOWN_WEIGHT,    [LORA_IN_QKV] = ROLE_DELTA_QKV_WEIGHT,
    [LORA_IN_Z] = ROLE_DELTA_Z_WEIGHT, [LORA_IN_B] = ROLE_DELTA_B_WEIGHT,
    [LORA_IN_A] = ROLE_DELTA_A_WEIGHT, [LORA_IN] = ROLE_CONV_IN_WEIGHT,
    [LORA_OUT] = ROLE_CONV_OUT_WEIGHT,
};

/* Roles of the tensors that hold several of these matrices where files fuse them; ROLE_COUNT: none. */
static const enum tensor_role fused_of[LORA_TARGETS] = {
    [LORA_Q] = ROLE_QKV_WEIGHT, [LORA_K] = ROLE_QKV_WEIGHT,        [LORA_V] = ROLE_QKV_WEIGHT,
    [LORA_O] = ROLE_COUNT,      [LORA_GATE] = ROLE_GATE_UP_WEIGHT, [LORA_UP] = ROLE_GATE_UP_WEIGHT,
    [LORA_DOWN] = ROLE_COUNT,   [LORA_IN_QKV] = ROLE_COUNT,        [LORA_IN_Z] = ROLE_COUNT,
    [LORA_IN_B] = ROLE_COUNT,   [LORA_IN_A] = ROLE_COUNT,          [LORA_IN] = ROLE_COUNT,
    [LORA_OUT] = ROLE_COUNT,
};

/* Return whether a target is, or is part of, the tensor of a role. Modules called gate_proj are the MLP's, and the gate
 * of attention's output; those called out_proj are of both recurrent blocks. */
static bool is_in(int target, enum tensor_role role)
{
    return role_of[target] == role || fused_of[target] == role ||
           (target == LORA_GATE && role == ROLE_ATTENTION_GATE) ||
           (target == LORA_OUT && role == ROLE_DELTA_OUT_WEIGHT);
}

int lora_adapter_of(enum tensor_role role)
{
    static const struct {
        enum tensor_role role;
        int adapter;
    } others[] = {{ROLE_ATTENTION_GATE, LORA_LAST}, {ROLE_DELTA_QKV_WEIGHT, 0},
                  {ROLE_DELTA_Z_WEIGHT, 1},         {ROLE_DELTA_B_WEIGHT, 2},
                  {ROLE_DELTA_A_WEIGHT, 3},         {ROLE_DELTA_OUT_WEIGHT, LORA_LAST},
                  {ROLE_CONV_IN_WEIGHT, 0},         {ROLE_CONV_OUT_WEIGHT, LORA_LAST}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].role == role)
            return others[i].adapter;
    for (int t = 0; t < LORA_LAST; t++)
        if (is_in(t, role))
            return t;
    return -1;
}

/* Return whether a family calls the modules of two roles the same, so that adapters have them both. */
static bool share_name(const char *model_type, enum tensor_role a, enum tensor_role b)
{
    char x[TENSOR_NAME_BYTES], y[TENSOR_NAME_BYTES];
    tensor_module_of(model_type, a, x);
    tensor_module_of(model_type, b, y);
    return strcmp(x, y) == 0;
}

int lora_wants(const struct lora_config *c, const char *model_type, enum tensor_role role,
               bool *wanted)
{
    const bool one = share_name(model_type, ROLE_O_WEIGHT, ROLE_CONV_OUT_WEIGHT);
    bool all = true;
    int length;
    *wanted = false;
    if (one && (role == ROLE_O_WEIGHT || role == ROLE_CONV_OUT_WEIGHT)) {
        *wanted = c->target[LORA_O] || c->target[LORA_OUT];
        return 0;
    }
    for (int t = 0; t < LORA_TARGETS; t++)
        if (is_in(t, role)) {
            *wanted |= c->target[t];
            all &= c->target[t];
        }
    if (all || !*wanted)
        return 0;
    const char *name = tensor_module(role, &length);
    return fail(NJ_E_UNSUPPORTED,
                "%.*s is one matrix of this model, and only parts of it are to have adapters; name "
                "%.*s itself, or none of its parts",
                length, name, length, name);
}

/* Return whether a family calls the module of a role so. */
static bool is_module(enum tensor_role role, const char *name, size_t length)
{
    bool found = false;
    for (int i = 0; i < FAMILIES && role != ROLE_COUNT; i++) {
        char module[TENSOR_NAME_BYTES];
        tensor_module_of(families[i].model_type, role, module);
        found = found || (strlen(module) == length && strncmp(name, module, length) == 0);
    }
    return found;
}

/* Return the target whose usual name that is; LORA_TARGETS: it is that of none. */
static int named(const char *name, size_t length)
{
    int t = 0, own;
    for (; t < LORA_TARGETS; t++) {
        const char *usual = tensor_module(role_of[t], &own);
        if ((size_t)own == length && strncmp(usual, name, length) == 0)
            break;
    }
    return t;
}

/* Return whether a target has that name, or, if it is the usual name of none, whether a family calls it so. */
static bool is_called(int target, const char *name, size_t length)
{
    if (named(name, length) < LORA_TARGETS)
        return target == named(name, length);
    return is_module(role_of[target], name, length) || is_module(fused_of[target], name, length);
}

/* Return the role of the tensor of a model that holds a target. */
static enum tensor_role role_in(const struct model_config *model, int target)
{
    static const enum feature fuses[] = {
        [BLOCK_ATTENTION] = FEATURE_FUSED_QKV, [BLOCK_GLU] = FEATURE_FUSED_GATE_UP};
    const enum block_kind kind =
        fused_of[target] == ROLE_GATE_UP_WEIGHT ? BLOCK_GLU : BLOCK_ATTENTION;
    const struct block *b = arch_first(&model->arch, model->layers, kind);
    const bool fused = fused_of[target] != ROLE_COUNT && b && block_has(b, fuses[kind]);
    return fused ? fused_of[target] : role_of[target];
}

/* Write the names of the targets of c, with a separator between. */
static void names_text(const struct lora_config *c, const char *separator, char *out, size_t bytes)
{
    size_t used = 0;
    int length;
    *out = '\0';
    for (int t = 0; t < LORA_TARGETS && used < bytes; t++) {
        const char *name = tensor_module(role_of[t], &length);
        if (c->target[t])
            used += (size_t)snprintf(out + used, bytes - used, "%s%.*s", used ? separator : "",
                                     length, name);
    }
}

static int add_target(struct lora_config *c, const char *name, size_t length)
{
    const bool all = length == 10 && strncmp(name, "all-linear", length) == 0;
    struct lora_config every = {.rank = 0};
    char names[LORA_TARGETS * 16];
    bool found = false;
    for (int t = 0; t < LORA_TARGETS; t++)
        every.target[t] = true;
    for (int t = 0; t < LORA_TARGETS; t++)
        if (all || is_called(t, name, length))
            c->target[t] = found = true;
    if (found)
        return 0;
    names_text(&every, ", ", names, sizeof names);
    return fail(NJ_E_ARG, "no matrix is called '%.*s'; name some of %s, or all-linear", (int)length,
                name, names);
}

int lora_targets_add(struct lora_config *c, const char *list)
{
    for (;;) {
        size_t length = strcspn(list, ",");
        int rc = add_target(c, list, length);
        if (rc != 0 || list[length] == '\0')
            return rc;
        list += length + 1;
    }
}

void lora_targets_text(const struct lora_config *c, char *out, size_t bytes)
{
    names_text(c, ",", out, bytes);
}

/* ---- reading ---- */

static int read_targets(const char *path, const json_t *names, struct lora_config *out)
{
    size_t i;
    const json_t *name;
    if (json_is_string(names) && strcmp(json_string_value(names), "all-linear") == 0)
        return lora_targets_add(out, "all-linear");
    if (!json_is_array(names) || json_array_size(names) == 0)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: target_modules must be a list of names; patterns are not read", path);
    json_array_foreach(names, i, name)
    {
        /* A path names one layer's matrix; if others lack theirs, loading says which. */
        const char *text = json_is_string(name) ? json_string_value(name) : "";
        const char *dot = strrchr(text, '.');
        text = dot ? dot + 1 : text;
        if (add_target(out, text, strlen(text)) != 0)
            return fail(NJ_E_UNSUPPORTED,
                        "%s: target_modules names '%s', which has no adapter here; train adapters "
                        "of the projections of the layers",
                        path, text);
    }
    return 0;
}

/* Return whether a field is off: absent, null, false, "none" or empty. */
static bool is_off(const json_t *value)
{
    if (!value || json_is_null(value) || json_is_false(value))
        return true;
    if (json_is_string(value))
        return strcmp(json_string_value(value), "none") == 0;
    return (json_is_array(value) || json_is_object(value)) && json_array_size(value) == 0 &&
           json_object_size(value) == 0;
}

/* The fields of adapter_config.json as PEFT 0.21 has them. Any other field must be off, too: a later version may use it
 * in its computation. */
static const char *const known[] = {
    /* fields that are read below */
    "peft_type",
    "r",
    "lora_alpha",
    "lora_dropout",
    "target_modules",
    "init_lora_weights",
    /* fields without effect on a plain adapter that was trained */
    "task_type",
    "auto_mapping",
    "peft_version",
    "base_model_name_or_path",
    "revision",
    "inference_mode",
    "megatron_core",
    "runtime_config",
    "ensure_weight_tying",
    "qalora_group_size",
    /* settings of initializations that init_lora_weights names */
    "loftq_config",
    "eva_config",
    "corda_config",
    "lora_ga_config",
};

static bool is_known(const char *name)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(name, known[i]) == 0)
            return true;
    return false;
}

/* Check the initialization. Some leave the base model as it was; others subtract the adapter from its weights, and the
 * adapter belongs to the difference. */
static int check_start(const char *path, const json_t *start)
{
    static const char *const whole[] = {"gaussian", "orthogonal", "eva"};
    const char *name = json_is_string(start) ? json_string_value(start) : NULL;
    for (size_t i = 0; name && i < sizeof whole / sizeof *whole; i++)
        if (strcasecmp(name, whole[i]) == 0)
            return 0;
    if (!start || json_is_null(start) || json_is_boolean(start))
        return 0;
    return fail(
        NJ_E_UNSUPPORTED,
        "%s: init_lora_weights is %s: the adapter counts from other weights than those of "
        "its base model; save it again in PEFT with path_initial_model_for_weight_conversion",
        path, name ? name : "no name");
}

static int check_others(const char *path, json_t *root)
{
    const char *name;
    json_t *value;
    json_object_foreach(root, name, value)
    {
        if (!is_known(name) && !is_off(value))
            return fail(NJ_E_UNSUPPORTED, "%s: %s is not implemented; use plain LoRA", path, name);
    }
    return 0;
}

static int read_fields(const char *path, json_t *root, struct lora_config *out)
{
    const json_t *type = json_object_get(root, "peft_type"), *rank = json_object_get(root, "r");
    const json_t *alpha = json_object_get(root, "lora_alpha");
    const json_t *dropout = json_object_get(root, "lora_dropout");
    if (!json_is_string(type) || strcmp(json_string_value(type), "LORA") != 0)
        return fail(NJ_E_UNSUPPORTED, "%s: peft_type must be LORA", path);
    TRY(check_others(path, root));
    TRY(check_start(path, json_object_get(root, "init_lora_weights")));
    if (!json_is_integer(rank) || json_integer_value(rank) < 1 || json_integer_value(rank) > 65536)
        return fail(NJ_E_FORMAT, "%s: r must be a whole number from 1 on", path);
    if (!json_is_number(alpha) || !(json_number_value(alpha) > 0))
        return fail(NJ_E_FORMAT, "%s: lora_alpha must be a number above 0", path);
    double p = json_is_number(dropout) ? json_number_value(dropout) : 0;
    if (!(p >= 0 && p < 1))
        return fail(NJ_E_FORMAT, "%s: lora_dropout must lie in [0, 1)", path);
    out->rank = (int)json_integer_value(rank);
    out->alpha = json_number_value(alpha);
    out->dropout = p;
    return read_targets(path, json_object_get(root, "target_modules"), out);
}

int lora_config_read(const char *dir, struct lora_config *out)
{
    char path[PATH_BYTES];
    json_t *root;
    *out = (struct lora_config){0};
    if (snprintf(path, sizeof path, "%s/adapter_config.json", dir) >= (int)sizeof path)
        return fail(NJ_E_ARG, "%.80s...: path too long; use a shorter one", dir);
    int rc = json_read_file(path, "give a folder of adapters as PEFT saves them", &root);
    if (rc == 0)
        rc = read_fields(path, root, out);
    json_decref(root);
    return rc;
}

int lora_weights_open(const char *dir, struct tensors *out)
{
    char path[PATH_BYTES], pickle[PATH_BYTES];
    if (snprintf(path, sizeof path, "%s/adapter_model.safetensors", dir) >= (int)sizeof path)
        return fail(NJ_E_ARG, "%.80s...: path too long; use a shorter one", dir);
    snprintf(pickle, sizeof pickle, "%s/adapter_model.bin", dir);
    if (access(path, F_OK) != 0 && access(pickle, F_OK) == 0)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: PyTorch pickles are not read; save the adapters with safetensors "
                    "(save_pretrained(..., safe_serialization=True))",
                    pickle);
    return st_open_file(path, out);
}

/* ---- writing ---- */

/* Return whether a model has a block with a target. */
static bool is_of(const struct model_config *model, int target)
{
    const struct arch *a = &model->arch;
    return arch_first(a, model->layers, tensor_block(role_of[target])) ||
           (target == LORA_OUT && arch_first(a, model->layers, BLOCK_DELTA));
}

/* Append the name of a module, unless it is there. */
static void add_name(json_t *names, const struct model_config *model, enum tensor_role role)
{
    char name[TENSOR_NAME_BYTES];
    size_t i;
    json_t *other;
    tensor_module_of(model->model_type, role, name);
    json_array_foreach(names, i, other)
    {
        if (strcmp(json_string_value(other), name) == 0)
            return;
    }
    json_array_append_new(names, json_string(name));
}

int lora_config_write(const char *dir, const struct lora_config *c,
                      const struct model_config *model, const char *base)
{
    char path[PATH_BYTES];
    if (snprintf(path, sizeof path, "%s/adapter_config.json", dir) >= (int)sizeof path)
        return fail(NJ_E_ARG, "%.80s...: path too long; use a shorter one", dir);
    json_memory_begin();
    json_t *names = json_array();
    for (int t = 0; t < LORA_TARGETS; t++)
        if (c->target[t] && is_of(model, t))
            add_name(names, model, role_in(model, t));
    json_t *root =
        json_pack("{s:s, s:s, s:s, s:i, s:f, s:f, s:o, s:s, s:b, s:b, s:b, s:b, s:b, s:n}",
                  "peft_type", "LORA", "task_type", "CAUSAL_LM", "base_model_name_or_path", base,
                  "r", c->rank, "lora_alpha", c->alpha, "lora_dropout", c->dropout,
                  "target_modules", names, "bias", "none", "fan_in_fan_out", 0, "inference_mode", 1,
                  "init_lora_weights", 1, "use_rslora", 0, "use_dora", 0, "modules_to_save");
    return json_write_file(path, root, JSON_INDENT(2));
}
