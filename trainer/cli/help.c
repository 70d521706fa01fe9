/* SPDX-License-Identifier: Apache-2.0
 *
 * help.c: --help and the man page, from the option table.
 */
#include "cli/commands.h"

#include <string.h>

#include "options/options.h"
#include "options/settings.h"

static const char about[] =
    "distils language models with every kernel compiled before the program starts";
static const char statuses[] =
    "0 success; 1 failed; 2 usage; 3 not enough memory; 4 no kernel for this device; "
    "5 a run that has diverged; 130 interrupted, after a checkpoint";

void help_overview(FILE *f)
{
    fprintf(f, "nojit %s: %s\n\nusage: nojit COMMAND [OPTION...]\n\n", NOJIT_VERSION, about);
    for (const struct command_info *c = commands; c->name != NULL; c++)
        fprintf(f, "  %-10s %s\n", c->name, c->summary);
    fprintf(f,
            "\n`nojit help COMMAND` or `nojit COMMAND --help` lists the options of a command.\n"
            "`nojit help --man`, `--bash` and `--zsh` print the man page and completion scripts.\n"
            "Exit status: %s.\n",
            statuses);
}

enum { HELP_INDENT = 30, HELP_COLUMNS = 100 };

/* Print text from column HELP_INDENT on, broken between words. */
static void print_wrapped(FILE *f, const char *text)
{
    size_t column = HELP_INDENT;
    while (*text != '\0') {
        const size_t n = strcspn(text, " ");
        if (column > HELP_INDENT && column + 1 + n > HELP_COLUMNS) {
            fprintf(f, "\n%*s", HELP_INDENT, "");
            column = HELP_INDENT;
        } else if (column > HELP_INDENT) {
            fputc(' ', f);
            column++;
        }
        fprintf(f, "%.*s", (int)n, text);
        column += n;
        text += n + strspn(text + n, " ");
    }
    fputc('\n', f);
}

static bool has_default(const struct option *o)
{
    return o->initial != NULL && o->initial[0] != '\0';
}

static void print_option(FILE *f, const struct option *o)
{
    char left[96], right[512];
    const bool initial = has_default(o);
    snprintf(left, sizeof left, "  --%s%s%s", o->name, o->value_name ? " " : "",
             o->value_name ? o->value_name : "");
    if (strlen(left) > HELP_INDENT - 2)
        fprintf(f, "%s\n%*s", left, HELP_INDENT, "");
    else
        fprintf(f, "%-*s", HELP_INDENT, left);
    snprintf(right, sizeof right, "%s%s%s%s", o->help, initial ? " [" : "",
             initial ? o->initial : "", initial ? "]" : "");
    print_wrapped(f, right);
}

/* Utilization, as engine_flops() and mfu_ideal() count it. */
static const char utilisation[] =
    "MFU: ((student_flops + teacher_flops) / P + (student_fp8_flops + teacher_f8_flops) / P8) / "
    "seconds\n"
    "of the step.\n"
    "For N tokens per step in sequences of S, a forward pass takes\n"
    "  2 N W                  W: parameters; the embedding table counts once, as the LM head\n"
    "  2 N L H D (S + 1)      attention: L layers, H query heads of D, on average (S + 1)/2 keys\n"
    "FLOPs. Student: 3x the forward FLOPs (1x forward, 2x backward); with adapters of A\n"
    "parameters 2x the first term, 3x the second, and 6 N A. Teacher: 1x. The part of the first\n"
    "term that runs in FP8 GEMMs counts in *_f8_flops. Recomputation does not count. P: the\n"
    "GPU's dense peak in 16 bits by its data sheet (H100, H200: 989e12), P8: in FP8 (1979e12);\n"
    "without a known peak there is no MFU. receipt.json has the FLOPs.\n";

/* Print the notes about defaults and spellings, if the command has any. */
static void print_notes(FILE *f, const struct command_info *c)
{
    const char *alias = NULL;
    bool defaults = false;
    for (const struct option *o = options; o->name != NULL; o++) {
        if (!(o->commands & c->bit))
            continue;
        defaults |= has_default(o);
        alias = alias == NULL ? o->alias : alias;
    }
    if (defaults || alias != NULL)
        fputc('\n', f);
    if (defaults)
        fputs("Defaults are in brackets.\n", f);
    if (alias != NULL)
        fprintf(f, "Hugging Face spellings (--%s, ...) work too, with - or _.\n", alias);
}

void help_command(FILE *f, const struct command_info *c)
{
    fprintf(f, "usage: nojit %s %s\n\n%s.\n", c->name, c->usage, c->summary);
    if (c->words != NULL)
        fprintf(f, "%s.\n", c->words);
    const char *group = NULL;
    for (const struct option *o = options; o->name != NULL; o++) {
        if (!(o->commands & c->bit))
            continue;
        if (o->group != group)
            fprintf(f, "\n%s:\n", o->group);
        group = o->group;
        print_option(f, o);
    }
    if (c->bit & (CMD_DISTILL | CMD_TRAIN))
        fprintf(f, "\n%s", utilisation);
    print_notes(f, c);
}

/* Print text for the man page, with dashes escaped, so that they can be copied from it. */
static void man_text(FILE *f, const char *s)
{
    for (; *s != '\0'; s++) {
        if (*s == '-')
            fputs("\\-", f);
        else if (*s == '\\')
            fputs("\\e", f);
        else
            fputc(*s, f);
    }
}

static void man_option(FILE *f, const struct option *o)
{
    fprintf(f, ".TP\n.B \\-\\-");
    man_text(f, o->name);
    if (o->value_name != NULL) {
        fputs(" \\fI", f);
        man_text(f, o->value_name);
        fputs("\\fR", f);
    }
    fputc('\n', f);
    man_text(f, o->help);
    if (has_default(o)) {
        fputs(" (default ", f);
        man_text(f, o->initial);
        fputc(')', f);
    }
    if (o->alias != NULL) {
        fputs(". Also \\-\\-", f);
        man_text(f, o->alias);
    }
    fputc('\n', f);
}

void help_man(FILE *f)
{
    fprintf(f, ".TH NOJIT 1 \"\" \"nojit %s\" \"User Commands\"\n.SH NAME\nnojit \\- %s\n",
            NOJIT_VERSION, about);
    fputs(".SH SYNOPSIS\n.B nojit\n.I COMMAND\n[\\fIOPTION\\fR...]\n", f);
    for (const struct command_info *c = commands; c->name != NULL; c++) {
        fprintf(f, ".SH NOJIT %s\n.B nojit %s\n", c->name, c->name);
        man_text(f, c->usage);
        fputs("\n.PP\n", f);
        man_text(f, c->summary);
        fputs(".\n", f);
        if (c->words != NULL) {
            fputs(".PP\n", f);
            man_text(f, c->words);
            fputs(".\n", f);
        }
        for (const struct option *o = options; o->name != NULL; o++)
            if (o->commands & c->bit)
                man_option(f, o);
        if (c->bit & (CMD_DISTILL | CMD_TRAIN)) {
            fputs(".PP\n.nf\n", f);
            man_text(f, utilisation);
            fputs(".fi\n", f);
        }
    }
    fputs(".SH EXIT STATUS\n", f);
    man_text(f, statuses);
    fputs("\n.SH ENVIRONMENT\n.TP\n.B NOJIT_CUBLASLT\npath of libcublasLt.so.13\n"
          ".TP\n.B NOJIT_NCCL\npath of libnccl.so.2, which several GPUs need\n"
          ".TP\n.B NOJIT_CONNECT_TIMEOUT\nseconds that the ranks of a run have to connect "
          "(600)\n"
          ".TP\n.B NOJIT_WAIT_SECONDS\nseconds of silence after which a command prints what it is "
          "doing (4); "
          "0: never\n"
          ".TP\n.B NOJIT_SILENCE_TIMEOUT\nseconds without a sign of life after which a rank counts "
          "as "
          "gone "
          "(60)\n"
          ".TP\n.B NOJIT_SECRET\nunder a launcher: a secret of 16 characters or more that "
          "only the ranks of a run know\n"
          ".TP\n.B NOJIT_MEMORY\ndevice or managed: the kind of device memory\n"
          ".TP\n.B NOJIT_GRAPH\n0: no CUDA graphs; results are bitwise identical\n"
          ".TP\n.B NOJIT_SELF_TEST\noff: do not test a GPU that was not tested before "
          "(docs/self-test.md)\n"
          ".TP\n.B HF_HOME\nHugging Face cache where ORG/NAME is looked up\n",
          f);
}
