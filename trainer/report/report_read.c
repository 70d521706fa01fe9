/* SPDX-License-Identifier: Apache-2.0
 *
 * report_read.c: a run's folder as JSON for the page.
 */
#include "report/report.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/plural.h"
#include "io/error.h"
#include "io/json_text.h"
#include "io/line.h"
#include "io/path.h"
#include "io/regular.h"

enum { SERIES_MAX = 128, STRETCHES = 600 };

struct series {
    char *name;
    double *x, *y;
    size_t count, capacity;
};

struct log {
    struct series series[SERIES_MAX];
    size_t count, rows;
    double last_step;
    bool torn; /* whether the last row is incomplete: a run is writing it, or died */
};

static void log_free(struct log *g)
{
    for (size_t i = 0; i < g->count; i++) {
        free(g->series[i].name);
        free(g->series[i].x);
        free(g->series[i].y);
    }
}

static struct series *series_named(struct log *g, const char *name)
{
    for (size_t i = 0; i < g->count; i++)
        if (strcmp(g->series[i].name, name) == 0)
            return &g->series[i];
    if (g->count == SERIES_MAX)
        return NULL;
    struct series *s = &g->series[g->count];
    s->name = strdup(name);
    if (s->name != NULL)
        g->count++;
    return s->name != NULL ? s : NULL;
}

static int series_add(struct series *s, double x, double y)
{
    if (s->count == s->capacity) {
        const size_t capacity = s->capacity > 0 ? 2 * s->capacity : 64;
        double *xs = realloc(s->x, capacity * sizeof *xs);
        if (xs == NULL)
            return NJ_E_NOMEM;
        s->x = xs;
        double *ys = realloc(s->y, capacity * sizeof *ys);
        if (ys == NULL)
            return NJ_E_NOMEM;
        s->y = ys;
        s->capacity = capacity;
    }
    s->x[s->count] = x;
    s->y[s->count++] = y;
    return 0;
}

/* Return the current name of a metric; ce_loss was class_loss. */
static const char *name_now(const char *name)
{
    if (strcmp(name, "class_loss") == 0)
        return "ce_loss";
    return strcmp(name, "eval_class_loss") == 0 ? "eval_ce_loss" : name;
}

static int add_row(struct log *g, json_t *row, const char *path)
{
    const char *name;
    json_t *value;
    const json_t *step = json_object_get(row, "step");
    if (!json_is_number(step) || !(fabs(json_number_value(step)) < 1e15))
        return fail(NJ_E_FORMAT, "%s:%zu: no \"step\" below 1e15", path, g->rows + 1);
    g->last_step = fmax(g->last_step, json_number_value(step));
    json_object_foreach(row, name, value)
    {
        if (!json_is_number(value) || strcmp(name, "step") == 0 ||
            !isfinite(json_number_value(value)))
            continue;
        struct series *s = series_named(g, name_now(name));
        if (s == NULL && g->count == SERIES_MAX)
            return fail(NJ_E_FORMAT, "%s:%zu: more than %d metrics", path, g->rows + 1, SERIES_MAX);
        if (s == NULL || series_add(s, json_number_value(step), json_number_value(value)) != 0)
            return fail(NJ_E_NOMEM, "out of memory while reading %s", path);
    }
    g->rows++;
    return 0;
}

static int read_rows(struct log *g, const char *path)
{
    json_error_t why;
    struct line line = {0};
    FILE *f;
    int rc = regular_open(path, 0, "a run's folder is expected", &f);
    if (rc != 0)
        return rc;
    while (rc == 0 && !(rc = line_read(f, path, &line)) && line.bytes > 0) {
        json_memory_begin();
        json_t *row = json_loadb(line.text, line.bytes, 0, &why);
        if (json_memory_end())
            rc = fail(NJ_E_NOMEM, "out of memory while reading %s", path);
        else if (row == NULL && line.text[line.bytes - 1] != '\n')
            g->torn = true;
        else if (row == NULL)
            rc = fail(NJ_E_FORMAT, "%s:%zu: %s", path, g->rows + 1, why.text);
        else
            rc = add_row(g, row, path);
        json_decref(row);
    }
    if (rc == 0 && g->rows == 0)
        rc = fail(NJ_E_FORMAT, "%s: no rows yet; come back after the first step", path);
    free(line.text);
    fclose(f);
    return rc;
}

static void put_point(json_t *x, json_t *y, const struct series *s, size_t i)
{
    json_array_append_new(x, json_integer((json_int_t)s->x[i]));
    json_array_append_new(y, json_real(s->y[i]));
}

/* Put the lowest and highest value of rows [from, to), in the order of their rows. */
static void put_extremes(json_t *x, json_t *y, const struct series *s, size_t from, size_t to)
{
    size_t low = from, high = from;
    for (size_t i = from; i < to; i++) {
        low = s->y[i] < s->y[low] ? i : low;
        high = s->y[i] > s->y[high] ? i : high;
    }
    put_point(x, y, s, low < high ? low : high);
    if (low != high)
        put_point(x, y, s, low < high ? high : low);
}

static void put_mean(json_t *at, json_t *mean, const struct series *s, size_t from, size_t to)
{
    double sum = 0;
    for (size_t i = from; i < to; i++)
        sum += s->y[i];
    json_array_append_new(at, json_integer((json_int_t)s->x[from + (to - from) / 2]));
    json_array_append_new(mean, json_real(sum / (double)(to - from)));
}

/* Make the JSON of a series: for a long one, the extremes of every stretch, and its mean, which smoothing starts from.
 * The first and the last value always stay: the page calls them by that name. */
static json_t *series_json(const struct series *s)
{
    json_t *x = json_array(), *y = json_array();
    if (s->count <= 2 * STRETCHES) {
        for (size_t i = 0; i < s->count; i++)
            put_point(x, y, s, i);
        return json_pack("{s:o, s:o}", "x", x, "y", y);
    }
    json_t *at = json_array(), *mean = json_array();
    const size_t inner = s->count - 2;
    put_point(x, y, s, 0);
    for (size_t k = 0; k < STRETCHES; k++) {
        const size_t from = 1 + inner * k / STRETCHES, to = 1 + inner * (k + 1) / STRETCHES;
        put_extremes(x, y, s, from, to);
        put_mean(at, mean, s, from, to);
    }
    put_point(x, y, s, s->count - 1);
    return json_pack("{s:o, s:o, s:o, s:o}", "x", x, "y", y, "at", at, "mean", mean);
}

static void add_note(json_t *notes, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    json_array_append_new(notes, json_vsprintf(format, args));
    va_end(args);
}

/* Shapes of values that the page's script relies on. */
enum shape { TEXT, NUMBER, TEXTS, GROUP };
static const char *const shape_names[] = {"text", "a number", "a list of texts", "an object"};

static bool has_shape(const json_t *value, enum shape shape)
{
    size_t i;
    const json_t *item;
    switch (shape) {
    case TEXT:
        return json_is_string(value);
    case NUMBER:
        return json_is_number(value);
    case GROUP:
        return json_is_object(value);
    case TEXTS:
        break;
    }
    json_array_foreach(value, i, item)
    {
        if (!json_is_string(item))
            return false;
    }
    return json_is_array(value);
}

/* Take the fields of another shape out of a receipt, which anybody may have edited. */
static void check_receipt(json_t *receipt, json_t *notes)
{
    static const struct {
        const char *group, *name;
        enum shape shape;
    } fields[] = {
        {NULL, "command", TEXT},
        {NULL, "command_line", TEXTS},
        {NULL, "started", TEXT},
        {NULL, "student_parameters", NUMBER},
        {NULL, "teacher_parameters", NUMBER},
        {NULL, "applied", GROUP},
        {"applied", "dtype", TEXT},
        {"applied", "objective", TEXT},
        {NULL, "rollouts", GROUP},
        {"rollouts", "length", NUMBER},
        {"rollouts", "truncated", NUMBER},
        {"rollouts", "share_of_time", NUMBER},
        {NULL, "device", GROUP},
        {"device", "name", TEXT},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const char *group = fields[i].group, *name = fields[i].name;
        json_t *in = group != NULL ? json_object_get(receipt, group) : receipt;
        const json_t *value = json_object_get(in, name);
        if (value == NULL || has_shape(value, fields[i].shape))
            continue;
        add_note(notes, "receipt.json: %s%s%s is not %s and is left out",
                 group != NULL ? group : "", group != NULL ? "." : "", name,
                 shape_names[fields[i].shape]);
        json_object_del(in, name);
    }
}

static bool is_sample(const json_t *row)
{
    static const struct {
        const char *name;
        enum shape shape;
    } fields[] = {{"step", NUMBER}, {"prompt", TEXT}, {"text", TEXT}, {"answer", TEXT}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const json_t *value = json_object_get(row, fields[i].name);
        if (value != NULL && !has_shape(value, fields[i].shape))
            return false;
    }
    return json_is_object(row);
}

/* Read the rows of DIR/samples.jsonl; an absent file has none. */
static int read_samples(const char *dir, json_t *notes, json_t *out)
{
    char path[PATH_BYTES + 32];
    struct line line = {0};
    size_t others = 0;
    snprintf(path, sizeof path, "%s/samples.jsonl", dir);
    FILE *f;
    if (access(path, F_OK) != 0)
        return 0;
    int rc = regular_open(path, 0, "remove it", &f);
    if (rc != 0)
        return rc;
    while (!(rc = line_read(f, path, &line)) && line.bytes > 0) {
        json_t *row = json_loadb(line.text, line.bytes, JSON_ALLOW_NUL, NULL);
        if (is_sample(row))
            json_array_append(out, row);
        else
            others++;
        json_decref(row);
    }
    if (others > 0)
        add_note(notes, "samples.jsonl: left out %zu row%s that %s not whole", others,
                 plural((long long)others), others == 1 ? "is" : "are");
    free(line.text);
    fclose(f);
    return rc;
}

static int read_receipt(const char *dir, json_t *notes, json_t **out)
{
    char path[PATH_BYTES + 32];
    snprintf(path, sizeof path, "%s/receipt.json", dir);
    if (access(path, F_OK) != 0) {
        json_array_append_new(notes, json_string("no receipt.json: the run has not finished"));
        *out = json_null();
        return 0;
    }
    const int rc = json_read_file(path, "not a receipt", out);
    if (rc != 0 || json_is_object(*out))
        return rc;
    json_decref(*out);
    *out = NULL;
    return fail(NJ_E_FORMAT, "%s: not a receipt", path);
}

/* Return the last part of the path. */
static json_t *name_of(const char *dir)
{
    size_t end = strlen(dir);
    while (end > 1 && dir[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && dir[begin - 1] != '/')
        begin--;
    json_t *name = json_stringn(dir + begin, end - begin);
    return name != NULL ? name : json_string("run");
}

/* Return whether a series is idle: a run without a teacher has zeros for metrics that only a teacher gives. */
static bool is_idle(const struct series *s)
{
    size_t i = 0;
    if (strstr(s->name, "kd") == NULL && strstr(s->name, "agreement") == NULL &&
        strstr(s->name, "teacher") == NULL)
        return false;
    while (i < s->count && s->y[i] == 0)
        i++;
    return i == s->count;
}

static int make_run(const char *dir, struct log *g, json_t *receipt, json_t *notes, json_t *series,
                    json_t **out)
{
    json_memory_begin();
    json_t *samples = json_array();
    int rc = read_samples(dir, notes, samples);
    check_receipt(receipt, notes);
    if (g->torn)
        json_array_append_new(notes, json_string("the last row of metrics.jsonl is not whole"));
    for (size_t i = 0; i < g->count; i++)
        if (!is_idle(&g->series[i]))
            json_object_set_new(series, g->series[i].name, series_json(&g->series[i]));
    *out = json_pack("{s:o, s:s, s:I, s:I, s:O, s:O, s:o, s:O}", "name", name_of(dir), "path", dir,
                     "rows", (json_int_t)g->rows, "steps", (json_int_t)g->last_step, "series",
                     series, "receipt", receipt, "samples", samples, "notes", notes);
    if (*out == NULL && rc == 0)
        rc = fail(NJ_E_FORMAT, "%s: the name is not UTF-8; rename the folder", dir);
    if (json_memory_end())
        rc = fail(NJ_E_NOMEM, "out of memory while reading %s", dir);
    if (rc != 0) {
        json_decref(*out);
        *out = NULL;
    }
    return rc;
}

int report_read(const char *dir, json_t **out)
{
    char path[PATH_BYTES + 32];
    json_t *receipt = NULL;
    struct log *g = calloc(1, sizeof *g);
    json_t *notes = json_array(), *series = json_object();
    *out = NULL;
    int rc = g == NULL || notes == NULL || series == NULL
                 ? fail(NJ_E_NOMEM, "out of memory while reading %s", dir)
                 : 0;
    snprintf(path, sizeof path, "%s/metrics.jsonl", dir);
    if (rc == 0)
        rc = read_rows(g, path);
    if (rc == 0)
        rc = read_receipt(dir, notes, &receipt);
    if (rc == 0)
        rc = make_run(dir, g, receipt, notes, series, out);
    json_decref(receipt);
    json_decref(series);
    json_decref(notes);
    if (g != NULL)
        log_free(g);
    free(g);
    return rc;
}
