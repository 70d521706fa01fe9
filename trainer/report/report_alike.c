/* SPDX-License-Identifier: Apache-2.0
 *
 * report_alike.c: the runs between which a metric may be compared: those whose receipts name the same text, the same
 * tokenizer and the same values of everything else that its numbers depend on.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "io/error.h"
#include "io/json_text.h"
#include "objective/objective.h"
#include "report/report.h"

enum {
    TOKENIZER,
    TEXT,
    HELD_OUT,
    TEACHER,
    DIVERGENCE,
    OBJECTIVE,
    FACTS,
    ANSWERS = FACTS,
    UNKNOWN,
    WHYS
};
#define BIT(fact) (1u << (fact))

/* A field of a receipt; absent: its value if it is absent, NULL: it is then unknown. */
struct field {
    const char *group, *name, *absent;
};

static const struct field facts[FACTS][3] = {
    [TOKENIZER] = {{NULL, "tokenizer_hash", NULL}},
    [TEXT] = {{NULL, "data_hash", NULL}},
    [HELD_OUT] = {{NULL, "eval_data_hash", NULL}},
    [TEACHER] = {{NULL, "teacher_hash", ""}},
    [DIVERGENCE] = {{"applied", "temperature", NULL},
                    {"applied", "objective", "kl"},
                    {"applied", "beta", NULL}},
    [OBJECTIVE] = {{NULL, "command", NULL}, {"applied", "kd_ratio", NULL}},
};

static const char *const why_text[WHYS] = {
    [TOKENIZER] = "their tokenizers differ",
    [TEXT] = "their training data differ",
    [HELD_OUT] = "their held-out texts differ",
    [TEACHER] = "their teachers differ",
    [DIVERGENCE] = "their divergences differ",
    [OBJECTIVE] = "they minimise different losses",
    [ANSWERS] = "an on-policy run is measured on answers of its own",
    [UNKNOWN] = "a run whose receipt is missing, or lacks a hash, does not say what it read",
};

enum {
    ON_TEXT = BIT(TOKENIZER) | BIT(TEXT),
    ON_HELD_OUT = BIT(TOKENIZER) | BIT(HELD_OUT),
    TO_TEACHER = BIT(TEACHER) | BIT(DIVERGENCE),
    WHOLE_LOSS = TO_TEACHER | BIT(OBJECTIVE)
};

/* The facts that a metric depends on. Metrics without a row are compared between all runs. */
static const struct measure {
    const char *name;
    unsigned facts;
    bool answers; /* whether it is measured on answers with --on-policy */
} measures[] = {
    {"loss", ON_TEXT | WHOLE_LOSS, true},
    {"kd_loss", ON_TEXT | TO_TEACHER, true},
    {"ce_loss", ON_TEXT, true},
    {"agreement", ON_TEXT | BIT(TEACHER), true},
    {"teacher_entropy", ON_TEXT | TO_TEACHER, true},
    {"forward_kl", ON_TEXT | TO_TEACHER, true},
    {"reverse_kl", ON_TEXT | TO_TEACHER, true},
    {"student_entropy", ON_TEXT, true},
    {"eval_loss", ON_HELD_OUT | WHOLE_LOSS, false},
    {"eval_kd_loss", ON_HELD_OUT | TO_TEACHER, false},
    {"eval_ce_loss", ON_HELD_OUT, false},
    {"eval_perplexity", ON_HELD_OUT, false},
    {"eval_agreement", ON_HELD_OUT | BIT(TEACHER), false},
    {"eval_teacher_entropy", ON_HELD_OUT | TO_TEACHER, false},
};

static const json_t *series_of(const json_t *run, const char *name)
{
    return json_object_get(json_object_get(run, "series"), name);
}

/* Copy the value of a field in a run's receipt; false: there is none. */
static bool field_text(const json_t *run, const struct field *f, char *out, size_t bytes)
{
    const json_t *in = json_object_get(run, "receipt");
    const json_t *value =
        json_object_get(f->group != NULL ? json_object_get(in, f->group) : in, f->name);
    if (json_is_number(value))
        snprintf(out, bytes, "%.9g", json_number_value(value));
    else if (json_is_string(value) || (value == NULL && in != NULL && f->absent != NULL))
        snprintf(out, bytes, "%s", value != NULL ? json_string_value(value) : f->absent);
    else
        return false;
    return true;
}

/* Compare one fact of two runs; *known: whether both have it. */
static bool is_same(const json_t *a, const json_t *b, const struct field *f, bool *known)
{
    char x[64], y[64];
    *known = true;
    for (int i = 0; i < 3 && f[i].name != NULL && *known; i++) {
        *known = field_text(a, &f[i], x, sizeof x) && field_text(b, &f[i], y, sizeof y);
        if (*known && strcmp(x, y) != 0)
            return false;
    }
    return *known;
}

/* Compare the facts that a metric of two runs depends on; add to *why those that differ. */
static bool is_alike(const json_t *a, const json_t *b, const struct measure *m, unsigned *why)
{
    unsigned differs = 0;
    bool known;
    if (m->answers && (series_of(a, "rollout_tokens") || series_of(b, "rollout_tokens")))
        differs = BIT(ANSWERS);
    for (int f = 0; f < FACTS && differs != BIT(ANSWERS); f++)
        if ((m->facts & BIT(f)) && !is_same(a, b, facts[f], &known))
            differs |= known ? BIT(f) : BIT(UNKNOWN);
    *why |= differs;
    return differs == 0;
}

/* Sort the runs that have a metric into groups of numbers of runs. */
static json_t *group_runs(const json_t *runs, const struct measure *m, unsigned *why)
{
    json_t *groups = json_array(), *group;
    size_t i, k;
    const json_t *run;
    json_array_foreach(runs, i, run)
    {
        bool placed = series_of(run, m->name) == NULL;
        json_array_foreach(groups, k, group)
        {
            const size_t first = (size_t)json_integer_value(json_array_get(group, 0));
            if (!placed && is_alike(json_array_get(runs, first), run, m, why)) {
                json_array_append_new(group, json_integer((json_int_t)i));
                placed = true;
            }
        }
        if (!placed)
            json_array_append_new(groups, json_pack("[I]", (json_int_t)i));
    }
    return groups;
}

static json_t *reasons(unsigned why)
{
    json_t *list = json_array();
    for (int i = 0; i < WHYS; i++)
        if (why & BIT(i))
            json_array_append_new(list, json_string(why_text[i]));
    return list;
}

static double last_of(const json_t *run, const char *name)
{
    const json_t *y = json_object_get(series_of(run, name), "y");
    return json_number_value(json_array_get(y, json_array_size(y) - 1));
}

/* Append the runs of a group whose last value is below that of another one. */
static void add_lowest(json_t *lowest, const json_t *runs, const json_t *group, const char *name)
{
    double least = INFINITY, most = -INFINITY;
    size_t i;
    const json_t *at;
    json_array_foreach(group, i, at)
    {
        const double y = last_of(json_array_get(runs, (size_t)json_integer_value(at)), name);
        least = fmin(least, y);
        most = fmax(most, y);
    }
    json_array_foreach(group, i, at)
    {
        const json_t *run = json_array_get(runs, (size_t)json_integer_value(at));
        if (least < most && last_of(run, name) == least)
            json_array_append_new(lowest, json_integer(json_integer_value(at)));
    }
}

/* Return the unit of the divergence of each objective. */
static json_t *units(void)
{
    json_t *out = json_object();
    for (int i = 0; i < OBJECTIVE_CE; i++) {
        const char *unit = objectives[i].unit;
        json_object_set_new(out, objectives[i].word, json_string(*unit != '\0' ? unit : "no unit"));
    }
    return out;
}

int report_alike(json_t *data)
{
    const json_t *runs = json_object_get(data, "runs");
    json_memory_begin();
    json_t *apart = json_object(), *lowest = json_array(), *group;
    for (size_t m = 0; m < sizeof measures / sizeof *measures; m++) {
        unsigned why = 0;
        size_t k;
        json_t *groups = group_runs(runs, &measures[m], &why);
        if (strcmp(measures[m].name, "eval_ce_loss") == 0)
            json_array_foreach(groups, k, group)
            {
                add_lowest(lowest, runs, group, measures[m].name);
            }
        if (json_array_size(groups) > 1)
            json_object_set_new(apart, measures[m].name,
                                json_pack("{s:O, s:o}", "groups", groups, "why", reasons(why)));
        json_decref(groups);
    }
    json_object_set_new(data, "apart", apart);
    json_object_set_new(data, "lowest", lowest);
    json_object_set_new(data, "units", units());
    return json_memory_end() ? fail(NJ_E_NOMEM, "out of memory while comparing the runs") : 0;
}
