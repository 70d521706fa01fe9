/* SPDX-License-Identifier: Apache-2.0
 *
 * harness.c: which cases run, in which process, and what is said about them.
 *
 * On the CPU every key runs in a child, so that a crash or a hang is the failure of the case that
 * caused it. On a GPU all run here, and a device error ends the run: what had not run counts as
 * failed. Exit status: 0 all passed, 1 something failed, 2 usage.
 */
#include <fnmatch.h>
#include <limits.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

enum {
    CASE_SECONDS = 300,    /* a case that takes longer hangs */
    KEPT_BYTES = 32 << 20, /* the most that glibc takes */
};

static const char *const device_names[] = {
    [NJ_DEVICE_AUTO] = "auto",
    [NJ_DEVICE_CPU] = "cpu",
    [NJ_DEVICE_CUDA] = "cuda",
    [NJ_DEVICE_VULKAN] = "vulkan",
};

static const char USAGE[] =
    "usage: harness [--device cpu|cuda|vulkan] [--filter GLOB] [--seed N] [--list] [--json FILE]\n"
    "               [--most-flops N] [--self-test]\n"
    "Runs the cases of every kernel key that GLOB matches and compares them with the references.\n"
    "--most-flops: of each key those of up to N operations, and the smallest.\n";

/* ---- children ---------------------------------------------------------------------------------
 */

struct result *shared_results(uint32_t count)
{
    void *p = mmap(NULL, (count + 1) * sizeof(struct result), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        perror("harness: mmap");
        exit(1);
    }
    return p;
}

static int open_device(enum nj_device_kind device, nj_context **ctx, nj_stream **stream)
{
    const struct nj_options options = {.device = device};
    int rc = nj_context_create(ctx, &options);
    if (!rc)
        rc = nj_stream_create(*ctx, stream);
    if (rc)
        fprintf(stderr, "harness: %s: %s\n", nj_error_name(rc),
                *ctx ? nj_context_error(*ctx) : nj_error_text(rc));
    return rc;
}

static void child(const struct subject *subjects, uint32_t first, uint32_t count, uint64_t seed,
                  struct result *shared)
{
    nj_context *ctx = NULL;
    nj_stream *stream = NULL;
    if (open_device(NJ_DEVICE_CPU, &ctx, &stream))
        _exit(1);
    for (uint32_t i = first; i < count; i++) {
        struct result r;
        alarm(CASE_SECONDS);
        nj_case_run_case(ctx, stream, &subjects[i], seed, &r);
        shared[i] = r;
    }
    nj_stream_destroy(stream);
    nj_context_destroy(ctx);
    _exit(0);
}

static void blame(struct result *r, int wait_status)
{
    r->status = FAILED;
    if (WIFSIGNALED(wait_status))
        snprintf(r->message, sizeof(r->message), "ended by signal %d (%s)", WTERMSIG(wait_status),
                 strsignal(WTERMSIG(wait_status)));
    else
        snprintf(r->message, sizeof(r->message), "its process ended with status %d",
                 WEXITSTATUS(wait_status));
}

void run_in_children(const struct subject *subjects, uint32_t count, uint64_t seed,
                     struct result *shared)
{
    for (uint32_t first = 0; first < count;) {
        int wait_status = 0;
        fflush(NULL);
        const pid_t pid = fork();
        if (pid == 0)
            child(subjects, first, count, seed, shared);
        if (pid < 0 || waitpid(pid, &wait_status, 0) < 0) {
            perror("harness: fork");
            exit(1);
        }
        while (first < count && shared[first].status != NOT_RUN)
            first++;
        if (first < count)
            blame(&shared[first++], wait_status);
    }
}

/* ---- the run ----------------------------------------------------------------------------------
 */

struct selection {
    struct subject *subjects; /* subjects of the cases to run, grouped by key */
    struct result *results;
    uint32_t count;
    uint32_t keys, keys_run, keys_off_device, keys_without_case, left_out;
};

/* The case of a kernel that takes the fewest operations, or nj_case_count. */
static uint32_t smallest_case(uint32_t kernel)
{
    uint32_t smallest = nj_case_count;
    for (uint32_t i = 0; i < nj_case_count; i++)
        if (nj_cases[i].kernel == kernel && !nj_cases[i].bench &&
            (smallest == nj_case_count || nj_cases[i].flops < nj_cases[smallest].flops))
            smallest = i;
    return smallest;
}

static void select_key(struct selection *sel, uint32_t kernel, double most_flops,
                       const nj_context *ctx)
{
    const uint32_t before = sel->count, smallest = smallest_case(kernel);
    if (!nj_kernel_available(ctx, (int)kernel)) {
        sel->keys_off_device++;
        return;
    }
    for (uint32_t i = 0; i < nj_case_count; i++) {
        if (nj_cases[i].kernel != kernel || nj_cases[i].bench)
            continue;
        if (nj_cases[i].flops <= most_flops || i == smallest)
            sel->subjects[sel->count++] = nj_case_subject_of(&nj_cases[i]);
        else
            sel->left_out++;
    }
    if (sel->count > before) {
        sel->keys_run++;
    } else {
        sel->keys_without_case++;
        printf("FAIL %s: it has no test case\n", nj_kernels[kernel].key);
    }
}

static void select_cases(struct selection *sel, const struct options *o, const nj_context *ctx)
{
    sel->subjects = allocate(nj_case_count, sizeof(*sel->subjects));
    for (uint32_t k = 0; k < nj_kernel_count; k++) {
        if (fnmatch(o->filter, nj_kernels[k].key, FNM_EXTMATCH) == 0) {
            sel->keys++;
            select_key(sel, k, o->most_flops, ctx);
        }
    }
    sel->results = shared_results(sel->count);
}

static void run_on_cpu(struct selection *sel, uint64_t seed)
{
    for (uint32_t i = 0; i < sel->count;) {
        uint32_t end = i + 1;
        while (end < sel->count && sel->subjects[end].key == sel->subjects[i].key)
            end++;
        run_in_children(sel->subjects + i, end - i, seed, sel->results + i);
        i = end;
    }
}

static void run_on_gpu(struct selection *sel, nj_context *ctx, nj_stream *stream, uint64_t seed)
{
    const char *lost = NULL;
    for (uint32_t i = 0; i < sel->count; i++) {
        struct result *r = &sel->results[i];
        if (lost) {
            r->status = FAILED;
            snprintf(r->message, sizeof(r->message), "not run: the device failed in %s", lost);
            continue;
        }
        nj_case_run_case(ctx, stream, &sel->subjects[i], seed, r);
        if (r->device_lost)
            lost = sel->subjects[i].key;
    }
}

/* ---- the report -------------------------------------------------------------------------------
 */

struct line {
    const char *op;
    char type[16]; /* "lp", "f32" */
    uint32_t cases, failed;
    double worst, tolerance;
};

/* Second part of the key: its element type. */
static void type_of_key(const char *key, char *out, size_t bytes)
{
    const char *dot = strchr(key, '.');
    const char *type = dot ? dot + 1 : "-";
    snprintf(out, bytes, "%.*s", (int)strcspn(type, "."), type);
}

static uint32_t summarize(const struct selection *sel, struct line *lines)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < sel->count; i++) {
        const struct subject *s = &sel->subjects[i];
        const struct result *r = &sel->results[i];
        struct line l = {.op = s->op, .tolerance = s->c->tolerance};
        uint32_t at = 0;
        type_of_key(s->key, l.type, sizeof(l.type));
        while (at < n && (strcmp(lines[at].op, l.op) || strcmp(lines[at].type, l.type)))
            at++;
        if (at == n)
            lines[n++] = l;
        lines[at].cases++;
        lines[at].failed += r->status != PASSED;
        if (!(r->worst <= lines[at].worst))
            lines[at].worst = r->worst;
    }
    return n;
}

static void print_failures(const struct selection *sel, const struct options *o)
{
    for (uint32_t i = 0; i < sel->count; i++) {
        const struct subject *s = &sel->subjects[i];
        if (sel->results[i].status == PASSED)
            continue;
        printf("FAIL %s [%s]: %s\n", s->key, s->c->label, sel->results[i].message);
        printf("RERUN harness --device %s --filter '%s' --seed %llu\n", device_names[o->device],
               s->key, (unsigned long long)o->seed);
    }
}

static void json_string(FILE *f, const char *s)
{
    putc('"', f);
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            putc('\\', f);
        if ((unsigned char)*s < 0x20)
            fprintf(f, "\\u%04x", (unsigned)*s);
        else
            putc(*s, f);
    }
    putc('"', f);
}

/* A number that is not finite has no form in JSON. */
static void json_number(FILE *f, double x)
{
    if (x - x == 0)
        fprintf(f, "%.6g", x);
    else
        fputs("null", f);
}

static int write_json(const struct selection *sel, const struct options *o, uint32_t failed,
                      const struct line *lines, uint32_t line_count)
{
    FILE *f = fopen(o->json, "w");
    const char *comma = "";
    if (!f) {
        perror(o->json);
        return -1;
    }
    fprintf(f, "{\"device\": \"%s\", \"seed\": %llu, \"keys\": %u, \"keys_run\": %u, ",
            device_names[o->device], (unsigned long long)o->seed, sel->keys, sel->keys_run);
    fprintf(f, "\"keys_off_device\": %u, \"cases\": %u, \"failed\": %u,\n \"ops\": [",
            sel->keys_off_device, sel->count, failed);
    for (uint32_t i = 0; i < line_count; i++) {
        fprintf(f, "%s\n  {\"op\": \"%s\", \"type\": \"%s\", \"cases\": %u, \"failed\": %u, ",
                i ? "," : "", lines[i].op, lines[i].type, lines[i].cases, lines[i].failed);
        fputs("\"worst_error\": ", f);
        json_number(f, lines[i].worst);
        fprintf(f, ", \"tolerance\": %.6g}", lines[i].tolerance);
    }
    fputs("],\n \"failures\": [", f);
    for (uint32_t i = 0; i < sel->count; i++) {
        if (sel->results[i].status == PASSED)
            continue;
        fprintf(f, "%s\n  {\"key\": \"%s\", \"label\": \"%s\", \"message\": ", comma,
                sel->subjects[i].key, sel->subjects[i].c->label);
        json_string(f, sel->results[i].message);
        putc('}', f);
        comma = ",";
    }
    fputs("]}\n", f);
    if (ferror(f) | fclose(f)) {
        perror(o->json);
        return -1;
    }
    return 0;
}

/* Returns the exit status. */
static int report(const struct selection *sel, const struct options *o)
{
    struct line *lines = allocate(sel->count, sizeof(*lines));
    const uint32_t n = summarize(sel, lines);
    uint32_t failed = sel->keys_without_case;
    for (uint32_t i = 0; i < sel->count; i++)
        failed += sel->results[i].status != PASSED;
    print_failures(sel, o);
    for (uint32_t i = 0; i < n; i++)
        printf("%-16s %-4s %3u cases, worst error %8.2e of %8.2e\n", lines[i].op, lines[i].type,
               lines[i].cases, lines[i].worst, lines[i].tolerance);
    const int io = o->json ? write_json(sel, o, failed, lines, n) : 0;
    if (sel->keys_off_device)
        printf("%u keys not on %s\n", sel->keys_off_device,
               o->device == NJ_DEVICE_CPU ? "cpu" : "this GPU");
    if (sel->left_out)
        printf("%u cases of more than %g operations left out\n", sel->left_out, o->most_flops);
    printf("%u of %u keys, %u passed, %u failed (seed %llu)\n", sel->keys_run, sel->keys,
           sel->count + sel->keys_without_case - failed, failed, (unsigned long long)o->seed);
    free(lines);
    return failed || io ? 1 : 0;
}

static int run_tests(const struct options *o)
{
    struct selection sel = {0};
    nj_context *ctx = NULL; /* on the CPU children have their own, too */
    nj_stream *stream = NULL;
    int status = 1;
    if (open_device(o->device, &ctx, &stream))
        goto done;
    select_cases(&sel, o, ctx);
    if (o->device != NJ_DEVICE_CPU)
        run_on_gpu(&sel, ctx, stream, o->seed);
    else
        run_on_cpu(&sel, o->seed);
    status = report(&sel, o);
done:
    nj_stream_destroy(stream);
    nj_context_destroy(ctx);
    if (sel.results)
        munmap(sel.results, (sel.count + 1) * sizeof(*sel.results));
    free(sel.subjects);
    return status;
}

static int list_cases(const struct options *o)
{
    for (uint32_t i = 0; i < nj_case_count; i++) {
        const char *key = nj_kernels[nj_cases[i].kernel].key;
        if (fnmatch(o->filter, key, FNM_EXTMATCH) == 0)
            printf("%s [%s]%s\n", key, nj_cases[i].label, nj_cases[i].bench ? " bench" : "");
    }
    return 0;
}

/* ---- options ----------------------------------------------------------------------------------
 */

static int parse_device(const char *s, enum nj_device_kind *out)
{
    for (int i = NJ_DEVICE_CPU; i <= NJ_DEVICE_VULKAN; i++)
        if (strcmp(s, device_names[i]) == 0) {
            *out = (enum nj_device_kind)i;
            return 0;
        }
    return -1;
}

static int parse_seed(const char *s, uint64_t *out)
{
    char *end;
    *out = strtoull(s, &end, 10);
    return *s && !*end ? 0 : -1;
}

static int parse_flops(const char *s, double *out)
{
    char *end;
    *out = strtod(s, &end);
    return *s && !*end && *out >= 0 ? 0 : -1;
}

static int parse(int argc, char **argv, struct options *o)
{
    const struct {
        const char *name;
        int *flag;
    } flags[] = {{"--list", &o->list}, {"--self-test", &o->self_test}};
    const size_t flag_count = sizeof(flags) / sizeof(flags[0]);
    for (int i = 1; i < argc; i++) {
        size_t f = 0;
        while (f < flag_count && strcmp(argv[i], flags[f].name))
            f++;
        if (f < flag_count) {
            *flags[f].flag = 1;
            continue;
        }
        const char *name = argv[i], *value = i + 1 < argc ? argv[++i] : NULL;
        int bad = !value;
        if (value && strcmp(name, "--device") == 0)
            bad = parse_device(value, &o->device);
        else if (value && strcmp(name, "--seed") == 0)
            bad = parse_seed(value, &o->seed);
        else if (value && strcmp(name, "--most-flops") == 0)
            bad = parse_flops(value, &o->most_flops);
        else if (value && strcmp(name, "--filter") == 0)
            o->filter = value;
        else if (value && strcmp(name, "--json") == 0)
            o->json = value;
        else
            bad = 1;
        if (bad) {
            fprintf(stderr, "harness: cannot use '%s'\n%s", name, USAGE);
            return -1;
        }
    }
    return 0;
}

static int some_key_matches(const char *filter)
{
    for (uint32_t k = 0; k < nj_kernel_count; k++)
        if (fnmatch(filter, nj_kernels[k].key, FNM_EXTMATCH) == 0)
            return 1;
    fprintf(stderr, "harness: no key matches '%s'; --list prints all\n", filter);
    return 0;
}

int main(int argc, char **argv)
{
    struct options o = {.device = NJ_DEVICE_CPU, .filter = "*", .seed = 1, .most_flops = INFINITY};
    /* Arrays of one case are as large as those of the next: they are kept, not given back page by page. */
    mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    if (nj_forbid_jit() || parse(argc, argv, &o))
        return 2;
    if (o.self_test)
        return run_self_test();
    if (!some_key_matches(o.filter))
        return 2;
    if (o.list)
        return list_cases(&o);
    return run_tests(&o);
}
