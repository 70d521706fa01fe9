/* SPDX-License-Identifier: Apache-2.0
 *
 * receipt.c: receipt.json: what ran, on what, with which values, read back from where they are
 * used.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "error.h"
#include "run.h"

static void add_option(void *user, const char *name, const char *value)
{
    json_object_set_new(user, name, json_string(value));
}

static json_t *hex(uint64_t value)
{
    char text[20];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)value);
    return json_string(text);
}

/* XXH3-64 of the running binary. */
static uint64_t binary_hash(void)
{
    char block[65536];
    FILE *f = fopen("/proc/self/exe", "rb");
    XXH3_state_t *state = XXH3_createState();
    uint64_t hash = 0;
    if (f != NULL && state != NULL) {
        XXH3_64bits_reset(state);
        for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;)
            XXH3_64bits_update(state, block, n);
        hash = XXH3_64bits_digest(state);
    }
    if (f != NULL)
        fclose(f);
    XXH3_freeState(state);
    return hash;
}

static json_t *applied(const struct train_options *o)
{
    static const char *const schedules[] = {"cosine", "linear", "constant", "wsd"};
    return json_pack(
        "{s:i, s:i, s:i, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:s, s:s, "
        "s:i, s:f, s:f, s:s}",
        "batch_size", o->batch_size, "seq_len", o->seq_len, "grad_accum", o->grad_accum, "steps",
        (json_int_t)o->steps, "temperature", (double)o->temperature, "kd_ratio",
        (double)o->kd_ratio, "beta", (double)o->beta, "lr", (double)o->lr, "min_lr_ratio",
        (double)o->min_lr_ratio, "weight_decay", (double)o->weight_decay, "beta1", (double)o->beta1,
        "beta2", (double)o->beta2, "eps", (double)o->eps, "max_grad_norm", (double)o->max_grad_norm,
        "warmup_steps", (json_int_t)o->warmup_steps, "lr_schedule", schedules[o->schedule], "dtype",
        o->dtype == NJ_F32 ? "float32" : "16-bit", "lora_r", o->lora.rank, "lora_alpha",
        o->lora.alpha, "lora_dropout", o->lora.dropout, "teacher_dtype",
        o->teacher_f8 ? "fp8" : "as dtype");
}

static json_t *device(const struct nj_device_info *d)
{
    return json_pack("{s:s, s:s, s:i, s:s, s:i, s:s, s:I, s:I, s:i, s:i}", "name", d->name,
                     "backend", d->backend, "sm", d->sm, "driver", d->driver, "driver_cuda",
                     d->driver_version, "gemm_library", d->gemm_library, "gemm_version",
                     (json_int_t)d->gemm_version, "memory_bytes", (json_int_t)d->memory_bytes,
                     "kernels_loaded", (int)d->kernels_loaded, "modules_loaded",
                     (int)d->modules_loaded);
}

int receipt_write(const char *dir, const struct command_info *c, const struct run *r,
                  int64_t steps_done)
{
    char path[PATH_BYTES + 16];
    struct nj_embedded e = {0};
    nj_embedded_read(&e);
    json_t *options = json_object();
    settings_visit(c, r->s, add_option, options);
    const struct model_config *teacher = engine_teacher(r->engine);
    const struct teacher_check *check = &r->teacher_check;
    json_t *root = json_pack(
        "{s:s, s:s, s:I, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I}", "nojit",
        NOJIT_VERSION, "command", c->name, "steps_done", (json_int_t)steps_done, "options", options,
        "applied", applied(&r->options), "device", device(nj_context_device(r->ctx)), "toolkit",
        e.toolkit, "binary_hash", hex(binary_hash()), "student_hash",
        hex(engine_student_hash(r->engine)), "data_hash", hex(data_hash(r->data)), "data_tokens",
        (json_int_t)data_tokens(r->data), "student_parameters",
        (json_int_t)config_parameters(engine_student(r->engine)), "teacher_parameters",
        (json_int_t)(teacher != NULL ? config_parameters(teacher) : 0), "plan_bytes",
        (json_int_t)engine_plan(r->engine)->total_bytes, "fallbacks", (json_int_t)r->fallbacks,
        "trained_parameters", (json_int_t)engine_trained_parameters(r->engine));
    if (root != NULL && teacher != NULL)
        json_object_set_new(root, "teacher_hash", hex(engine_teacher_hash(r->engine)));
    if (root != NULL && check->tokens > 0)
        json_object_set_new(root, "teacher_check",
                            json_pack("{s:f, s:f, s:I}", "kl", check->kl, "agreement",
                                      check->agreement, "tokens", (json_int_t)check->tokens));
    snprintf(path, sizeof path, "%s/receipt.json", dir);
    const int failed = root == NULL || json_dump_file(root, path, JSON_INDENT(2)) != 0;
    json_decref(root);
    return failed ? fail(NJ_E_IO, "%s: cannot be written: %s", path, strerror(errno)) : 0;
}
