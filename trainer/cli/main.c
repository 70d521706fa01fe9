/* SPDX-License-Identifier: Apache-2.0
 *
 * main.c: runs a command.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "cli/commands.h"
#include "io/error.h"
#include "io/notes.h"
#include "io/unfinished.h"
#include "io/waits.h"
#include "options/options.h"
#include "options/settings.h"

/* Check the output. A write that failed earlier has emptied the buffer, so that the last one may succeed. */
static int check_output(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    return fail(NJ_E_IO, "standard output cannot be written");
}

struct function {
    enum command command;
    int (*run)(const struct settings *s);
    const char *doing; /* name of the work for wait messages; NULL: none */
};

static const struct function functions[] = {
    {CMD_DISTILL, cmd_distill, NULL},
    {CMD_TRAIN, cmd_train, NULL},
    {CMD_CACHE, cmd_cache, "starting"},
    {CMD_EVAL, cmd_eval, "evaluating"},
    {CMD_GENERATE, cmd_generate, "starting"},
    {CMD_TOKENIZE, cmd_tokenize, "encoding"},
    {CMD_MERGE, cmd_merge, "merging"},
    {CMD_EXPORT, cmd_export, "writing the model"},
    {CMD_INIT, cmd_init, "writing the model"},
    {CMD_MODELS, cmd_models, NULL},
    {CMD_PLAN, cmd_plan, "planning"},
    {CMD_DOCTOR, cmd_doctor, "measuring"},
    {CMD_REPORT, cmd_report, NULL},
    {CMD_VERSION, cmd_version, NULL},
};
_Static_assert(sizeof functions / sizeof functions[0] == COMMANDS, "each command has its function");

static int call(enum command command, const struct settings *s)
{
    const struct function *f = functions;
    while (f->command != command)
        f++;
    if (f->doing == NULL)
        return f->run(s);
    wait_begin("%s", f->doing);
    const int rc = f->run(s);
    wait_end();
    return rc;
}

static const char *command_name;

static void say_note(const char *sentence)
{
    fprintf(stderr, "nojit %s: %s\n", command_name, sentence);
}

static void say_wait(void *unused, const char *line)
{
    (void)unused;
    say_note(line);
}

static int run_command(const struct command_info *c, int argc, char **argv)
{
    struct settings s;
    command_name = c->name;
    notes_to(say_note);
    waits_to(say_wait, NULL);
    int rc = settings_parse(c, argc, argv, &s);
    if (rc == 1) {
        help_command(stdout, c);
        rc = 0;
    } else if (rc == 0) {
        options_note_idle(c, &s);
        rc = call(c->bit, &s);
    }
    for (size_t i = 0; i + 1 < s.refused_count; i++)
        fprintf(stderr, "nojit %s: %s\n", c->name, s.refused[i]);
    settings_free(&s);
    if (rc == 0)
        rc = check_output();
    if (rc != 0 && rc != NJ_INTERRUPTED)
        fprintf(stderr, "nojit %s: %s\n", c->name, fail_text());
    return fail_status(rc);
}

/* Shorten the idle time of OpenMP's threads. By default they spin for milliseconds when they run out of work, which
 * takes the processor from other programs: three times the CPU time on a machine that is shared. libgomp reads its
 * settings before main(), so this runs earlier still; the user's settings are kept. */
__attribute__((constructor(101))) static void let_idle_threads_sleep(void)
{
    if (getenv("OMP_WAIT_POLICY") == NULL)
        setenv("GOMP_SPINCOUNT", "1000", 0);
}

struct help_page {
    const char *flag;
    void (*print)(FILE *f);
};

static const struct help_page help_pages[] = {
    {"--man", help_man},
    {"--bash", complete_bash},
    {"--zsh", complete_zsh},
};

static const struct command_info *command_named(const char *word)
{
    for (const struct command_info *c = commands; c->name != NULL; c++)
        if (strcmp(word, c->name) == 0)
            return c;
    return NULL;
}

/* Command names of other programs, with the command to use here. */
static const struct {
    const char *word, *remedy;
} other_commands[] = {
    {"quantize", "`nojit export --type q4_k_m` writes a quantized GGUF file; `--teacher-dtype "
                 "q4_k` quantizes a teacher while it is read"},
    {"quantise", "`nojit export --type q4_k_m` writes a quantized GGUF file; `--teacher-dtype "
                 "q4_k` quantizes a teacher while it is read"},
    {"convert",
     "`nojit export` writes a model as a GGUF file, or with --type hf as a Hugging Face folder"},
    {"finetune",
     "`nojit train` trains on text, with --lora-r adapters alone; `nojit distill` from a teacher"},
    {"sft",
     "`nojit train` trains on text, with --lora-r adapters alone; `nojit distill` from a teacher"},
    {"benchmark", "`nojit eval --tasks` runs benchmarks"},
    {"run", "`nojit generate` continues prompts"},
};

static int refuse_command(const char *word)
{
    const char *near = command_near(word);
    for (size_t i = 0; i < sizeof other_commands / sizeof other_commands[0]; i++)
        if (strcmp(word, other_commands[i].word) == 0) {
            fprintf(stderr, "nojit: there is no command '%s'; %s\n", word,
                    other_commands[i].remedy);
            return 2;
        }
    if (near != NULL)
        fprintf(stderr, "nojit: unknown command '%s'; did you mean '%s'?\n", word, near);
    else
        fprintf(stderr, "nojit: unknown command '%s'; `nojit --help` lists the commands\n", word);
    return 2;
}

/* Print help. word: a command or a flag of help_pages; NULL: the overview. */
static int help_on(const char *word)
{
    if (word == NULL) {
        help_overview(stdout);
        return 0;
    }
    for (size_t i = 0; i < sizeof help_pages / sizeof help_pages[0]; i++)
        if (strcmp(word, help_pages[i].flag) == 0) {
            help_pages[i].print(stdout);
            return 0;
        }
    const struct command_info *c = command_named(word);
    if (c == NULL)
        return refuse_command(word);
    help_command(stdout, c);
    return 0;
}

/* Enlarge a small stack (ulimit -s), if that is allowed, for threads as well. */
static int widen_stack(void)
{
    enum { WANTED = 8 << 20, LEAST = 1 << 20 };
    struct rlimit stack;
    pthread_attr_t attr;
    if (getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur >= WANTED)
        return 0;
    stack.rlim_cur = stack.rlim_max < WANTED ? stack.rlim_max : WANTED;
    if (stack.rlim_cur < LEAST)
        return fail(NJ_E_NOMEM, "the stack may have %llu KiB (ulimit -s); %d are needed",
                    (unsigned long long)stack.rlim_cur >> 10, LEAST >> 10);
    (void)setrlimit(RLIMIT_STACK, &stack);
    if (pthread_attr_init(&attr) != 0)
        return 0;
    if (pthread_attr_setstacksize(&attr, stack.rlim_cur) == 0)
        (void)pthread_setattr_default_np(&attr);
    (void)pthread_attr_destroy(&attr);
    return 0;
}

int main(int argc, char **argv)
{
    if (widen_stack() != 0) {
        fprintf(stderr, "nojit: %s\n", fail_text());
        return fail_status(NJ_E_NOMEM);
    }
    unfinished_catch();
    if (nj_forbid_jit() != 0) {
        fprintf(stderr, "nojit: the environment cannot be set, so the JIT cannot be forbidden\n");
        return 1;
    }
    const char *word = argc > 1 ? argv[1] : "--help";
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
        const int status = help_on(argc > 2 ? argv[2] : NULL);
        if (status == 0 && check_output() != 0) {
            fprintf(stderr, "nojit: %s\n", fail_text());
            return 1;
        }
        return argc > 1 ? status : 2;
    }
    if (strcmp(word, "--version") == 0)
        word = "version";
    const struct command_info *c = command_named(word);
    return c != NULL ? run_command(c, argc - 2, argv + 2) : refuse_command(word);
}
