/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_plan.c: `nojit plan`: the memory of a run, from the shapes alone.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/families.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/plan_gpu.h"
#include "formats/model_path.h"
#include "io/cache_folder.h"
#include "io/error.h"
#include "model/init.h"
#include "model/model_open.h"
#include "model/quantized_folder.h"
#include "run/batch_fit.h"
#include "run/cached_teacher.h"
#include "run/rollouts.h"
#include "run/run.h"
#include "run/run_inputs.h"
#include "run/run_ranks.h"
#include "run/teacher_types.h"

/* Memory that the run will have. */
struct budget {
    size_t bytes; /* 0: not known */
    char whose[160];
};

/* Set the budget: --memory-budget, else that of the device if it is here; and the other properties of the device
 * that affect the plan: its driver's limits on allocations, and the scales of its FP8 GEMMs. */
static void look_up_device(const struct settings *s, struct train_options *o, struct budget *out)
{
    char kept[3072], why[4200];
    cache_folder(kept, sizeof kept, why, sizeof why);
    if (why[0] != '\0')
        fprintf(stderr, "nojit plan: %s\n", why);
    const struct nj_options options = {.device = s->device == (int)NJ_DEVICE_AUTO
                                                     ? NJ_DEVICE_CUDA
                                                     : (enum nj_device_kind)s->device,
                                       .cache_folder = kept[0] != '\0' ? kept : NULL};
    nj_context *ctx = NULL;
    *out = (struct budget){.bytes = o->memory_bytes, .whose = "--memory-budget"};
    const bool by_device =
        options.device == NJ_DEVICE_VULKAN || o->teacher_fp8 || o->student_fp8 > 0;
    if (out->bytes > 0 && !by_device)
        return;
    if (nj_context_create(&ctx, &options) == 0) {
        const struct nj_device_info *d = nj_context_device(ctx);
        o->cell_bytes = d->cell_bytes;
        o->array_bytes = d->array_bytes;
        o->f8_scales = d->f8;
        if (out->bytes == 0) {
            out->bytes = nj_context_budget(ctx);
            snprintf(out->whose, sizeof out->whose, "%s", d->name);
        }
    }
    nj_context_destroy(ctx);
}

/* Set the budget of an absent GPU, or --memory-budget if that is less. */
static void take_gpu(const struct gpu *g, const struct train_options *o, struct budget *out)
{
    out->bytes = gpu_budget(g);
    snprintf(out->whose, sizeof out->whose, "of %.1f GiB of an idle %s", g->gib, g->device);
    if (o->memory_bytes > 0 && o->memory_bytes < out->bytes)
        *out = (struct budget){.bytes = o->memory_bytes, .whose = "--memory-budget"};
}

/* Return the memory of NCCL, besides the plan. */
static size_t comm_estimate(const struct run *r)
{
    const bool cuda = r->s->device == (int)NJ_DEVICE_AUTO || r->s->device == (int)NJ_DEVICE_CUDA;
    return cuda ? run_comm_estimate(&r->options) : 0;
}

/* Print the allocations of a driver that limits them, and the array that determines the largest. */
static void print_json_cells(const struct plan *p)
{
    printf("\"pieces\": [");
    for (int i = 0, told = 0; i < CARVE_CELLS; i++)
        if (carve_cell_bytes(&p->cells, i) > 0)
            printf("%s%zu", told++ ? ", " : "", carve_cell_bytes(&p->cells, i));
    printf("], \"largest_array\": {\"in\": \"%s\", \"bytes\": %zu}, ", p->array_in, p->array_bytes);
}

static void print_json(const struct run *r, const struct plan *p, const struct budget *b,
                       const struct plan_gpu *g)
{
    printf("{\"batch_size\": %d, \"total_bytes\": %zu, \"host_bytes\": %zu, ",
           r->options.batch_size, p->total_bytes, p->host_bytes);
    if (b->bytes > 0)
        printf("\"budget_bytes\": %zu, \"fits\": %s, ", b->bytes,
               plan_fits(p, &r->options, b->bytes) ? "true" : "false");
    if (r->options.cell_bytes > 0)
        print_json_cells(p);
    if (rollouts_wanted(r->s))
        printf("\"rollout_batch\": %d, ", r->options.decode_rows);
    if (r->options.rank != RANKS_VIRTUAL)
        printf("\"comm_bytes_estimate\": %zu, \"comm_step_bytes\": %zu, ", comm_estimate(r),
               p->step_comm_bytes);
    plan_gpu_print_json(p, g);
    printf("\"regions\": {");
    for (int i = 0; i < p->count; i++)
        printf("%s\"%s\": %zu", i ? ", " : "", p->region[i].name, p->region[i].bytes);
    printf("}, \"within\": {");
    for (int i = 0, told = 0; i < p->count; i++)
        if (p->region[i].within)
            printf("%s\"%s\": \"%s\"", told++ ? ", " : "", p->region[i].name, p->region[i].within);
    puts("}}");
}

static void print_comm(struct run *r, const struct plan *p)
{
    const size_t estimate = comm_estimate(r);
    char size[32];
    if (r->options.rank == RANKS_VIRTUAL)
        return;
    progress_say(&r->progress, "%-32s %12s  (comes from other ranks%s)", "comm_step_bytes",
                 bytes_text((double)p->step_comm_bytes, size, sizeof size),
                 r->options.teacher_shard ? ", without layers of the teacher" : "");
    if (estimate > 0)
        progress_say(&r->progress, "%-32s %12s  (of NCCL, beside the plan; a run measures it)",
                     "comm_bytes_estimate", bytes_text((double)estimate, size, sizeof size));
}

static void print_cells(struct run *r, const struct plan *p)
{
    char size[32], limit[32];
    int cells = 0;
    size_t most = 0;
    for (int i = 0; i < CARVE_CELLS; i++) {
        const size_t bytes = carve_cell_bytes(&p->cells, i);
        cells += bytes > 0;
        most = bytes > most ? bytes : most;
    }
    progress_say(&r->progress, "%-32s %12d  (up to %s; the driver guarantees %s at a time)",
                 "allocations", cells, bytes_text((double)most, size, sizeof size),
                 bytes_text((double)r->options.cell_bytes, limit, sizeof limit));
    progress_say(&r->progress, "%-32s %12s  (in %s; the driver allocates %s at most)",
                 "largest array", bytes_text((double)p->array_bytes, size, sizeof size),
                 p->array_in, bytes_text((double)r->options.array_bytes, limit, sizeof limit));
}

static void print_text(struct run *r, const struct plan *p, const struct budget *b)
{
    char size[32];
    run_print_plan(r, p);
    print_comm(r, p);
    if (r->options.cell_bytes > 0)
        print_cells(r, p);
    if (b->bytes > 0)
        progress_say(&r->progress, "%-32s %12s  (%s)", "budget",
                     bytes_text((double)b->bytes, size, sizeof size), b->whose);
    else
        progress_say(&r->progress,
                     "%-32s %12s  (no GPU can be used here; name one by --gpu, or its memory by "
                     "--memory-budget)",
                     "budget", "unknown");
}

/* Find a model by its folder or file, whose path is dir[PATH_BYTES]; if there is none of that name, find a preset,
 * whose shape is all that a plan needs. */
static int read_model(const char *name, char *dir, struct model_config *out)
{
    const int rc = model_resolve(name, dir, PATH_BYTES);
    const struct preset *p = rc != 0 && access(name, F_OK) != 0 ? preset_find(name) : NULL;
    if (p != NULL) {
        *dir = '\0';
        return preset_config(p, out);
    }
    return rc != 0 ? rc : source_config(dir, out);
}

static int read_models(const struct settings *s, struct run *r, struct model_config *student,
                       struct model_config *teacher)
{
    TRY(read_model(s->student, r->student, student));
    if (s->teacher != NULL) {
        TRY(read_model(s->teacher, r->teacher, teacher));
        TRY(config_check_pair(student, teacher));
    }
    TRY(config_check_length(student, (int)s->seq_len, s->student));
    if (s->teacher != NULL)
        TRY(config_check_length(teacher, (int)s->seq_len, s->teacher));
    return 0;
}

/* Find whether a teacher's experts are MXFP4: as its config.json says, or for a preset as gpt-oss is published. */
static int has_mxfp4(const struct run *r, const struct model_config *teacher, bool *out)
{
    *out = (family_find(teacher->model_type)->fields & FIELDS_OSS) != 0;
    return r->teacher[0] == '\0' ? 0 : folder_has_mxfp4(r->teacher, out);
}

/* Set the types of the teacher's tensors: those of its files, or without them those that --teacher-dtype asks for or
 * that follow from its configuration. */
static int read_teacher_types(struct run *r, const struct model_config *teacher)
{
    const enum teacher_dtype wanted = (enum teacher_dtype)r->s->teacher_dtype;
    bool mxfp4;
    if (r->teacher[0] != '\0')
        TRY(run_teacher_types(r));
    if (r->s->teacher == NULL || r->teacher_types || wanted == TEACHER_BF16 ||
        wanted == TEACHER_FP8)
        return 0;
    TRY(has_mxfp4(r, teacher, &mxfp4));
    int rc = 0;
    if (wanted > TEACHER_FP8)
        rc = teacher_types_as(teacher, wanted, &r->teacher_types);
    else if (mxfp4)
        rc = teacher_types_mxfp4(teacher, &r->teacher_types);
    r->options.teacher_types = r->teacher_types;
    return rc;
}

static int read_options(const struct settings *s, struct train_options *o)
{
    const bool cuda = s->device == (int)NJ_DEVICE_AUTO || s->device == (int)NJ_DEVICE_CUDA;
    const bool float32 = s->dtype == DTYPE_F32 || (s->dtype == DTYPE_AUTO && !cuda);
    int gpus;
    TRY(run_check_objective(s));
    TRY(rollouts_check_plan(s));
    TRY(run_gpus(s, &gpus));
    run_training_options(s, o);
    run_rank_options(s, 0, gpus, o);
    o->steps = s->steps > 0 ? s->steps : 1;
    o->dtype = float32 ? NJ_F32 : NJ_LP;
    o->workspace_bytes = cuda ? NJ_CUDA_WORKSPACE_BYTES : 0;
    const int refused = run_check_ranks(s, o);
    return refused ? refused : run_adapters(s, &o->lora);
}

/* Print the plan, and advice if it exceeds the budget. */
static int show(struct run *r, const struct model_config *student,
                const struct model_config *teacher, const struct budget *b, struct plan_gpu *g)
{
    struct plan plan;
    char need[32], had[32];
    TRY(plan_make(student, teacher, &r->options, &plan));
    plan_gpu_estimate(r, &plan, g);
    if (r->s->json)
        print_json(r, &plan, b, g);
    else
        print_text(r, &plan, b);
    if (!r->s->json)
        plan_gpu_print(r, &plan, g);
    if (b->bytes == 0 || plan.total_bytes <= b->bytes)
        return plan_check_array(&plan, &r->options);
    if (!r->s->json)
        TRY(fit_advise(r, student, teacher, plan.total_bytes, b->bytes));
    return fail(NJ_E_NOMEM, "the run needs %s, and the budget is %s (%s)",
                bytes_text((double)plan.total_bytes, need, sizeof need),
                bytes_text((double)b->bytes, had, sizeof had), b->whose);
}

/* Choose what a run would choose itself: the batch size (though it may exceed an epoch), then how many answers are
 * written at a time. */
static int fit(struct run *r, const struct model_config *student,
               const struct model_config *teacher, const struct budget *b)
{
    const struct settings *s = r->s;
    const size_t room = r->options.memory_bytes > 0
                            ? b->bytes
                            : fit_part(b->bytes, s->device != (int)NJ_DEVICE_CPU);
    if (s->batch_size == BATCH_AUTO && b->bytes == 0)
        return fail(NJ_E_ARG, "--batch-size auto: no GPU can be used here, so its memory is not "
                              "known; name it by --gpu or --memory-budget");
    int rc = 0;
    if (s->batch_size == BATCH_AUTO)
        rc = fit_batch(r, student, teacher, room, BATCH_MOST);
    if (rc != 0 || !rollouts_wanted(s))
        return rc;
    const int most = rollouts_most(r);
    r->options.decode_rows = most;
    if (s->rollout_batch == 0 && b->bytes > 0)
        rc = fit_decoder(r, student, teacher, room, true, most);
    if (rc == 0)
        rollouts_say(r);
    return rc;
}

/* Read the prompts with the tokenizers, which may restrict the vocabulary; without prompts no tokenizer is needed. */
static int read_answers(struct run *r)
{
    if (r->s->prompts.count > 0 && r->student[0] == '\0')
        return fail(NJ_E_ARG,
                    "--prompts: the preset %s has no tokenizer; name a model's folder or "
                    "leave --prompts out",
                    r->s->student);
    const int rc = r->s->prompts.count > 0 ? run_open_tokenizer(r) : 0;
    r->options.vocab = r->vocab;
    return rc != 0 ? rc : rollouts_plan(r);
}

static int answer(struct run *r)
{
    const struct settings *s = r->s;
    struct model_config student, teacher;
    struct budget budget;
    struct plan_gpu gpu;
    TRY(plan_gpu_find(s, &gpu));
    TRY(read_models(s, r, &student, &teacher));
    TRY(read_options(s, &r->options));
    if (gpu.of != NULL)
        TRY(run_device_options(s, &gpu.device, &r->options));
    TRY(read_teacher_types(r, &teacher));
    TRY(run_plan_cache(r));
    if (rollouts_wanted(s))
        TRY(read_answers(r));
    const struct model_config *other = s->teacher != NULL ? &teacher : NULL;
    if (gpu.of != NULL)
        take_gpu(gpu.of, &r->options, &budget);
    else
        look_up_device(s, &r->options, &budget);
    TRY(fit(r, &student, other, &budget));
    return show(r, &student, other, &budget, &gpu);
}

int cmd_plan(const struct settings *s)
{
    struct run r;
    if (s->gpu != NULL && strcmp(s->gpu, "list") == 0) {
        plan_gpu_list();
        return 0;
    }
    int rc = run_needs("plan", (struct needed[]){{"student", s->student != NULL}, {NULL}});
    if (rc == 0)
        rc = run_check_temperature(s);
    if (rc != 0)
        return rc;
    memset(&r, 0, sizeof r);
    r.s = s;
    r.progress.aside = s->json;
    rc = answer(&r);
    rollouts_close(&r.rollouts);
    tokenizer_close(&r.tokenizer);
    free(r.teacher_types);
    cache_close(r.cache);
    return rc;
}
