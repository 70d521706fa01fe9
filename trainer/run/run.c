/* SPDX-License-Identifier: Apache-2.0
 *
 * run.c: see run.h.
 */
#include "run/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "formats/model_path.h"
#include "io/cache_folder.h"
#include "io/error.h"
#include "io/waits.h"
#include "model/init.h"
#include "model/model_open.h"
#include "options/options.h"
#include "run/gemm_cache.h"
#include "run/rollouts.h"
#include "run/run_ranks.h"
#include "run/teacher_types.h"
#include "teacher/teacher_cache.h"

int run_needs(const char *command, const struct needed *list)
{
    char names[128] = "";
    size_t missing = 0, used = 0;
    for (const struct needed *o = list; o->name != NULL; o++)
        missing += !o->given;
    if (missing == 0)
        return 0;
    size_t left = missing;
    for (const struct needed *o = list; o->name != NULL; o++)
        if (!o->given)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s--%s",
                                     left-- == missing ? ""
                                     : left == 0       ? ", and "
                                                       : ", ",
                                     o->name);
    return fail(NJ_E_ARG, "%s %s needed; see `nojit %s --help`", names, missing > 1 ? "are" : "is",
                command);
}

/* Largest temperature. Differences of probabilities shrink as 1 / T^2: with logits spread by 1 the printed mean is
 * right to 0.1 % up to here, and off by 1.6 % at 300. Gradients stay right far beyond. */
enum { TEMPERATURE_MOST = 100 };

int run_check_temperature(const struct settings *s)
{
    if (s->temperature <= TEMPERATURE_MOST)
        return 0;
    return fail(NJ_E_ARG,
                "--temperature %g: at most %d; beyond it float32 has too few digits for the "
                "divergence that is printed",
                s->temperature, TEMPERATURE_MOST);
}

static void print_bytes(struct run *r, const char *name, size_t bytes)
{
    char size[32];
    progress_say(&r->progress, "%-32s %12s", name, bytes_text((double)bytes, size, sizeof size));
}

void run_print_plan(struct run *r, const struct plan *p)
{
    for (int i = 0; i < p->count; i++)
        if (p->region[i].within)
            progress_say(&r->progress, "%-32s %12s %s", p->region[i].name, "in",
                         p->region[i].within);
        else
            print_bytes(r, p->region[i].name, p->region[i].bytes);
    print_bytes(r, "device total", p->total_bytes);
    print_bytes(r, "host total", p->host_bytes);
}

void run_say(void *run, const char *line)
{
    progress_say(&((struct run *)run)->progress, "%s", line);
}

void run_doing(void *unused, const char *what)
{
    (void)unused;
    wait_now("%s", what);
}

/* Print a wait of a rank whose progress nobody sees, once for each host. */
static void say_wait(void *run, const char *line)
{
    const struct run *r = run;
    if (r->group->place.local_rank == 0)
        fprintf(stderr, "nojit %s: rank %d: %s\n", r->group->command, r->group->place.rank, line);
}

const char *device_option(const struct settings *s)
{
    return s->device == (int)NJ_DEVICE_CUDA     ? "--device cuda"
           : s->device == (int)NJ_DEVICE_VULKAN ? "--device vulkan"
                                                : "device";
}

/* Return the kind of device: if several processes are wanted, none of them falls back. */
static enum nj_device_kind wanted_device(const struct run *r)
{
    const bool may = r->s->device != (int)NJ_DEVICE_AUTO || r->group->place.size == 1;
    return may ? (enum nj_device_kind)r->s->device : NJ_DEVICE_CUDA;
}

/* Copy why CUDA was not taken, without the parts in brackets and the findings about Vulkan: `nojit doctor` and the
 * receipt have the whole text. */
static const char *reason_in_short(const char *fallback, char *out, size_t bytes)
{
    const char *end = strstr(fallback, "; Vulkan: ");
    size_t used = 0;
    int depth = 0;
    for (const char *at = fallback; *at != '\0' && at != end && used + 1 < bytes; at++) {
        depth += at[0] == ' ' && at[1] == '(';
        if (depth == 0)
            out[used++] = *at;
        depth -= depth > 0 && *at == ')';
    }
    out[used] = '\0';
    return out;
}

static void say_fallback(struct run *r, const struct nj_device_info *d)
{
    char reason[sizeof d->fallback];
    reason_in_short(d->fallback, reason, sizeof reason);
    if (r->s->verbose)
        snprintf(reason, sizeof reason, "%s", d->fallback);
    r->fallbacks++;
    if (strcmp(d->backend, "cpu") == 0)
        progress_say(&r->progress,
                     "running on the CPU, since no GPU is used: %s; see `nojit doctor`", reason);
    else
        progress_say(&r->progress, "running on %s by Vulkan: %s", d->name, d->fallback);
}

/* Report why no device was opened. Several ranks do not fall back to the CPU, so the message names --device cpu. */
static int fail_device(const struct run *r, int rc)
{
    if (r->ctx == NULL)
        return fail(rc, "%s", nj_error_text(rc));
    if (r->s->device == (int)NJ_DEVICE_AUTO && r->group->place.size > 1)
        return fail(rc, "%s; %d ranks without a GPU each need --device cpu",
                    nj_context_error(r->ctx), r->group->place.size);
    return fail_context(rc, r->ctx, device_option(r->s));
}

static int open_device(struct run *r)
{
    char kept[3072], why[4200];
    cache_folder(kept, sizeof kept, why, sizeof why);
    if (why[0] != '\0')
        progress_say(&r->progress, "%s", why);
    const struct nj_options wanted = {
        .device = wanted_device(r),
        .ordinal = run_ordinal(r),
        .verbose = r->s->verbose,
        .gemm_tune = gemm_table_wanted(r->s->gemm_table) && !r->s->dry_run,
        .log = run_say,
        .log_user = r,
        .doing = run_doing,
        .cache_folder = kept[0] != '\0' ? kept : NULL,
        .self_test = nj_self_test,
    };
    wait_begin("opening the device");
    const int rc = nj_context_create(&r->ctx, &wanted);
    wait_end();
    if (rc != 0)
        return fail_device(r, rc);
    const struct nj_device_info *d = nj_context_device(r->ctx);
    r->free_bytes = d->budget_bytes;
    r->pipelines_at_start = d->pipelines_compiled;
    if (d->software)
        progress_say(&r->progress, "%s runs on the CPU, for tests; --device cpu is faster",
                     d->name);
    if (d->gemm_reports[0] != '\0')
        progress_say(&r->progress, "%s", d->gemm_reports);
    if (d->fallback[0] != '\0')
        say_fallback(r, d);
    return 0;
}

static int no_fp8_by_vulkan(const char *option)
{
    return fail(NJ_E_ARG, "--%s fp8: the Vulkan backend has no FP8 GEMMs; leave --%s out", option,
                option);
}

/* Refuse what a Vulkan GPU cannot do before a file is read. */
static int check_vulkan(const struct run *r)
{
    const struct settings *s = r->s;
    if (s->device != (int)NJ_DEVICE_VULKAN)
        return 0;
    if (r->group->place.size > 1)
        return fail(NJ_E_UNSUPPORTED,
                    "--gpus: the Vulkan backend uses one GPU; for several use --device cuda");
    if (s->kv_dtype != 0)
        return fail(
            NJ_E_ARG,
            "--kv-dtype int8: the Vulkan backend has no cache of bytes; leave --kv-dtype out");
    if (s->teacher_dtype == TEACHER_FP8)
        return no_fp8_by_vulkan("teacher-dtype");
    return s->student_dtype == STUDENT_FP8 ? no_fp8_by_vulkan("student-dtype") : 0;
}

/* Resolve a model's folder, and refuse one that cannot be trained before anything is printed about the device. */
static int resolve_model(const char *given, char *dir, size_t bytes)
{
    struct model_config config;
    if (given == NULL)
        return 0;
    const int rc = model_resolve(given, dir, bytes);
    if (rc != 0 && access(given, F_OK) != 0 && preset_find(given) != NULL)
        return fail(rc,
                    "%s: no such folder, but a preset; make the model first: `nojit init --preset "
                    "%s --out DIR`",
                    given, given);
    return rc != 0 ? rc : source_config(dir, &config);
}

static int resolve_models(struct run *r)
{
    TRY(resolve_model(r->s->student, r->student, sizeof r->student));
    if (cache_is_there(r->student))
        return fail(NJ_E_ARG,
                    "%s: it is a cache of hidden states, without the layers of its model; it can "
                    "be a --teacher only",
                    r->student);
    return resolve_model(r->s->teacher, r->teacher, sizeof r->teacher);
}

/* Set the models' names on a rank that opens neither. */
static void name_models(struct run *r)
{
    snprintf(r->student, sizeof r->student, "%s", r->s->student ? r->s->student : "");
    snprintf(r->teacher, sizeof r->teacher, "%s", r->s->teacher ? r->s->teacher : "");
}

bool run_reads(const struct run *r)
{
    return group_leads(r->group) || r->s->every_rank_reads;
}

int run_open(struct run *r, const struct settings *s, struct group *g, bool results)
{
    memset(r, 0, sizeof *r);
    r->s = s;
    r->group = g;
    r->started = time(NULL);
    r->opened = clock_seconds();
    const char *log = s->dry_run || !group_leads(g) ? NULL : s->log;
    int rc = check_vulkan(r);
    if (rc == 0)
        rc = progress_open(&r->progress, log, group_leads(g) && (s->json || results));
    if (rc == 0 && !group_leads(g))
        waits_to(say_wait, r);
    if (rc == 0 && run_reads(r))
        rc = resolve_models(r);
    else if (rc == 0)
        name_models(r);
    if (rc == 0)
        rc = open_device(r);
    return rc != 0 ? rc : run_join(r);
}

void run_close(struct run *r)
{
    engine_destroy(r->engine);
    cache_close(r->cache);
    batches_close(r->batches);
    batches_close(r->eval_batches);
    rollouts_close(&r->rollouts);
    tokenizer_close(&r->tokenizer);
    free(r->teacher_types);
    free(r->student_types);
    nj_comm_destroy(r->comm);
    nj_context_destroy(r->ctx);
    metrics_close(&r->metrics);
    sample_log_close(&r->samples);
    progress_close(&r->progress);
    /* last, since its folder may hold the files of the others */
    checkpoints_close(&r->checkpoints);
}

/* Refuse fp8 for an option on a device without such GEMMs. */
static int no_fp8(const char *option, const struct nj_device_info *d)
{
    if (d->sm == 0)
        return no_fp8_by_vulkan(option);
    return fail(NJ_E_ARG,
                "--%s fp8: cuBLASLt has FP8 (E4M3) GEMMs from sm_89 on, and %s is sm_%d; leave "
                "--%s out",
                option, d->name, d->sm, option);
}

static int choose_dtype(const struct settings *s, const struct nj_device_info *d,
                        enum nj_dtype *out)
{
    const int wanted = s->dtype;
    const bool vulkan = strcmp(d->backend, "vulkan") == 0;
    *out = wanted == DTYPE_F32 || (wanted == DTYPE_AUTO && (!d->lp || vulkan)) ? NJ_F32 : NJ_LP;
    if (*out == NJ_F32)
        return 0;
    if (!d->lp && vulkan)
        return fail(NJ_E_ARG,
                    "--dtype: %s has no 16-bit storage (Vulkan's storageBuffer16BitAccess), so it "
                    "runs float32 only; leave --dtype, --bf16 and --fp16 out",
                    d->name);
    if (!d->lp)
        return fail(NJ_E_ARG,
                    "--dtype: a CPU runs float32 only; leave --dtype, --bf16 and --fp16 out or use "
                    "--device cuda");
    if (wanted == DTYPE_BF16 && d->lp_is_f16)
        return fail(NJ_E_ARG,
                    "--dtype bfloat16: %s (sm_%d) has no bfloat16; use float16 or float32", d->name,
                    d->sm);
    if (wanted == DTYPE_F16 && vulkan)
        return fail(NJ_E_ARG, "--dtype float16: the Vulkan backend stores bfloat16; use bfloat16 "
                              "or float32");
    if (wanted == DTYPE_F16 && !d->lp_is_f16)
        return fail(NJ_E_ARG, "--dtype float16: %s (sm_%d) uses bfloat16; use bfloat16 or float32",
                    d->name, d->sm);
    return 0;
}

static const char *dtype_name(enum nj_dtype dtype, const struct nj_device_info *d)
{
    return dtype == NJ_F32 ? "float32" : d->lp_is_f16 ? "float16" : "bfloat16";
}

const char *run_result_name(const struct run *r)
{
    return r->options.lora.rank > 0 ? "adapters" : "model";
}

const char *run_dtype_name(const struct run *r)
{
    return dtype_name(r->options.dtype, nj_context_device(r->ctx));
}

static int check_teacher_dtype(const struct settings *s, const struct nj_device_info *d,
                               enum nj_dtype dtype)
{
    const int wanted = s->teacher_dtype;
    if (wanted != TEACHER_AUTO && s->teacher == NULL)
        return fail(NJ_E_ARG, "--teacher-dtype needs --teacher");
    if (wanted == TEACHER_BF16 && (dtype == NJ_F32 || d->lp_is_f16))
        return fail(
            NJ_E_ARG,
            "--teacher-dtype bfloat16: this run is in %s, and its teacher is in the same or "
            "quantized; leave --teacher-dtype out",
            dtype_name(dtype, d));
    if (wanted == TEACHER_FP8 && !d->f8)
        return no_fp8("teacher-dtype", d);
    return 0;
}

/* Check --student-dtype. On the CPU, where nothing gets faster, all matrices count. */
static int check_student_dtype(const struct nj_device_info *d, struct train_options *o)
{
    if (o->student_fp8 > 0 && !d->f8)
        return no_fp8("student-dtype", d);
    if (o->student_fp8 > 0 && strcmp(d->backend, "cpu") == 0)
        o->student_fp8 = 1;
    return 0;
}

static int check_reduce_dtype(const struct settings *s, const struct nj_device_info *d)
{
    if (s->reduce_dtype == REDUCE_F32 || (d->lp && !d->lp_is_f16))
        return 0;
    return fail(NJ_E_ARG, "--reduce-dtype bf16: %s has no bfloat16; leave it out", d->name);
}

int run_device_options(const struct settings *s, const struct nj_device_info *d,
                       struct train_options *o)
{
    int rc = choose_dtype(s, d, &o->dtype);
    o->f8_scales = d->f8;
    if (rc == 0)
        rc = check_teacher_dtype(s, d, o->dtype);
    if (rc == 0)
        rc = check_student_dtype(d, o);
    return rc != 0 ? rc : check_reduce_dtype(s, d);
}

void run_training_options(const struct settings *s, struct train_options *out)
{
    *out = (struct train_options){
        .memory_bytes = (size_t)ceil(s->memory_budget * (1 << 30)),
        .use_graph = 1,
        .teacher_fp8 = s->teacher_dtype == TEACHER_FP8,
        .student_fp8 = s->student_dtype == STUDENT_FP8 ? STUDENT_FP8_LEAST : 0,
        .adapter_dir = s->adapter,
        .base_name = s->student,
    };
    options_apply(s, out);
    /* A command without these options, or auto. */
    if (out->batch_size == 0)
        out->batch_size = 1;
    if (out->grad_accum == 0)
        out->grad_accum = 1;
    if (out->temperature == 0)
        out->temperature = 1;
    if (s->teacher == NULL)
        out->kd_ratio = 0;
    if (s->on_policy > 0) /* cross-entropy on its own samples teaches the student nothing */
        out->kd_ratio = 1;
}

enum { LORA_ALPHA = 32 }; /* default of --lora-alpha */

/* Read the adapter, and refuse options whose values it has already. */
static int read_adapter(const struct settings *s, struct lora_config *out)
{
    static const char *const own[] = {"lora-r", "lora-alpha", "lora-dropout",
                                      "lora-target-modules"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (settings_given(s, own[i]))
            return fail(NJ_E_ARG,
                        "--adapter %s brings its own rank, alpha, dropout and matrices; leave --%s "
                        "out",
                        s->adapter, own[i]);
    return lora_config_read(s->adapter, out);
}

int run_adapters(const struct settings *s, struct lora_config *out)
{
    const struct path_list *names = &s->lora_targets;
    if (s->adapter != NULL)
        return read_adapter(s, out);
    if (s->lora_alpha > 0 && s->lora_r == 0)
        return fail(NJ_E_ARG, "--lora-alpha needs --lora-r");
    if (s->merge && s->lora_r == 0)
        return fail(NJ_E_ARG, "--merge needs adapters; add --lora-r or --adapter");
    if (names->count > 0 && s->lora_r == 0)
        return fail(NJ_E_ARG, "--lora-target-modules needs --lora-r");
    if (s->lora_dropout > 0 && s->lora_r == 0)
        return fail(NJ_E_ARG, "--lora-dropout needs --lora-r");
    if (s->lora_r == 0)
        return 0;
    if (out->alpha == 0)
        out->alpha = LORA_ALPHA;
    if (names->count == 0)
        TRY(lora_targets_add(out, "all-linear"));
    for (size_t i = 0; i < names->count; i++)
        TRY(lora_targets_add(out, names->path[i]));
    return 0;
}

int run_check_objective(const struct settings *s)
{
    const struct objective_row *row = &objectives[s->objective];
    if (row->takes_beta || s->beta == 0)
        return 0;
    return fail(NJ_E_ARG,
                "--beta %g selects among the divergences of" OBJECTIVES(
                    OBJECTIVE_BETA) "; leave it "
                                    "out with --objective %s",
                s->beta, row->word);
}

int run_engine_options(struct run *r)
{
    run_training_options(r->s, &r->options);
    run_rank_options(r->s, r->group->place.rank, r->group->place.size, &r->options);
    r->options.comm = r->comm;
    int rc = run_check_objective(r->s);
    if (rc == 0 && run_reads(r))
        rc = run_adapters(r->s, &r->options.lora);
    if (rc == 0)
        rc = run_device_options(r->s, nj_context_device(r->ctx), &r->options);
    if (rc == 0)
        rc = run_check_ranks(r->s, &r->options);
    if (rc == 0 && run_reads(r))
        rc = run_teacher_types(r);
    if (rc == 0)
        rc = run_share_models(r);
    r->options.vocab = r->vocab;
    return rc;
}

struct decode_sampling run_sampling(const struct run *r)
{
    const struct train_options *o = &r->options;
    return (struct decode_sampling){
        .temperature = o->sample_temperature,
        .top_k = o->sample_top_k,
        .top_p = o->sample_top_p,
        .min_p = o->sample_min_p,
        .repetition = o->sample_repetition,
        .seed = o->seed,
    };
}
