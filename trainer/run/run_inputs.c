/* SPDX-License-Identifier: Apache-2.0
 *
 * run_inputs.c: what a run reads: the tokenizers of a pair, and data with its weights.
 */
#include "run/run_inputs.h"

#include <stdlib.h>
#include <string.h>

#include "base/plural.h"
#include "batch/dealt.h"
#include "io/error.h"
#include "io/waits.h"
#include "model/model_open.h"

/* Limit on the number of sources, whose weights are compared as text when a run resumes. */
enum { SOURCES_MOST = 256 };

/* Refuse a pair of models of which one has a tokenizer and the other has none, and so reads bytes. */
static int refuse_bytes(const struct tokenizer *without, const char *whose,
                        const struct tokenizer *with, const char *other)
{
    const bool folder = source_is_folder(without->dir);
    return fail(NJ_E_UNSUPPORTED,
                "%s: the %s has no %s and so reads bytes, while the %s has a tokenizer of %d "
                "tokens; %s, if both models were made with it",
                without->dir, whose, folder ? "tokenizer.json" : "tokenizer in its metadata", other,
                with->vocab_size,
                folder ? "copy tokenizer.json and its side files into that folder"
                       : "convert that model again beside its tokenizer.json");
}

/* Write a sentence about the first token that differs. */
static int refuse_token(const struct tokenizer *student, const struct tokenizer *teacher,
                        int32_t id)
{
    size_t bytes[2];
    bool special;
    if (!student->bpe && teacher->bpe)
        return refuse_bytes(student, "student", teacher, "teacher");
    if (student->bpe && !teacher->bpe)
        return refuse_bytes(teacher, "teacher", student, "student");
    const char *own = tokenizer_token(student, id, &bytes[0], &special);
    const char *other = tokenizer_token(teacher, id, &bytes[1], &special);
    return fail(
        NJ_E_UNSUPPORTED,
        "token %d is '%.*s' for the student and '%.*s' for the teacher; use two models with "
        "one tokenizer",
        (int)id, (int)bytes[0], own ? own : "", (int)bytes[1], other ? other : "");
}

/* Compare the tokenizers. If one table continues with added tokens, these are left out. */
static int compare_tokenizers(struct run *r, const struct tokenizer *teacher)
{
    const struct tokenizer *student = &r->tokenizer;
    int common;
    const int32_t id = tokenizer_difference(student, teacher, &common);
    if (id >= 0)
        return refuse_token(student, teacher, id);
    if (common == 0)
        progress_say(&r->progress, "the tokens of the two models are not compared: %s",
                     teacher->vocab_size == 0 ? teacher->refusal : student->refusal);
    if (common == 0 || student->vocab_size == teacher->vocab_size)
        return 0;
    r->vocab = common < r->vocab ? common : r->vocab;
    progress_say(
        &r->progress,
        "the tokenizers have %d (student) and %d (teacher) tokens, the further ones added; "
        "both models are restricted to the first %d",
        student->vocab_size, teacher->vocab_size, r->vocab);
    return 0;
}

int run_open_tokenizer(struct run *r)
{
    struct model_config student, teacher;
    struct tokenizer other;
    const enum tokenizer_choice choice = (enum tokenizer_choice)r->s->tokenizer;
    int rc = source_config(r->student, &student);
    if (rc == 0)
        rc = tokenizer_open_as(r->student, choice, &r->tokenizer);
    if (rc != 0)
        return rc;
    r->vocab = student.vocab_size;
    if (r->teacher[0] == '\0')
        return 0;
    rc = source_config(r->teacher, &teacher);
    if (rc == 0)
        rc = tokenizer_open_as(r->teacher, choice, &other);
    if (rc != 0)
        return rc;
    r->vocab = config_common_vocab(&student, &teacher);
    rc = compare_tokenizers(r, &other);
    tokenizer_close(&other);
    return rc;
}

/* Append the numbers of one word, which commas may separate. */
static int add_weights(const char *word, double *weights, size_t most, size_t *count)
{
    for (const char *at = word;; at++) {
        char *end;
        const double x = strtod(at, &end);
        if (end == at || (*end != ',' && *end != '\0') || !(x >= 0 && x <= 1e9))
            return fail(NJ_E_ARG,
                        "--data-weights %s: '%.*s' is not a number between 0 and 1e9; give one for "
                        "each --data",
                        word, (int)strcspn(at, ","), at);
        if (*count < most)
            weights[*count] = x;
        ++*count;
        at = end;
        if (*at == '\0')
            return 0;
    }
}

/* Read --data-weights; *out stays NULL without it. */
static int read_weights(const struct settings *s, double **out)
{
    size_t count = 0;
    int rc = 0;
    *out = NULL;
    if (s->data_weights.count == 0)
        return 0;
    if (s->data.count > SOURCES_MOST)
        return fail(NJ_E_ARG,
                    "--data-weights: %zu paths of --data, at most %d can have weights; put "
                    "them into folders",
                    s->data.count, SOURCES_MOST);
    *out = calloc(s->data.count, sizeof **out);
    if (*out == NULL)
        return fail(NJ_E_NOMEM, "out of memory for %zu sources", s->data.count);
    for (size_t i = 0; i < s->data_weights.count && rc == 0; i++)
        rc = add_weights(s->data_weights.path[i], *out, s->data.count, &count);
    if (rc == 0 && count != s->data.count)
        rc = fail(NJ_E_ARG,
                  "--data-weights: %zu for %zu paths of --data; give each path one, and quote a "
                  "pattern that is to be one source",
                  count, s->data.count);
    return rc;
}

int run_check_output(const struct settings *s)
{
    const struct path_list *data = &s->data, *held = &s->eval_data, *prompts = &s->prompts;
    if (s->out == NULL)
        return 0;
    TRY(data_check_output(data->path, data->count, "--data", s->out));
    TRY(data_check_output(held->path, held->count, "--eval-data", s->out));
    return data_check_output(prompts->path, prompts->count, "--prompts", s->out);
}

struct row_rules run_row_rules(const struct settings *s)
{
    return (struct row_rules){s->fields.path, s->fields.count, s->train_on_prompts,
                              s->skip_unusable};
}

/* Return which split of a folder these paths take. */
static struct split_choice split_of(const struct settings *s, const struct path_list *paths,
                                    bool once)
{
    if (paths == &s->eval_data)
        return (struct split_choice){SPLIT_VALIDATION, SPLIT_TEST};
    if (s->split != SPLIT_AUTO || once)
        return (struct split_choice){(enum data_split)s->split, SPLIT_AUTO};
    return (struct split_choice){SPLIT_TRAIN, SPLIT_AUTO};
}

/* Open the files on the ranks that read, and give all ranks the batches. */
static int open_files(struct run *r, const struct data_options *o, struct data **data,
                      struct batch_source **batches)
{
    int rc = 0;
    wait_begin("reading %s%s", o->paths[0], o->path_count > 1 ? " and others" : "");
    if (run_reads(r))
        rc = data_open(o, &r->tokenizer, data);
    if (rc == 0 && run_reads(r))
        *batches = data_batches(*data);
    if (rc == 0)
        rc = r->s->every_rank_reads ? batches_read_alike(batches, r->group)
                                    : batches_deal(batches, data, o, r->group);
    wait_end();
    if (rc == 0)
        progress_data(&r->progress, data_passed_over(*data), data_row_notes(*data));
    return rc;
}

static int open_none(struct run *r, struct data **data, struct batch_source **batches)
{
    const int rc = data_none(r->options.seq_len, data);
    *batches = rc != 0 ? NULL : data_batches(*data);
    return rc;
}

int run_open_data(struct run *r, const struct path_list *paths, bool once, struct data **data,
                  struct batch_source **batches)
{
    double *weights = NULL;
    int rc = once ? 0 : read_weights(r->s, &weights);
    const struct data_options options = {
        .paths = paths->path,
        .path_count = paths->count,
        .weights = weights,
        .packing = once ? PACKING_AUTO : (enum packing)r->s->packing,
        .overlong = once ? OVERLONG_AUTO : (enum overlong)r->s->overlong,
        .rules = run_row_rules(r->s),
        .split = split_of(r->s, paths, once),
        .seq_len = r->options.seq_len,
        .batch_size = r->options.batch_size,
        .vocab_size = r->vocab,
        .seed = once ? 0 : (uint64_t)r->s->seed,
        .once = once,
    };
    if (rc == 0)
        rc =
            paths->count > 0 ? open_files(r, &options, data, batches) : open_none(r, data, batches);
    free(weights);
    return rc;
}

int run_find_turn_end(struct run *r)
{
    struct checkpoints *c = &r->checkpoints;
    const struct prompts *p = r->rollouts.prompts;
    struct generation said;
    int32_t id = -1;
    size_t bytes;
    bool special;
    if (!group_leads(r->group) || !(data_chats(r->data) || (p != NULL && prompts_chats(p))))
        return 0;
    int rc = chat_turn_end(&r->tokenizer, &id);
    if (rc != 0 || id < 0 || id >= r->vocab)
        return rc;
    generation_add(&r->ends, id); /* answers and samples of the student end at this token, too */
    rc = generation_said(r->student, INT32_MAX, &said);
    if (rc != 0 || generation_stops(&said, id))
        return rc;
    c->learned_end = true;
    c->turn_end = id;
    c->student = r->student;
    const char *text = tokenizer_token(&r->tokenizer, id, &bytes, &special);
    progress_say(&r->progress,
                 "the assistant's turns end with %.*s (token %d), which joins eos_token_id of the "
                 "saved model",
                 (int)bytes, text, (int)id);
    return 0;
}

/* Print the number of epochs if rounding up makes the steps more than was asked for. */
static void say_epochs(struct run *r)
{
    const double rows = (double)data_windows(r->data);
    const double per_step = (double)r->options.batch_size * r->options.grad_accum;
    const double epochs = (double)r->options.steps * per_step / rows;
    if (r->s->steps == 0 && r->s->on_policy < 1 && epochs > 1.05 * r->s->epochs)
        progress_say(
            &r->progress,
            "a step takes %.0f sequences and an epoch has %.0f, so %lld step%s make%s %.3g "
            "epochs where --epochs is %.3g",
            per_step, rows, (long long)r->options.steps, plural(r->options.steps),
            r->options.steps == 1 ? "s" : "", epochs, r->s->epochs);
}

void run_say_data(struct run *r)
{
    const double rows = (double)data_windows(r->data);
    char packing[32], text[512];
    struct data_source s;
    if (r->s->data.count == 0)
        return;
    for (size_t i = 0; i < data_sources(r->data); i++) {
        data_source(r->data, i, &s);
        progress_say(&r->progress,
                     "source %s: %lld tokens; %lld of %.0f sequences per epoch (%.2f %%)", s.name,
                     (long long)s.tokens, (long long)s.draws, rows, 100 * (double)s.draws / rows);
    }
    if (data_packing(r->data) != PACKING_WRAPPED)
        progress_say(&r->progress,
                     "packing %s: %.0f sequences of %d tokens per epoch, %.2f %% padding",
                     settings_choice("packing", data_packing(r->data), packing, sizeof packing),
                     rows, r->options.seq_len, 100 * data_padding(r->data));
    if (data_overlong_text(r->data, text, sizeof text) != NULL)
        progress_say(&r->progress, "%s", text);
    say_epochs(r);
}
