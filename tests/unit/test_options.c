/* SPDX-License-Identifier: Apache-2.0
 *
 * test_options.c: the option tables and their two parsers: command line and --config file.
 */
#include "net/net.h"
#include "options/options.h"
#include "unit.h"

#include <stdbool.h>

static const struct command_info *command(const char *name)
{
    for (const struct command_info *c = commands; c->name != NULL; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    fail_msg("no command %s", name);
    return NULL;
}

/* Parse words that are separated by spaces. */
static int parse(const char *name, const char *line, struct settings *s)
{
    static char copy[2048];
    char *argv[64];
    int argc = 0;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *w = strtok(copy, " "); w != NULL; w = strtok(NULL, " "))
        argv[argc++] = w;
    return settings_parse(command(name), argc, argv, s);
}

static const char *file_of(const char *text)
{
    const char *path = at("run.yaml");
    write_text(path, text);
    return path;
}

static int parse_file(const char *name, const char *text, const char *line, struct settings *s)
{
    char words[1024];
    snprintf(words, sizeof words, "--config %s %s", file_of(text), line);
    return parse(name, words, s);
}

static void a_file_of_options_sets_everything(void **state)
{
    (void)state;
    struct settings s;
    check_ok(
        parse_file("distill",
                   "# a run\nstudent: small\nteacher_model_name_or_path: 'big one'\n"
                   "data: [a.txt, b.txt]\neval-data:\n  - c.txt\nlearning_rate: 2e-3\n"
                   "steps: 12\nlr_scheduler_type: linear\njson: true\ndry-run: false\n"
                   "bf16: yes\nfp16: Off\ngradient_checkpointing: ON\nreport_to:\n- tensorboard\n",
                   "", &s),
        "file");
    assert_string_equal(s.student, "small");
    assert_string_equal(s.teacher, "big one");
    assert_int_equal(s.data.count, 2);
    assert_string_equal(s.data.path[1], "b.txt");
    assert_int_equal(s.eval_data.count, 1);
    assert_true(s.lr > 0.00199 && s.lr < 0.00201);
    assert_int_equal(s.steps, 12);
    assert_int_equal(s.lr_schedule, 1);
    assert_true(s.json && !s.dry_run);
    assert_int_equal(s.report_to, REPORT_TENSORBOARD);
    assert_int_equal(s.dtype, DTYPE_BF16);
    assert_int_equal(s.recompute, RECOMPUTE_BLOCK);
    settings_free(&s);
}

/* The command line wins wherever --config stands; its lists replace those of the file. */
static void the_command_line_wins_over_a_file(void **state)
{
    (void)state;
    struct settings s;
    char line[1024];
    const char *path = file_of("steps: 5\ndata: [a, b]\njson: true\nlr: 1\n");
    snprintf(line, sizeof line, "--steps 9 --data c --data d --json=false --config=%s", path);
    check_ok(parse("train", line, &s), "parse");
    assert_int_equal(s.steps, 9);
    assert_int_equal(s.data.count, 2);
    assert_string_equal(s.data.path[0], "c");
    assert_string_equal(s.data.path[1], "d");
    assert_false(s.json);
    assert_true(s.lr > 0.9);
    settings_free(&s);
    snprintf(line, sizeof line, "--config_file %s --lr 2", path);
    check_ok(parse("train", line, &s), "another spelling");
    assert_int_equal(s.steps, 5);
    assert_string_equal(s.data.path[1], "b");
    assert_true(s.lr > 1.9);
    settings_free(&s);
    check_ok(parse_file("train", "bf16: true\ngradient_checkpointing: true\n",
                        "--gradient_checkpointing false --fp16 false", &s),
             "a flag of the file, taken back");
    assert_int_equal(s.recompute, RECOMPUTE_NONE);
    assert_int_equal(s.dtype, DTYPE_BF16);
    settings_free(&s);
}

static void faults_of_a_file_of_options_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *said;
    } bad[] = {
        {"steps: 3\nlearning_rat: 1\n", "run.yaml:2: unknown option --learning_rat; did you mean"},
        {"lr: fast\n", "run.yaml:1: --lr fast: not a number"},
        {"steps: 3\n\nsteps: 4\n", "run.yaml:3: the option is named twice"},
        {"steps: 3\nmax_steps: 4\n",
         "run.yaml:2: the option is named twice: --steps, in line 1 too"},
        {"bf16: yes\nfp16: On\n", "run.yaml:2: the option is named twice: --dtype, in line 1"},
        {"steps: 010\n", "run.yaml:1: a number begins with 0"},
        {"<<: {lr: 1}\n", "run.yaml:1: merge keys"},
        {"log: !include a\n", "run.yaml:1: tags (!include"},
        {"data: !include [a]\n", "run.yaml:1: tags (!include"},
        {"data:\n\t- a\n", "run.yaml:2: not YAML: found character that cannot start any token; "
                           "indent by spaces"},
        {"learning_rate: fast\n", "run.yaml:1: --learning_rate fast: not a number"},
        {"lr: [1, 2]\n", "run.yaml:1: this option takes one value"},
        {"lr: {peak: 1}\n", "run.yaml:1: a value is expected"},
        {"data: [[a]]\n", "run.yaml:1: a value is expected"},
        {"lr:\n", "run.yaml:1: the value is missing"},
        {"- lr\n", "run.yaml:1: lines of `name: value`"},
        {"config: other.yaml\n", "run.yaml:1: a file of options cannot name another"},
        {"json: maybe\n", "run.yaml:1: --json maybe: a flag"},
        {"steps: 3\nlr: \"1\n", "not YAML"},
        {"load_in_4bit: true\n", "run.yaml:1: --load_in_4bit: --teacher-dtype q4_k keeps"},
        {"temperature: 2\n", "run.yaml:1: no option --temperature here; it "
                             "belongs to `nojit distill`, `nojit generate`, `nojit plan`"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct settings s;
        check_refused(parse_file("train", bad[i].text, "", &s), NJ_E_ARG, bad[i].said, bad[i].text);
        settings_free(&s);
    }
    struct settings s;
    check_refused(parse("train", "--config /nowhere/run.yaml", &s), NJ_E_ARG, "/nowhere/run.yaml",
                  "missing file");
    settings_free(&s);
    check_ok(parse_file("train", "", "", &s), "an empty file");
    settings_free(&s);
}

static void options_have_other_spellings(void **state)
{
    (void)state;
    struct settings s;
    check_ok(parse("distill",
                   "--model_name_or_path m --teacher_model t --train_file d --max_seq_length 77 "
                   "--lr_scheduler_type constant_with_warmup --bf16 True --num_warmup_steps 3 "
                   "--gradient_clipping 2 --no_cuda --warmup_fraction 0.25",
                   &s),
             "parse");
    assert_string_equal(s.student, "m");
    assert_string_equal(s.teacher, "t");
    assert_string_equal(s.data.path[0], "d");
    assert_int_equal(s.seq_len, 77);
    assert_int_equal(s.lr_schedule, 2);
    assert_int_equal(s.dtype, DTYPE_BF16);
    assert_int_equal(s.warmup_steps, 3);
    assert_int_equal(s.device, NJ_DEVICE_CPU);
    assert_true(s.max_grad_norm > 1.99 && s.warmup_ratio > 0.24);
    settings_free(&s);
    check_ok(parse("eval", "--model_name_or_path m", &s), "eval");
    assert_string_equal(s.student, "m");
    settings_free(&s);
    check_ok(parse("train", "--gradient_checkpointing True --resume_from_checkpoint True", &s),
             "flags of others");
    assert_int_equal(s.recompute, RECOMPUTE_BLOCK);
    assert_string_equal(s.resume, "auto");
    settings_free(&s);
    check_ok(parse("train", "--gradient_checkpointing false --resume mine", &s), "not set");
    assert_int_equal(s.recompute, RECOMPUTE_NONE);
    assert_string_equal(s.resume, "mine");
    settings_free(&s);
    check_refused(parse("train", "--load_in_4bit", &s), NJ_E_ARG,
                  "--teacher-dtype q4_k keeps a teacher in 4 bits", "an option of others");
    settings_free(&s);
    check_refused(parse("train", "--bf16=perhaps", &s), NJ_E_ARG, "true or false", "no truth");
    settings_free(&s);
}

/* Settings of other trainers that ask for the default behaviour are accepted; all others are refused with an answer. */
static void settings_of_other_trainers_are_answered(void **state)
{
    (void)state;
    static const char same[] =
        "save_strategy: \"no\"\neval_strategy: steps\noptim: adamw_torch_fused\n"
        "ddp_backend: nccl\nfsdp: null\ndeepspeed:\ndataloader_num_workers: "
        "4\nlabel_smoothing_factor: 0\n"
        "gradient_checkpointing_kwargs: {use_reentrant: false}\npush_to_hub: False\nlocal_rank: "
        "-1\n"
        "warmup_steps: 0.25\nmax_steps: -1\n";
    struct settings s;
    check_ok(parse_file("distill", same,
                        "--optim=adamw_torch --save_strategy no --do_train --tf32 false", &s),
             "what is done anyway");
    assert_int_equal(s.warmup_steps, 0);
    assert_int_equal(s.steps, 0);
    assert_true(s.warmup_ratio > 0.24 && s.warmup_ratio < 0.26);
    settings_free(&s);
    check_ok(parse("distill", "--warmup_ratio 0.5 --warmup_steps 0.25 --warmup_steps 7", &s),
             "steps");
    assert_int_equal(s.warmup_steps, 7);
    settings_free(&s);
    check_refused(
        parse_file(
            "distill",
            "save_strategy: epoch\nlr: fast\nsteps: 3\ntf32: true\ntf32: false\noptim: {a: 1}\n",
            "--push_to_hub --stpes 1 2 --beta 2 --seed 5", &s),
        NJ_E_ARG, "--beta 2: must lie between 0 and 1", "the last of all");
    static const char *const said[] = {"run.yaml:1: --save_strategy: --save-every",
                                       "run.yaml:2: --lr fast: not a number",
                                       "run.yaml:4: --tf32: ",
                                       "run.yaml:5: the option is named twice",
                                       "run.yaml:6: --optim: AdamW",
                                       "--push_to_hub: nothing is sent",
                                       "did you mean --steps?",
                                       "--beta 2: must lie"};
    assert_int_equal(s.refused_count, sizeof said / sizeof *said);
    for (size_t i = 0; i < s.refused_count; i++)
        assert_non_null(strstr(s.refused[i], said[i]));
    assert_int_equal(s.steps, 3);
    assert_int_equal(s.seed, 5);
    settings_free(&s);
}

/* A message names the option as typed; an option of another command leads to that command. */
static void messages_of_options_name_option_and_value(void **state)
{
    (void)state;
    static const struct {
        const char *command, *line, *said;
    } bad[] = {
        {"train", "--learning_rate abc", "--learning_rate abc: not a number"},
        {"train", "--learning_rate", "--learning_rate needs a value"},
        {"train", "--max-steps=1.5", "--max-steps 1.5: not a whole number"},
        {"train", "--per_device_train_batch_size 0", "--per_device_train_batch_size 0: must lie"},
        {"train", "--lr_scheduler_type step", "--lr_scheduler_type step: must be one of cosine"},
        {"train", "--bf16=maybe", "--bf16 maybe: a flag"},
        {"train", "--teacher x",
         "no option --teacher here; it belongs to `nojit distill`, `nojit cache`, `nojit eval`"},
        {"train", "--teacher_model x",
         "no option --teacher_model here; it belongs to `nojit distill`"},
        {"init", "--steps 1", "no option --steps here; it belongs to `nojit distill`"},
        {"merge", "--student x", "no option --student here; it belongs to `nojit distill`"},
        {"doctor", "--max_new_tokens 1",
         "it belongs to `nojit distill`, `nojit eval`, `nojit generate`"},
        {"train", "--tempratur 1", "unknown option --tempratur"},
        {"train", "--stpes 1", "did you mean --steps?"},
        {"train", "--ddp 1", "unknown option --ddp; see `nojit train --help`"},
        {"train", "--max_steps -2", "--max_steps -2: must be 0 or more"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct settings s;
        check_refused(parse(bad[i].command, bad[i].line, &s), NJ_E_ARG, bad[i].said, bad[i].line);
        settings_free(&s);
    }
}

static void words_beside_options_are_kept(void **state)
{
    (void)state;
    struct settings s;
    check_ok(parse("report", "a --out page.html b", &s), "report");
    assert_int_equal(s.words.count, 2);
    assert_string_equal(s.words.path[1], "b");
    assert_string_equal(s.out, "page.html");
    settings_free(&s);
    check_refused(parse("train", "a", &s), NJ_E_ARG, "unexpected argument 'a'", "train");
    settings_free(&s);
    assert_int_equal(parse("train", "a --help", &s), 1);
    settings_free(&s);
    check_ok(parse("generate", "--prompt -h", &s), "a value may start with one dash");
    assert_string_equal(s.prompt, "-h");
    settings_free(&s);
}

static void see_data(void *user, const struct setting *s)
{
    if (strcmp(s->name, "data") == 0)
        *(struct setting *)user = *s;
}

/* A shell may expand a pattern to many words; all of them are read. */
static void long_lists_of_values_are_read(void **state)
{
    (void)state;
    static char words[1000][16];
    static char *argv[1 + 1000] = {"--data"};
    struct setting seen = {0};
    struct settings s;
    for (int i = 0; i < 1000; i++) {
        snprintf(words[i], sizeof words[i], "text/%04d.txt", i);
        argv[1 + i] = words[i];
    }
    check_ok(settings_parse(command("train"), 1001, argv, &s), "a thousand files");
    settings_visit(command("train"), &s, see_data, &seen);
    assert_true(seen.list);
    assert_int_equal(seen.count, 1000);
    assert_string_equal(seen.value[999], "text/0999.txt");
    settings_free(&s);
}

/* Every row of the tables of spellings can be reached, and names an existing option. */
static void tables_of_options_agree(void **state)
{
    (void)state;
    for (const struct option_alias *a = option_aliases; a->word != NULL; a++) {
        bool found = false;
        for (const struct command_info *c = commands; c->name != NULL; c++) {
            struct option_match m;
            found = found || (option_match(c, a->word, strlen(a->word), &m) == 0 &&
                              strcmp(m.o->name, a->name) == 0);
        }
        if (!found)
            fail_msg("--%s does not lead to --%s", a->word, a->name);
        assert_null(strchr(a->word, '_'));
    }
    for (const struct option_foreign *f = options_foreign; f->word != NULL; f++)
        for (const struct command_info *c = commands; c->name != NULL; c++) {
            struct option_match m;
            check_refused(option_match(c, f->word, strlen(f->word), &m), NJ_E_ARG, f->remedy,
                          f->word);
        }
}

struct text {
    char bytes[8192];
    size_t used;
};

static void add_setting(void *user, const struct setting *s)
{
    struct text *t = user;
    for (size_t i = 0; i < s->count; i++)
        t->used += (size_t)snprintf(t->bytes + t->used, sizeof t->bytes - t->used, "%s = %s\n",
                                    s->name, s->value[i]);
    assert_true(t->used < sizeof t->bytes);
}

/* Return the settings of a command after --word and a value, or after --word alone. */
static void settings_after(const struct command_info *c, const char *word, const char *value,
                           struct text *out)
{
    struct settings s;
    char line[700];
    snprintf(line, sizeof line, "%s%s %s", *word ? "--" : "", word, value);
    check_ok(parse(c->name, line, &s), line);
    *out = (struct text){0};
    settings_visit(c, &s, add_setting, out);
    settings_free(&s);
}

/* Return a value that is no option's default. */
static const char *another_value(const struct option *o, char *buffer, size_t bytes)
{
    const char *last = o->kind == OPT_CHOICE ? strrchr(o->value_name, '|') : NULL;
    if (o->offset == offsetof(struct settings, config))
        return file_of("");
    if (o->kind == OPT_FLAG)
        return "";
    if (o->kind == OPT_INT)
        snprintf(buffer, bytes, "%.0f", o->min > 7 ? o->min : 7);
    else
        snprintf(buffer, bytes, "%s", o->kind == OPT_REAL ? "0.25" : last ? last + 1 : "x");
    return buffer;
}

/* Check that `word` sets what `name` sets, to the value that follows it or to the value it stands for. */
static int sets_the_same(const struct command_info *c, const char *word, const char *name,
                         const char *value)
{
    struct text by_word, by_name, initial;
    struct option_match m;
    char buffer[64];
    if (option_match(c, word, strlen(word), &m) != 0 || strcmp(m.o->name, name) != 0)
        return 0;
    const char *given = value ? value : another_value(m.o, buffer, sizeof buffer);
    settings_after(c, word, value ? "" : given, &by_word);
    settings_after(c, name, given, &by_name);
    settings_after(c, "", "", &initial);
    assert_string_equal(by_word.bytes, by_name.bytes);
    if (strcmp(by_name.bytes, initial.bytes) == 0)
        fail_msg("--%s %s changes nothing", name, given);
    return 1;
}

static void every_spelling_sets_its_option(void **state)
{
    (void)state;
    int pairs = 0;
    for (const struct command_info *c = commands; c->name != NULL; c++) {
        for (const struct option *o = options; o->name != NULL; o++)
            if (o->alias != NULL)
                pairs += sets_the_same(c, o->alias, o->name, NULL);
        for (const struct option_alias *a = option_aliases; a->word != NULL; a++)
            pairs += sets_the_same(c, a->word, a->name, a->value);
    }
    assert_true(pairs > 200);
    for (const struct option_alias *a = choice_aliases; a->word != NULL; a++) {
        struct text theirs, ours;
        struct option_match m;
        const struct command_info *c = command("distill");
        if (option_match(c, a->name, strlen(a->name), &m) != 0)
            c = command("init");
        settings_after(c, a->name, a->word, &theirs);
        settings_after(c, a->name, a->value, &ours);
        assert_string_equal(theirs.bytes, ours.bytes);
    }
}

/* A new option of a run must state its effect on a resumed run. */
static void every_option_says_how_a_run_resumes(void **state)
{
    (void)state;
    for (const struct option *o = options; o->name != NULL; o++) {
        const bool learns = o->commands & (CMD_DISTILL | CMD_TRAIN);
        if (learns != (o->resume != RESUME_UNSAID))
            fail_msg("--%s: %s .resume", o->name, learns ? "lacks" : "no run goes on with its");
        if (o->resume == RESUME_SAID && o->applied.type == ENGINE_NONE)
            fail_msg("--%s: lacks .applied", o->name);
    }
}

/* Return the text of a command line that ranks compare; the caller frees it. */
static char *compared(const char *name, const char *line)
{
    struct settings s;
    check_ok(parse(name, line, &s), line);
    char *text = options_of_ranks(name, &s);
    assert_non_null(text);
    settings_free(&s);
    return text;
}

static bool is_free(const char *name)
{
    static const char *const free_ones[] = {"out", "log", "config", "json", "verbose"};
    for (size_t i = 0; i < sizeof free_ones / sizeof *free_ones; i++)
        if (strcmp(name, free_ones[i]) == 0)
            return true;
    return false;
}

/* A new option of a run is compared, unless the list above names it. */
static void ranks_compare_every_option(void **state)
{
    const struct command_info *const both[] = {command("distill"), command("train")};
    (void)state;
    for (int i = 0; i < 2; i++)
        for (const struct option *o = options; o->name != NULL; o++) {
            char line[128], value[64];
            if (!(o->commands & both[i]->bit))
                continue;
            snprintf(line, sizeof line, "--%s %s", o->name, another_value(o, value, sizeof value));
            char *initial = compared(both[i]->name, ""), *other = compared(both[i]->name, line);
            if ((strcmp(initial, other) == 0) != is_free(o->name))
                fail_msg("%s is %scompared", line, is_free(o->name) ? "" : "not ");
            free(initial);
            free(other);
        }
}

/* The digits of a value are not cut, and only files are counted. */
static void ranks_compare_values_whole(void **state)
{
    char *one = compared("train", "--lr 0.1 --data a.txt b.txt --export q8_0 --student here");
    char *two = compared("train", "--lr 0.10000000000000002 --data c.txt d.txt --export q8_0 "
                                  "--student there");
    (void)state;
    assert_non_null(strstr(one, "\nlr 0.1\n"));
    assert_non_null(strstr(two, "\nlr 0.10000000000000002\n"));
    assert_non_null(strstr(one, "\ndata of 2 paths\n"));
    assert_non_null(strstr(one, "\nstudent of 1 path\n"));
    assert_non_null(strstr(one, "\nexport q8_0\n"));
    assert_memory_equal(one, "command train\n", 14);
    char *lr = strstr(two, "0.10000000000000002");
    memmove(lr + 3, lr + 19, strlen(lr + 19) + 1);
    assert_string_equal(one, two);
    free(one);
    free(two);
}

/* Compare the values of all options that the engine uses with the settings. */
static void check_applied(const struct command_info *c, const struct settings *s, const char *line)
{
    struct train_options t = {0};
    char given[64], had[64];
    options_apply(s, &t);
    for (const struct option *o = options; o->name != NULL; o++) {
        if (!(o->commands & c->bit) || o->applied.type == ENGINE_NONE)
            continue;
        const char *want = option_text(o, s, NULL, 7, given, sizeof given);
        const char *got = option_text(o, s, &t, 7, had, sizeof had);
        if (strcmp(want, got) != 0)
            fail_msg("%s: --%s is %s, and the engine has %s", line, o->name, want, got);
    }
}

/* Return the number of such options of the command. */
static int engine_has_values(const struct command_info *c)
{
    int seen = 0;
    for (const struct option *o = options; o->name != NULL; o++) {
        struct settings s;
        char line[128], value[64];
        if (!(o->commands & c->bit) || o->applied.type == ENGINE_NONE)
            continue;
        snprintf(line, sizeof line, "--%s %s", o->name, another_value(o, value, sizeof value));
        check_ok(parse(c->name, line, &s), line);
        check_applied(c, &s, line);
        settings_free(&s);
        seen++;
    }
    return seen;
}

static void the_engine_has_every_value(void **state)
{
    (void)state;
    int seen = 0;
    for (const struct command_info *c = commands; c->name != NULL; c++)
        seen += engine_has_values(c);
    assert_true(seen > 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_of_options_sets_everything),
        cmocka_unit_test(the_command_line_wins_over_a_file),
        cmocka_unit_test(faults_of_a_file_of_options_are_named),
        cmocka_unit_test(options_have_other_spellings),
        cmocka_unit_test(settings_of_other_trainers_are_answered),
        cmocka_unit_test(messages_of_options_name_option_and_value),
        cmocka_unit_test(words_beside_options_are_kept),
        cmocka_unit_test(long_lists_of_values_are_read),
        cmocka_unit_test(tables_of_options_agree),
        cmocka_unit_test(every_spelling_sets_its_option),
        cmocka_unit_test(every_option_says_how_a_run_resumes),
        cmocka_unit_test(the_engine_has_every_value),
        cmocka_unit_test(ranks_compare_every_option),
        cmocka_unit_test(ranks_compare_values_whole),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
