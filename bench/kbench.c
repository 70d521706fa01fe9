/* SPDX-License-Identifier: Apache-2.0
 *
 * kbench.c: options and output of kbench: the choice of kernels and shapes, the table, the JSON, and the PyTorch script
 * that reads it. Exit status: 0, 1 if something could not be timed, 2 usage; with --torch that of the script.
 */
#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"
#include "kbench.h"

enum { SHAPES = 32 };

static const char USAGE[] =
    "usage: kbench [PATTERN...] [--shape 'NAME=N ...']... [--device auto|cpu|cuda|vulkan]\n"
    "              [--json FILE] [--torch] [--list] [--gemm] [--launch]\n"
    "Times every kernel whose key or op a PATTERN matches (default: all), alone on the device.\n"
    "\n"
    "  --shape S   instead of the benchmark's shape; names are the contract's dims, in any order,\n"
    "              those that an op lacks do not concern it, those left out stay as they are;\n"
    "              NAME=null leaves out an optional argument; each --shape is a row of its own\n"
    "  --json F    rows, device and versions to a file\n"
    "  --torch     then bench/torch_ops.py times the same work in PyTorch, with $PYTHON (python3)\n"
    "  --list      only prints the keys\n"
    "  --gemm      times GEMMs instead, square ones and those of models, or of each --shape\n"
    "              'M=2048 N=512 K=64', with the share of the GPU's float32 peak where it is "
    "known;\n"
    "              on the CPU also a tile's rate beside that of one large product\n"
    "  --launch    times what a launch costs the host instead, in nanoseconds from call to "
    "return:\n"
    "              the smallest test of each key, up to 100000 times, in batches of 200 after each "
    "of\n"
    "              which the device is waited for\n"
    "\n"
    "us         median of up to 50 runs, with the values below which 10 and 90 % of them lie\n"
    "cold       the same after 256 MiB were written: operands come from memory\n"
    "rate       bytes that must move or operations that must be done (the contract's cost) over\n"
    "           the median, whichever takes longer at the measured peaks\n"
    "copy       how long a copy takes that moves as many bytes: what starting and ending cost "
    "alike\n"
    "roof       that longer time over the median (roofline). Peaks, measured first: a copy of 1 "
    "GiB, and a\n"
    "           product of 8192 x 8192 x 8192 (1024 on the CPU) in the type of the key\n"
    "kbench 'attn_*' --shape 'B=1 S=4096 H=16 K=8' times attention at another shape.\n";

struct request {
    const char *pattern[SHAPES], *shape[SHAPES], *json;
    int patterns, shapes, torch, list, gemm, launch;
    int32_t gemms[SHAPES][3]; /* shapes of --gemm */
    enum nj_device_kind device;
};

struct row {
    struct shaped s;
    struct timing warm, cold, copy;
    double floor; /* shortest possible time in microseconds */
    int by_bytes;
};

struct table {
    struct row *rows;
    int count, failed;
};

/* ---- measuring --------------------------------------------------------------------------------
 */

static int matches(const char *pattern, const struct kernel_case *c)
{
    const struct nj_kernel *k = &nj_kernels[c->kernel];
    return c->bench && (fnmatch(pattern, k->key, 0) == 0 || fnmatch(pattern, k->op, 0) == 0);
}

static int wanted(const struct request *r, const struct kernel_case *c)
{
    int found = r->patterns == 0 && c->bench;
    for (int i = 0; i < r->patterns && !found; i++)
        found = matches(r->pattern[i], c);
    return found;
}

/* Report a failure of one case, after which the others are still timed. */
static int left_out(struct table *t, const char *key, const char *why)
{
    fprintf(stderr, "kbench: %s is left out: %s\n", key, why);
    t->failed++;
    return 0;
}

static int measure(struct bench *b, const struct kernel_case *c, const char *shape, struct table *t)
{
    struct row *row = &t->rows[t->count];
    char why[256];
    const char *key = nj_kernels[c->kernel].key;
    if (shape_case(c, shape, &row->s, why, sizeof(why)))
        return left_out(t, key, why);
    row->floor = bench_floor(b, &row->s.c, &row->by_bytes);
    int rc = bench_case(b, &row->s, &row->warm, &row->cold);
    if (!rc && row->by_bytes)
        rc = bench_copy(b, &row->s.c, &row->copy);
    if (rc == NJ_E_NOMEM || rc == NJ_E_ARG)
        return left_out(t, key, nj_context_error(b->ctx));
    t->count += !rc;
    return rc;
}

static int measure_all(struct bench *b, const struct request *r, struct table *t)
{
    const int shapes = r->shapes > 0 ? r->shapes : 1;
    int rc = 0;
    t->rows = allocate((size_t)nj_case_count * (size_t)shapes, sizeof(*t->rows));
    for (uint32_t i = 0; i < nj_case_count && !rc; i++)
        if (wanted(r, &nj_cases[i]) && nj_kernel_available(b->ctx, (int)nj_cases[i].kernel))
            for (int s = 0; s < shapes && !rc; s++)
                rc = measure(b, &nj_cases[i], r->shapes > 0 ? r->shape[s] : "", t);
    if (rc)
        fprintf(stderr, "kbench: %s: %s\n", nj_error_name(rc), nj_context_error(b->ctx));
    return rc;
}

/* Return the smallest test of a kernel that is wanted and can run, or NULL. */
static const struct kernel_case *smallest(const struct bench *b, const struct request *r,
                                          uint32_t kernel)
{
    const struct kernel_case *least = NULL;
    int is_wanted = 0;
    for (uint32_t i = 0; i < nj_case_count; i++) {
        const struct kernel_case *c = &nj_cases[i];
        if (c->kernel != kernel)
            continue;
        is_wanted |= wanted(r, c);
        if (!least || c->bytes < least->bytes)
            least = c;
    }
    return is_wanted && nj_kernel_available(b->ctx, (int)kernel) ? least : NULL;
}

static int print_launches(struct bench *b, const struct kernel_case *c)
{
    const char *key = nj_kernels[c->kernel].key;
    struct shaped s;
    struct timing ns;
    char why[256];
    if (shape_case(c, "", &s, why, sizeof why)) {
        fprintf(stderr, "kbench: %s is left out: %s\n", key, why);
        return 0;
    }
    const int rc = bench_launches(b, &s, &ns);
    if (!rc)
        printf("%-32s %8.0f %8.0f %8.0f  %s\n", key, ns.median, ns.p10, ns.p90, s.label);
    return rc;
}

static int time_all_launches(struct bench *b, const struct request *r)
{
    int rc = 0;
    printf("%s: launches\n\n%-32s %8s %8s %8s  %s\n", nj_context_device(b->ctx)->name, "key", "ns",
           "p10", "p90", "shape");
    for (uint32_t k = 0; k < nj_kernel_count && !rc; k++) {
        const struct kernel_case *c = smallest(b, r, k);
        if (c)
            rc = print_launches(b, c);
    }
    return rc;
}

/* ---- output -----------------------------------------------------------------------------------
 */

static void print_rate(const struct row *r)
{
    if (r->by_bytes)
        printf("%9.1f GB/s   ", r->s.c.bytes / r->warm.median * 1e-3);
    else
        printf("%9.3f TFLOP/s", r->s.c.flops / r->warm.median * 1e-6);
}

static void print_table(const struct bench *b, const struct table *t)
{
    const struct nj_device_info *info = nj_context_device(b->ctx);
    int key = 3, label = 5;
    printf("%s: copies %.1f GB/s (read and written); products of %d^3: float32 %.3g TFLOP/s",
           info->name, b->copy_gbs, b->product_dim, b->product_gflops[NJ_F32] * 1e-3);
    if (b->product_gflops[NJ_LP] > 0)
        printf(", 16-bit %.3g TFLOP/s", b->product_gflops[NJ_LP] * 1e-3);
    if (b->product_gflops[NJ_F8] > 0)
        printf(", e4m3 %.3g TFLOP/s", b->product_gflops[NJ_F8] * 1e-3);
    for (int i = 0; i < t->count; i++) {
        const int k = (int)strlen(nj_kernels[t->rows[i].s.c.kernel].key);
        const int l = (int)strlen(t->rows[i].s.label);
        key = k > key ? k : key;
        label = l > label ? l : label;
    }
    printf("\n\n%-*s  %-*s %10s %10s %10s %17s %6s %8s %10s %6s\n", key, "key", label, "shape",
           "us", "p10", "p90", "rate", "roof", "copy us", "cold us", "roof");
    for (int i = 0; i < t->count; i++) {
        const struct row *r = &t->rows[i];
        printf("%-*s  %-*s %10.1f %10.1f %10.1f ", key, nj_kernels[r->s.c.kernel].key, label,
               r->s.label, r->warm.median, r->warm.p10, r->warm.p90);
        print_rate(r);
        printf(" %4.0f %% ", 100 * r->floor / r->warm.median);
        if (r->by_bytes)
            printf("%8.1f", r->copy.median);
        else
            printf("%8s", "");
        printf(" %10.1f %4.0f %%\n", r->cold.median, 100 * r->floor / r->cold.median);
    }
}

static void write_shape(FILE *f, const struct subject *s, const struct row *r)
{
    const char *comma = "";
    char name[32], value[32];
    for (const char *at = r->s.label; shape_next(&at, name, value) > 0; comma = ", ")
        fprintf(f, "%s\"%s\": %s", comma, name, value);
    for (int a = 0; a < s->names->axis_count; a++, comma = ", ")
        fprintf(f, "%s\"%s\": %d", comma, s->names->axis_names[a], s->names->axis_values[a]);
}

static void write_timing(FILE *f, const char *name, const struct timing *t)
{
    fprintf(f, "\"%s\": {\"us\": %.5g, \"p10\": %.5g, \"p90\": %.5g}", name, t->median, t->p10,
            t->p90);
}

/* Write a string of JSON; control characters and bytes that are not UTF-8 become '?'. */
static void write_text(FILE *f, const char *text)
{
    char shown[512];
    snprintf(shown, sizeof shown, "%s", text);
    make_printable(shown);
    fputc('"', f);
    for (const char *c = shown; *c != '\0'; c++)
        fprintf(f, "%s%c", *c == '"' || *c == '\\' ? "\\" : "", *c);
    fputc('"', f);
}

static void write_rows(FILE *f, const struct bench *b, const struct table *t)
{
    const struct nj_device_info *info = nj_context_device(b->ctx);
    struct nj_embedded e = {.keys = 0};
    (void)nj_embedded_read(&e); /* a binary for the CPU alone has no toolkit to name */
    fputs("{\"device\": ", f);
    write_text(f, info->name);
    fprintf(f, ", \"backend\": \"%s\", \"driver\": ", info->backend);
    write_text(f, info->driver);
    fprintf(f, ", \"gemm_version\": %zu, \"toolkit\": ", info->gemm_version);
    write_text(f, nj_embedded_assembler(&e, info->arch));
    fputs(",\n", f);
    fprintf(f, " \"copy_gbs\": %.5g, \"product_dim\": %d, \"product_f32_gflops\": %.5g, ",
            b->copy_gbs, b->product_dim, b->product_gflops[NJ_F32]);
    fprintf(f, "\"product_lp_gflops\": %.5g, \"product_f8_gflops\": %.5g,\n \"rows\": [",
            b->product_gflops[NJ_LP], b->product_gflops[NJ_F8]);
    for (int i = 0; i < t->count; i++) {
        const struct row *r = &t->rows[i];
        const struct subject s = nj_case_subject_of(&r->s.c);
        fprintf(f, "%s\n  {\"key\": \"%s\", \"op\": \"%s\", \"shape\": {", i ? "," : "", s.key,
                s.op);
        write_shape(f, &s, r);
        fputs("}, ", f);
        write_timing(f, "warm", &r->warm);
        fputs(", ", f);
        write_timing(f, "cold", &r->cold);
        if (r->by_bytes) {
            fputs(", ", f);
            write_timing(f, "copy", &r->copy);
        }
        fprintf(f, ", \"bytes\": %.0f, \"flops\": %.0f, \"floor_us\": %.5g}", r->s.c.bytes,
                r->s.c.flops, r->floor);
    }
    fputs("\n]}\n", f);
}

/* Open the file before anything is measured; return NULL after a message. */
static FILE *open_json(const char *path)
{
    FILE *f = path ? fopen(path, "w+") : tmpfile();
    if (!f)
        fprintf(stderr, "kbench: %s: %s\n", path ? path : "a temporary file", strerror(errno));
    return f;
}

/* Write the rows as JSON; the file is at its start afterwards. */
static int write_json(const struct bench *b, const struct table *t, FILE *f)
{
    write_rows(f, b, t);
    if (fflush(f) == 0 && fseek(f, 0, SEEK_SET) == 0)
        return 0;
    fprintf(stderr, "kbench: the JSON cannot be written: %s\n", strerror(errno));
    return NJ_E_IO;
}

/* Execute the script in place of this program, with the rows as its standard input. */
static int become_torch(FILE *json)
{
    const char *given = getenv("PYTHON"), *python = given ? given : "python3";
    fflush(stdout);
    if (dup2(fileno(json), STDIN_FILENO) >= 0)
        execlp(python, python, "bench/torch_ops.py", (char *)NULL);
    perror(python);
    return 1;
}

/* ---- options ----------------------------------------------------------------------------------
 */

static int parse_device(const char *s, enum nj_device_kind *out)
{
    static const char *const names[] = {[NJ_DEVICE_AUTO] = "auto",
                                        [NJ_DEVICE_CPU] = "cpu",
                                        [NJ_DEVICE_CUDA] = "cuda",
                                        [NJ_DEVICE_VULKAN] = "vulkan"};
    for (int i = 0; i < (int)(sizeof(names) / sizeof(names[0])); i++) {
        if (strcmp(s, names[i]) == 0) {
            *out = (enum nj_device_kind)i;
            return 0;
        }
    }
    return -1;
}

/* Parse an option that has a value; return 1 after a message. */
static int parse_value(const char *name, const char *value, struct request *r)
{
    const int device = strcmp(name, "--device") == 0, json = strcmp(name, "--json") == 0;
    const int shape = strcmp(name, "--shape") == 0;
    if (!device && !json && !shape)
        fprintf(stderr, "kbench: unknown option %s; see kbench --help\n", name);
    else if (!value)
        fprintf(stderr, "kbench: %s needs a value; see kbench --help\n", name);
    else if (device && parse_device(value, &r->device))
        fprintf(stderr, "kbench: --device %s: must be one of auto|cpu|cuda|vulkan\n", value);
    else if (shape && r->shapes == SHAPES)
        fprintf(stderr, "kbench: --shape '%s': more than %d shapes; give fewer\n", value, SHAPES);
    else {
        if (json)
            r->json = value;
        if (shape)
            r->shape[r->shapes++] = value;
        return 0;
    }
    return 1;
}

static int parse_pattern(const char *pattern, struct request *r)
{
    if (strchr(pattern, '='))
        fprintf(stderr, "kbench: '%s' is no key; quote the shape: --shape 'N=64 C=128'\n", pattern);
    else if (r->patterns == SHAPES)
        fprintf(stderr, "kbench: '%s': more than %d patterns; give fewer\n", pattern, SHAPES);
    else {
        r->pattern[r->patterns++] = pattern;
        return 0;
    }
    return 1;
}

static int parse(int argc, char **argv, struct request *r)
{
    int bad = 0;
    for (int i = 1; i < argc && !bad; i++) {
        if (strcmp(argv[i], "--torch") == 0)
            r->torch = 1;
        else if (strcmp(argv[i], "--list") == 0)
            r->list = 1;
        else if (strcmp(argv[i], "--gemm") == 0)
            r->gemm = 1;
        else if (strcmp(argv[i], "--launch") == 0)
            r->launch = 1;
        else if (argv[i][0] != '-')
            bad = parse_pattern(argv[i], r);
        else {
            bad = parse_value(argv[i], argv[i + 1], r);
            i++;
        }
    }
    return bad;
}

/* Return whether a wanted op has what a shape names. */
static int name_is_known(const struct request *r, const char *name)
{
    for (uint32_t i = 0; i < nj_case_count; i++) {
        const struct subject s = nj_case_subject_of(&nj_cases[i]);
        if (wanted(r, &nj_cases[i]) && shape_param(&s, name) >= 0)
            return 1;
    }
    return 0;
}

static int check_patterns(const struct request *r)
{
    for (int i = 0; i < r->patterns; i++) {
        int found = 0;
        for (uint32_t c = 0; c < nj_case_count && !found; c++)
            found = matches(r->pattern[i], &nj_cases[c]);
        if (!found) {
            fprintf(stderr, "kbench: no key matches '%s'; kbench --list prints all\n",
                    r->pattern[i]);
            return -1;
        }
    }
    return 0;
}

static int check_gemms(struct request *r)
{
    if (r->patterns || r->json || r->torch || r->list || r->launch) {
        fputs("kbench: --gemm: takes --shape and --device alone\n", stderr);
        return -1;
    }
    for (int i = 0; i < r->shapes; i++) {
        if (gemm_shape(r->shape[i], r->gemms[i])) {
            fprintf(stderr, "kbench: --shape '%s': write 'M=NUMBER N=NUMBER K=NUMBER'\n",
                    r->shape[i]);
            return -1;
        }
    }
    return 0;
}

static int check_shapes(const struct request *r)
{
    char name[32] = "", value[32];
    if (r->launch && (r->shapes || r->json || r->torch)) {
        fputs("kbench: --launch: takes patterns and --device alone\n", stderr);
        return -1;
    }
    for (int i = 0; i < r->shapes; i++) {
        int more = 0;
        for (const char *at = r->shape[i]; (more = shape_next(&at, name, value)) > 0;) {
            if (!name_is_known(r, name)) {
                fprintf(stderr, "kbench: --shape: no op that is timed has '%s'\n", name);
                return -1;
            }
        }
        if (more < 0) {
            fprintf(stderr, "kbench: --shape '%s': write 'NAME=NUMBER ...'\n", r->shape[i]);
            return -1;
        }
    }
    return 0;
}

static int list_keys(const struct request *r)
{
    for (uint32_t i = 0; i < nj_case_count; i++)
        if (wanted(r, &nj_cases[i]))
            puts(nj_kernels[nj_cases[i].kernel].key);
    return fflush(stdout) != 0;
}

int main(int argc, char **argv)
{
    struct request r = {.device = NJ_DEVICE_AUTO};
    struct bench b = {.seed = 1};
    struct table t = {.count = 0};
    FILE *json = NULL;
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return fputs(USAGE, stdout) < 0;
    if (nj_forbid_jit() || parse(argc, argv, &r))
        return 2;
    if (r.gemm ? check_gemms(&r) : check_patterns(&r) || check_shapes(&r))
        return 2;
    if (r.list)
        return list_keys(&r);
    if ((r.json || r.torch) && !(json = open_json(r.json)))
        return 1;
    int rc = bench_open(&b, r.device);
    if (!rc)
        rc = r.gemm     ? bench_gemms(&b, r.shapes, (const int32_t(*)[3])r.gemms)
             : r.launch ? time_all_launches(&b, &r)
                        : bench_roofs(&b);
    if (rc)
        fprintf(stderr, "kbench: %s: %s\n", nj_error_name(rc),
                b.ctx ? nj_context_error(b.ctx) : nj_error_text(rc));
    else if (nj_context_device(b.ctx)->fallback[0])
        fprintf(stderr, "kbench: on %s: %s\n", nj_context_device(b.ctx)->name,
                nj_context_device(b.ctx)->fallback);
    const int kernels = !r.gemm && !r.launch;
    if (!rc && kernels)
        rc = measure_all(&b, &r, &t);
    if (!rc && kernels) {
        print_table(&b, &t);
        if (json)
            rc = write_json(&b, &t, json);
    }
    bench_close(&b);
    free(t.rows);
    if (!rc && r.torch)
        return become_torch(json);
    if (json && fclose(json))
        rc = NJ_E_IO;
    return rc || t.failed ? 1 : 0;
}
