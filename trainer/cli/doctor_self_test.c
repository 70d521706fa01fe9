/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor_self_test.c: see doctor_self_test.h.
 */
#include "cli/doctor_self_test.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/grow.h"
#include "base/plural.h"
#include "base/utf8.h"
#include "io/error.h"
#include "io/json_text.h"
#include "record/progress.h"

struct self_test_row {
    char name[96], label[128], wrong[600];
    bool is_gemm;
    enum nj_verdict verdict;
    double error, tolerance;
    float ms;
};

static const char *const verdicts[] = {[NJ_PASSED] = "passed",
                                       [NJ_PASSED_SPARE] =
                                           "passed with its second set of machine code",
                                       [NJ_ABSENT] = "not in this library",
                                       [NJ_FAILED] = "failed"};

void self_test_hear(void *user, const struct nj_device_info *device, const struct nj_trial *t)
{
    struct self_test_report *r = user;
    if (r->count == 0)
        r->device = *device;
    if (strcmp(r->device.backend, device->backend) != 0)
        return;
    if (!GROW(r->rows, r->room, r->count + 1)) {
        r->no_memory = true;
        return;
    }
    struct self_test_row *row = &r->rows[r->count++];
    *row = (struct self_test_row){.is_gemm = t->is_gemm,
                                  .verdict = t->verdict,
                                  .error = t->error,
                                  .tolerance = t->tolerance,
                                  .ms = t->ms};
    snprintf(row->name, sizeof row->name, "%s", t->name);
    snprintf(row->label, sizeof row->label, "%s", t->label);
    snprintf(row->wrong, sizeof row->wrong, "%s", t->wrong);
    r->failed += t->verdict == NJ_FAILED;
}

void self_test_free(struct self_test_report *r)
{
    free(r->rows);
    *r = (struct self_test_report){.count = 0};
}

/* ---- as text ---- */

static int count_of(const struct self_test_report *r, bool gemms, bool failed)
{
    int n = 0;
    for (size_t i = 0; i < r->count; i++) {
        const struct self_test_row *row = &r->rows[i];
        n += row->is_gemm == gemms && row->verdict != NJ_ABSENT &&
             (!failed || row->verdict == NJ_FAILED);
    }
    return n;
}

static void print_row(const struct self_test_row *row)
{
    char wrong[sizeof row->wrong];
    snprintf(wrong, sizeof wrong, "%s", row->wrong);
    make_printable(wrong);
    printf("  %s [%s] %s", row->name, row->label, verdicts[row->verdict]);
    if (wrong[0] != '\0')
        printf(": %s\n", wrong);
    else
        printf(", error %.2g of %.2g, in %.1f ms\n", row->error, row->tolerance, (double)row->ms);
}

void self_test_print(const struct self_test_report *r, bool all)
{
    if (r->count == 0)
        return;
    puts("tested, each by its smallest cases");
    for (size_t i = 0; i < r->count; i++)
        if (all || r->rows[i].verdict != NJ_PASSED)
            print_row(&r->rows[i]);
    const int kernels = count_of(r, false, false), gemms = count_of(r, true, false);
    if (r->failed > 0)
        printf("  %d of %d kernel%s and %d of %d GEMM%s failed\n", count_of(r, false, true),
               kernels, plural(kernels), count_of(r, true, true), gemms, plural(gemms));
    else
        printf("  %s%d kernel%s and %d GEMM%s passed\n",
               r->incomplete ? "it ended before all had been tried; " : "all of ", kernels,
               plural(kernels), gemms, plural(gemms));
}

const char *took_text(float ms, char *buffer, size_t bytes)
{
    if (ms >= 10000)
        return duration_text(1e-3 * (double)ms, buffer, bytes);
    snprintf(buffer, bytes, "%.0f ms", (double)ms);
    return buffer;
}

static void print_passed(const struct nj_self_test_record *t, const char *when)
{
    char took[32];
    printf("self-test passed %s, in %s: %u kernel%s, %u GEMM%s", when,
           took_text(t->ms, took, sizeof took), t->kernels, plural(t->kernels), t->gemms,
           plural(t->gemms));
    if (t->spares > 0)
        printf("; the second set of machine code of%s", t->spare_names);
    printf("\n");
}

void self_test_print_state(const struct nj_device_info *d)
{
    const struct nj_self_test_record *t = &d->self_test;
    char day[16];
    snprintf(day, sizeof day, "on %.10s", t->at);
    if (t->state == NJ_SELF_TEST_NOW)
        print_passed(t, "now");
    else if (t->state == NJ_SELF_TEST_BEFORE)
        print_passed(t, day);
    else if (t->state == NJ_SELF_TEST_SKIPPED)
        puts("self-test switched off by NOJIT_SELF_TEST=off");
    else
        puts("self-test none: the CPU runs the references of the kernels; --self-test tries them");
}

/* ---- as JSON ---- */

/* Return a number; JSON has no infinity, which is the error of a NaN. */
static json_t *number(double x)
{
    return isfinite(x) ? json_real(x) : json_string("not finite");
}

static json_t *rows_json(const struct self_test_report *r, bool gemms)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->count; i++) {
        const struct self_test_row *row = &r->rows[i];
        if (row->is_gemm != gemms)
            continue;
        json_t *o = json_pack("{s:s, s:o, s:s, s:o, s:o, s:f}", "name", row->name, "case",
                              json_c_text(row->label), "verdict", verdicts[row->verdict], "error",
                              number(row->error), "tolerance", number(row->tolerance), "ms",
                              (double)row->ms);
        if (row->wrong[0] != '\0')
            json_object_set_new(o, "wrong", json_c_text(row->wrong));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *report_json(const struct self_test_report *r)
{
    const struct nj_device_info *d = &r->device;
    struct nj_embedded e = {.keys = 0};
    char at[32], hash[20];
    const time_t now = time(NULL);
    struct tm parts;
    nj_embedded_read(&e);
    gmtime_r(&now, &parts);
    strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%SZ", &parts);
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)e.index_hash);
    json_t *root =
        json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:s, s:i, s:s, s:o, s:i, s:I, s:s}", "nojit",
                  NOJIT_VERSION, "at", at, "verdict",
                  r->failed > 0   ? "failed"
                  : r->incomplete ? "incomplete"
                                  : "passed",
                  "index_hash", hash, "assembler", json_c_text(nj_embedded_assembler(&e, d->arch)),
                  "device", json_c_text(d->name), "backend", d->backend, "sm", d->sm, "arch",
                  d->arch, "driver", json_c_text(d->driver), "driver_cuda", d->driver_version,
                  "gemm_version", (json_int_t)d->gemm_version, "gemm_build", d->gemm_build);
    json_object_set_new(root, "gemms", rows_json(r, true));
    json_object_set_new(root, "kernels", rows_json(r, false));
    return root;
}

int self_test_write(const struct self_test_report *r, const char *path)
{
    if (r->no_memory)
        return fail(NJ_E_NOMEM, "%s: out of memory for the report", path);
    json_memory_begin();
    return json_write_file(path, report_json(r), JSON_INDENT(1));
}
