/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_gpu.c: see plan_gpu.h.
 */
#include "cli/plan_gpu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/error.h"
#include "run/rollouts.h"

void plan_gpu_list(void)
{
    printf("%-11s %-24s %-7s %10s %10s %8s %8s\n", "name", "GPU", "arch", "GiB", "TFLOP/s", "FP8",
           "GB/s");
    for (const struct gpu *g = gpu_table; g->name != NULL; g++)
        printf("%-11s %-24s sm_%-4d %10.1f %10.0f %8.0f %8.0f\n", g->name, g->device, g->sm, g->gib,
               g->tflops, g->fp8_tflops, g->bandwidth);
}

static int check_options(const struct settings *s)
{
    if (s->gpu == NULL && s->data_tokens > 0)
        return fail(NJ_E_ARG, "--data-tokens is for the time of a run; name a GPU by --gpu");
    if (s->gpu == NULL)
        return 0;
    if (s->device != (int)NJ_DEVICE_AUTO && s->device != (int)NJ_DEVICE_CUDA)
        return fail(NJ_E_ARG, "--gpu plans for CUDA; leave --device out");
    if (s->data_tokens > 0 && s->steps > 0)
        return fail(NJ_E_ARG, "--data-tokens is for --epochs, and --steps says how long the run "
                              "is; leave one of them out");
    return 0;
}

int plan_gpu_find(const struct settings *s, struct plan_gpu *out)
{
    char names[256];
    *out = (struct plan_gpu){0};
    int rc = check_options(s);
    if (rc != 0 || s->gpu == NULL)
        return rc;
    out->of = gpu_named(s->gpu);
    if (out->of == NULL)
        return fail(NJ_E_ARG,
                    "--gpu %s: not one of %s; for another GPU give its memory by --memory-budget",
                    s->gpu, gpu_names(names, sizeof names));
    rc = nj_device_of_sm(out->of->sm, &out->device);
    if (rc != 0)
        return fail(rc, "the embedded kernel index is damaged; rebuild or reinstall the binary");
    snprintf(out->device.name, sizeof out->device.name, "%s", out->of->device);
    return 0;
}

void plan_gpu_estimate(const struct run *r, const struct plan *p, struct plan_gpu *g)
{
    const struct settings *s = r->s;
    if (g->of == NULL || rollouts_wanted(s))
        return;
    g->step = estimate_step(g->of, r->options.dtype, &p->work);
    g->steps =
        s->steps > 0 ? (double)s->steps : ceil(s->epochs * (double)s->data_tokens / p->work.tokens);
}

/* Print the seconds of a step or a run, with their range. */
static void say_time(struct run *r, const char *name, const struct estimate *e, double times)
{
    char at[3][32];
    progress_say(&r->progress, "%-32s %12s  (%s to %s)", name,
                 duration_text(times * e->seconds, at[0], sizeof at[0]),
                 duration_text(times * e->low, at[1], sizeof at[1]),
                 duration_text(times * e->high, at[2], sizeof at[2]));
}

/* Round to three digits, more than an estimate has. */
static double rounded(double x)
{
    char text[32];
    snprintf(text, sizeof text, "%.3g", x);
    return strtod(text, NULL);
}

static void say_estimate(struct run *r, const struct plan *p, const struct plan_gpu *g)
{
    const struct estimate *e = &g->step;
    const double tokens = p->work.tokens;
    char name[48];
    progress_say(&r->progress, "%-32s %9.10g ms  (%.10g to %.10g)", "step, estimated",
                 rounded(e->seconds * 1e3), rounded(e->low * 1e3), rounded(e->high * 1e3));
    progress_say(&r->progress, "%-32s %12.0f  (%.0f to %.0f)%s", "tokens/s, estimated",
                 rounded(tokens / e->seconds), rounded(tokens / e->high), rounded(tokens / e->low),
                 r->options.ranks > 1 ? ", without what the GPUs exchange" : "");
    snprintf(name, sizeof name, "%.0f step%s, estimated", g->steps, g->steps == 1 ? "" : "s");
    if (g->steps > 0)
        say_time(r, name, e, g->steps);
    else
        progress_say(&r->progress, "%-32s %12s  (give --steps, or --data-tokens for --epochs)",
                     "time of the run", "unknown");
    progress_say(&r->progress,
                 g->of->measured && r->options.dtype != NJ_F32
                     ? "estimated from the shapes; each step measured on this GPU is in the range "
                       "(docs/planning.md)"
                     : "estimated from the shapes; never measured on this GPU (docs/planning.md)");
}

void plan_gpu_print(struct run *r, const struct plan *p, const struct plan_gpu *g)
{
    const struct nj_device_info *d = &g->device;
    char arch[16];
    if (g->of == NULL)
        return;
    if (d->arch[0] != '\0')
        progress_say(&r->progress, "%-32s %12s  (sm_%d; this binary has its code: %s)", "gpu",
                     d->name, d->sm, d->arch);
    else
        progress_say(&r->progress,
                     "%-32s %12s  (sm_%d; this binary has no code for it: make ARCHS=%s)", "gpu",
                     d->name, d->sm, gpu_arch(g->of, arch, sizeof arch));
    if (g->step.seconds > 0)
        say_estimate(r, p, g);
    else
        progress_say(&r->progress,
                     "time is not estimated with --on-policy: it depends on the answers' length");
}

void plan_gpu_print_json(const struct plan *p, const struct plan_gpu *g)
{
    const struct estimate *e = &g->step;
    if (g->of == NULL)
        return;
    printf("\"gpu\": {\"name\": \"%s\", \"sm\": %d, \"code\": \"%s\"}, ", g->of->name, g->of->sm,
           g->device.arch);
    if (e->seconds == 0)
        return;
    printf("\"estimate\": {\"step_seconds\": %.6g, \"step_seconds_low\": %.6g, "
           "\"step_seconds_high\": %.6g, \"tokens_per_second\": %.6g",
           e->seconds, e->low, e->high, p->work.tokens / e->seconds);
    if (g->steps > 0)
        printf(", \"steps\": %.0f, \"seconds\": %.6g", g->steps, g->steps * e->seconds);
    printf(", \"measured\": %s}, ", g->of->measured ? "true" : "false");
}
