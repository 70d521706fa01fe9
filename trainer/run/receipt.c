/* SPDX-License-Identifier: Apache-2.0
 *
 * receipt.c: receipt.json: what ran, on what, with which values, read back from where they are
 * used.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "run/receipt.h"

#include "base/clock.h"
#include "io/error.h"
#include "io/json_text.h"
#include "io/whole_file.h"
#include "options/options.h"
#include "run/binary_hash.h"
#include "run/compilations.h"
#include "run/teacher_types.h"
#include "teacher/teacher_cache.h"

static json_t *texts(const char *const *text, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_c_text(text[i]));
    return list;
}

static void add_option(void *user, const struct setting *s)
{
    json_object_set_new(user, s->name,
                        s->list ? texts(s->value, s->count) : json_c_text(s->value[0]));
}

/* Return the words of the command line, from the program's name on. */
static json_t *command_line(const struct command_info *c, const struct settings *s)
{
    json_t *words = texts((const char *const[]){"nojit", c->name}, 2);
    json_t *rest = texts((const char *const *)s->argv, (size_t)s->argc);
    json_array_extend(words, rest);
    json_decref(rest);
    return words;
}

static json_t *hex(uint64_t value)
{
    char text[20];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)value);
    return json_string(text);
}

struct whole {
    const char *name;
    int64_t value;
};

static void add_whole(json_t *to, const struct whole *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        json_object_set_new(to, rows[i].name, json_integer((json_int_t)rows[i].value));
}

static json_t *choice(const char *name, int value)
{
    char text[32];
    return json_string(settings_choice(name, value, text, sizeof text));
}

static json_t *sources(const struct data *d)
{
    json_t *list = json_array();
    for (size_t i = 0; i < data_sources(d); i++) {
        struct data_source s;
        data_source(d, i, &s);
        json_array_append_new(list,
                              json_pack("{s:o, s:f, s:I, s:I, s:I}", "path", json_c_text(s.name),
                                        "weight", s.weight, "tokens", (json_int_t)s.tokens, "rows",
                                        (json_int_t)s.rows, "rows_per_epoch", (json_int_t)s.draws));
    }
    return list;
}

static json_t *number(const struct option *o, double x)
{
    if (o->kind == OPT_CHOICE)
        return choice(o->name, (int)x);
    if (o->kind == OPT_FLAG)
        return json_boolean(x != 0);
    return o->kind == OPT_INT ? json_integer((json_int_t)x) : json_real(x);
}

/* Return whether an option has no effect: without adapters their rank, 0, says enough. */
static bool is_idle(const struct option *o, const struct train_options *t)
{
    const size_t at = o->applied.offset, lora = offsetof(struct train_options, lora);
    return t->lora.rank == 0 && at >= lora && at < lora + sizeof t->lora &&
           at != offsetof(struct train_options, lora.rank);
}

/* Add the options as the engine has them, rounded to its types. */
static void add_applied(json_t *to, const struct train_options *t)
{
    char name[64];
    for (const struct option *o = options; o->name != NULL; o++) {
        if (!(o->commands & CMD_DISTILL) || o->applied.type == ENGINE_NONE || is_idle(o, t))
            continue;
        size_t n = 0;
        for (; o->name[n] != '\0' && n + 1 < sizeof name; n++)
            name[n] = o->name[n] == '-' ? '_' : o->name[n];
        name[n] = '\0';
        json_object_set_new(to, name, number(o, option_applied(o, t)));
    }
}

static void add_adapters(json_t *to, const struct train_options *o)
{
    char targets[128];
    lora_targets_text(&o->lora, targets, sizeof targets);
    json_object_set_new(to, "lora_targets", json_string(targets));
    if (o->adapter_dir != NULL)
        json_object_set_new(to, "adapter", json_c_text(o->adapter_dir));
}

/* Return the handling of documents longer than a row. */
static json_t *overlong(const struct data *d)
{
    struct overlong_count n;
    data_overlong(d, &n);
    return json_pack("{s:I, s:I, s:I, s:I}", "cut", (json_int_t)n.cut, "dropped",
                     (json_int_t)n.dropped, "split", (json_int_t)n.split, "lost_targets",
                     (json_int_t)n.lost);
}

/* Return the options as applied, with the values that the run chose filled in. */
static json_t *applied(const struct run *r)
{
    struct train_options o = r->options;
    json_t *to = json_object();
    o.head_chunk = engine_head_chunk(r->engine);
    add_applied(to, &o);
    json_object_set_new(to, "vocab", json_integer(r->vocab));
    json_object_set_new(to, "dtype", json_string(run_dtype_name(r)));
    if (engine_teacher(r->engine) != NULL)
        json_object_set_new(to, "teacher_dtype",
                            json_string(run_teacher_dtype(r, run_dtype_name(r))));
    static const char *const refused[] = {"student_fp8_refused", "teacher_fp8_refused"};
    for (int i = 0; i < 2; i++)
        if (*engine_fp8_refused(r->engine, i == 1) != '\0')
            json_object_set_new(to, refused[i], json_string(engine_fp8_refused(r->engine, i == 1)));
    json_object_set_new(to, "packing", choice("packing", data_packing(r->data)));
    json_object_set_new(to, "padding", json_real(data_padding(r->data)));
    json_object_set_new(to, "overlong", overlong(r->data));
    json_object_set_new(to, "data_sources", sources(r->data));
    if (o.lora.rank > 0)
        add_adapters(to, &o);
    return to;
}

json_t *receipt_self_test(const struct nj_device_info *d)
{
    static const char *const results[] = {[NJ_SELF_TEST_NONE] = "none",
                                          [NJ_SELF_TEST_SKIPPED] = "off",
                                          [NJ_SELF_TEST_NOW] = "passed now",
                                          [NJ_SELF_TEST_BEFORE] = "passed before"};
    const struct nj_self_test_record *t = &d->self_test;
    json_t *to = json_pack("{s:s}", "result", results[t->state]);
    if (t->state != NJ_SELF_TEST_NOW && t->state != NJ_SELF_TEST_BEFORE)
        return to;
    json_object_set_new(to, "at", json_string(t->at));
    json_object_set_new(to, "ms", json_real((double)t->ms));
    json_object_set_new(to, "kernels", json_integer(t->kernels));
    json_object_set_new(to, "gemms", json_integer(t->gemms));
    json_object_set_new(to, "spares", json_string(t->spares > 0 ? t->spare_names + 1 : ""));
    return to;
}

static json_t *device(const struct nj_device_info *d)
{
    json_t *to = json_pack(
        "{s:o, s:s, s:i, s:o, s:i, s:o, s:s, s:I, s:I, s:i, s:i, s:i}", "name",
        json_c_text(d->name), "backend", d->backend, "sm", d->sm, "driver", json_c_text(d->driver),
        "driver_cuda", d->driver_version, "gemm_library", json_c_text(d->gemm_library),
        "gemm_build", d->gemm_build, "gemm_version", (json_int_t)d->gemm_version, "memory_bytes",
        (json_int_t)d->memory_bytes, "kernels_loaded", (int)d->kernels_loaded, "modules_loaded",
        (int)d->modules_loaded, "gemms_timed", (int)d->gemms_timed);
    if (d->sm > 0)
        json_object_set_new(
            to, "gemm_algorithms",
            json_pack("{s:i, s:i, s:i, s:i, s:f, s:f}", "checked", (int)d->gemms_checked, "wrong",
                      (int)d->gemms_wrong, "refused", (int)d->gemms_refused, "unchecked_shapes",
                      (int)d->gemms_unchecked, "ms", d->gemm_ms, "check_ms", d->gemm_check_ms));
    if (d->gemm_reports[0] != '\0')
        json_object_set_new(to, "gemm_reports", json_c_text(d->gemm_reports));
    if (d->comm_version > 0) {
        json_object_set_new(to, "comm_library", json_c_text(d->comm_library));
        json_object_set_new(to, "comm_build", json_string(d->comm_build));
        json_object_set_new(to, "comm_version", json_integer((json_int_t)d->comm_version));
    }
    if (strcmp(d->backend, "vulkan") == 0)
        json_object_set_new(to, "pipelines",
                            json_pack("{s:i, s:f, s:s}", "compiled", (int)d->pipelines_compiled,
                                      "ms", (double)d->pipelines_ms, "key", d->cache_key));
    json_object_set_new(to, "self_test", receipt_self_test(d));
    if (d->fallback[0] != '\0')
        json_object_set_new(to, "fallback", json_c_text(d->fallback));
    return to;
}

/* Return a time such as "2026-11-21T16:57:08Z". */
static json_t *utc(time_t at)
{
    char text[32];
    struct tm parts;
    gmtime_r(&at, &parts);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return json_string(text);
}

static void add_hashes(json_t *to, const struct run *r)
{
    json_object_set_new(to, "binary_hash", hex(binary_hash()));
    json_object_set_new(to, "student_hash", hex(engine_student_hash(r->engine)));
    if (engine_teacher(r->engine) != NULL)
        json_object_set_new(to, "teacher_hash", hex(engine_teacher_hash(r->engine)));
    json_object_set_new(to, "data_hash", hex(data_hash(r->data)));
    if (r->eval_data != NULL)
        json_object_set_new(to, "eval_data_hash", hex(data_hash(r->eval_data)));
    if (r->rollouts.prompts)
        json_object_set_new(to, "prompts_hash", hex(prompts_hash(r->rollouts.prompts)));
    if (r->day[0] != '\0')
        json_object_set_new(to, "template_date", json_string(r->day));
    json_object_set_new(to, "tokenizer", json_string(r->tokenizer.kind));
    json_object_set_new(to, "tokenizer_hash", hex(tokenizer_hash(&r->tokenizer)));
}

static void add_memory(json_t *to, const struct run *r)
{
    const size_t used = memory_taken(r->ctx, r->free_bytes);
    const size_t all = memory_taken(r->ctx, nj_context_device(r->ctx)->memory_bytes);
    const struct whole rows[] = {
        {"load_bytes", (int64_t)r->load_bytes},
        {"plan_bytes", (int64_t)engine_plan(r->engine)->total_bytes},
        {"context_bytes", all > used ? (int64_t)(all - used) : 0},
        {"library_bytes", (int64_t)engine_library_bytes(r->engine)},
        {"comm_bytes", (int64_t)r->comm_bytes},
        {"comm_step_bytes", (int64_t)engine_step_comm_bytes(r->engine)},
        {"allocated_bytes", (int64_t)engine_allocated_bytes(r->engine)},
        {"used_bytes", (int64_t)used},
    };
    add_whole(to, rows, sizeof rows / sizeof *rows);
}

static void add_counts(json_t *to, const struct run *r)
{
    const struct model_config *teacher = engine_teacher(r->engine);
    const struct step_flops flops = engine_flops(r->engine);
    const struct whole rows[] = {
        {"data_tokens", data_tokens(r->data)},
        {"data_windows", data_windows(r->data)},
        {"data_rows", data_row_notes(r->data)->rows},
        {"unusable_rows", data_row_notes(r->data)->unusable},
        {"student_parameters", config_parameters(engine_student(r->engine))},
        {"trained_parameters", engine_trained_parameters(r->engine)},
        {"teacher_parameters", teacher != NULL ? config_parameters(teacher) : 0},
        {"student_flops", (int64_t)flops.student},
        {"student_fp8_flops", (int64_t)flops.student_fp8},
        {"teacher_flops", (int64_t)flops.teacher},
        {"teacher_f8_flops", (int64_t)flops.teacher_fp8},
        {"trained_tokens", r->trained_tokens},
        {"trained_targets", r->trained_targets},
        {"empty_micro_batches", r->empty_batches},
        {"skipped_updates", r->skipped_updates},
        {"fallbacks", (int64_t)r->fallbacks},
    };
    add_whole(to, rows, sizeof rows / sizeof *rows);
}

static void add_ranks(json_t *to, const struct run *r)
{
    const struct place *p = &r->group->place;
    if (r->options.ranks > 1)
        json_object_set_new(to, "ranks",
                            json_pack("{s:i, s:i, s:s}", "count", r->options.ranks, "processes",
                                      p->size, "launcher", p->size > 1 ? p->launcher : ""));
}

/* Add the statistics of the answers of all completed steps. */
static void add_answers(json_t *to, const struct run *r)
{
    const struct rollout_stats *a = &r->rollouts.all;
    if (a->answers > 0)
        json_object_set_new(
            to, "rollouts",
            json_pack("{s:I, s:I, s:f, s:f, s:f, s:f}", "answers", (json_int_t)a->answers, "tokens",
                      (json_int_t)a->tokens, "length", (double)a->tokens / (double)a->answers,
                      "truncated", (double)a->truncated / (double)a->answers, "seconds", a->seconds,
                      "share_of_time", a->seconds / (a->seconds + r->trained_seconds)));
}

static void add_teacher_check(json_t *to, const struct teacher_check *t)
{
    if (t->tokens > 0)
        json_object_set_new(to, "teacher_check",
                            json_pack("{s:f, s:f, s:I}", "kl", t->kl, "agreement", t->agreement,
                                      "tokens", (json_int_t)t->tokens));
}

static void add_cache(json_t *to, const struct teacher_cache *cache)
{
    if (cache != NULL)
        json_object_set_new(to, "teacher_cache",
                            json_pack("{s:o, s:I}", "model",
                                      json_c_text(cache_facts(cache)->source), "passages",
                                      (json_int_t)cache_passages(cache)));
}

static json_t *receipt(const struct command_info *c, const struct run *r, int64_t steps_done)
{
    struct nj_embedded e = {0};
    nj_embedded_read(&e);
    json_t *asked = json_object(), *root = json_object();
    settings_visit(c, r->s, add_option, asked);
    json_object_set_new(root, "nojit", json_string(NOJIT_VERSION));
    json_object_set_new(root, "command", json_string(c->name));
    json_object_set_new(root, "command_line", command_line(c, r->s));
    json_object_set_new(root, "started", utc(r->started));
    json_object_set_new(root, "ended", utc(time(NULL)));
    json_object_set_new(root, "seconds", json_real(clock_seconds() - r->opened));
    json_object_set_new(root, "load_seconds", json_real(r->load_seconds));
    json_object_set_new(root, "first_step", json_integer((json_int_t)r->progress.first_step));
    json_object_set_new(root, "steps_done", json_integer((json_int_t)steps_done));
    json_object_set_new(root, "stopped_early",
                        json_boolean(metrics_settled(&r->metrics, r->s->early_stop_patience)));
    json_object_set_new(root, "options", asked);
    json_object_set_new(root, "applied", applied(r));
    json_object_set_new(root, "device", device(nj_context_device(r->ctx)));
    json_object_set_new(root, "toolkit",
                        json_string(nj_embedded_assembler(&e, nj_context_device(r->ctx)->arch)));
    json_object_set_new(root, "compilations", compilations_json(r));
    if (r->trained_targets > 0) {
        json_object_set_new(root, "initial_loss", json_real(r->first_loss));
        json_object_set_new(root, "final_loss", json_real(r->last_loss));
        json_object_set_new(root, "diverged", json_boolean(r->diverged));
    }
    add_hashes(root, r);
    add_counts(root, r);
    add_memory(root, r);
    add_answers(root, r);
    add_teacher_check(root, &r->teacher_check);
    add_cache(root, r->cache);
    add_ranks(root, r);
    return root;
}

int receipt_write(const char *dir, const struct command_info *c, const struct run *r,
                  int64_t steps_done)
{
    char path[PATH_BYTES + 16];
    json_memory_begin();
    json_t *root = receipt(c, r, steps_done);
    char *text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    json_decref(root);
    if (json_memory_end()) {
        free(text);
        text = NULL;
    }
    if (text == NULL)
        return fail(NJ_E_NOMEM, "%s: out of memory for receipt.json", dir);
    struct whole_file file;
    snprintf(path, sizeof path, "%s/receipt.json", dir);
    int rc = whole_file_begin(&file, path);
    if (rc == 0) {
        if (fprintf(file.f, "%s\n", text) < 0)
            rc = fail(NJ_E_IO, "%s: cannot be written: %s", path, strerror(errno));
        rc = whole_file_end(&file, rc);
    }
    free(text);
    return rc;
}
