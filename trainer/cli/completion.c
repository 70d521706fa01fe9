/* SPDX-License-Identifier: Apache-2.0
 *
 * completion.c: completion scripts of bash and zsh, from the option table.
 */
#include "cli/commands.h"

#include <string.h>

#include "options/options.h"

/* Completions that a shell offers for a value: folders, files, or the words of a choice. */
enum value_kind { VALUE_NONE, VALUE_FOLDER, VALUE_FILE, VALUE_WORDS };

static enum value_kind value_kind(const struct option *o)
{
    if (o->kind == OPT_CHOICE)
        return VALUE_WORDS;
    if (o->value_name == NULL || o->kind == OPT_INT || o->kind == OPT_REAL)
        return VALUE_NONE;
    if (strstr(o->value_name, "DIR") != NULL)
        return VALUE_FOLDER;
    const bool file =
        strstr(o->value_name, "FILE") != NULL || strstr(o->value_name, "PATH") != NULL;
    const bool model = strcmp(o->value_name, "MODEL") == 0; /* folder or file */
    return file || model ? VALUE_FILE : VALUE_NONE;
}

/* Print "a|b" as "a b". */
static void put_words(FILE *f, const char *choices)
{
    for (; *choices != '\0'; choices++)
        fputc(*choices == '|' ? ' ' : *choices, f);
}

static void bash_option(FILE *f, const struct command_info *c, const struct option *o)
{
    static const char *const flags[] = {[VALUE_FOLDER] = "-d", [VALUE_FILE] = "-f"};
    const enum value_kind kind = value_kind(o);
    if (o->kind == OPT_FLAG)
        return;
    fprintf(f, "    %s:--%s) ", c->name, o->name);
    if (kind == VALUE_WORDS) {
        fputs("COMPREPLY=($(compgen -W \"", f);
        put_words(f, o->value_name);
        fputs("\" -- \"$cur\")); ", f);
    } else if (kind != VALUE_NONE) {
        fprintf(f, "COMPREPLY=($(compgen %s -- \"$cur\")); ", flags[kind]);
    }
    fputs("return ;;\n", f);
}

/* Print the completion of commands, after the words `first`, if `condition` holds. */
static void bash_commands(FILE *f, const char *condition, const char *first)
{
    fprintf(f, "    if [ %s ]; then\n        words=\"%s", condition, first);
    for (const struct command_info *c = commands; c->name != NULL; c++)
        fprintf(f, " %s", c->name);
    fputs("\"\n        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n        return\n    fi\n",
          f);
}

void complete_bash(FILE *f)
{
    fputs("# bash completion of nojit\n_nojit()\n{\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=\n"
          "    COMPREPLY=()\n",
          f);
    bash_commands(f, "\"$COMP_CWORD\" = 1", "help");
    bash_commands(f, "\"${COMP_WORDS[1]}\" = help", "--man --bash --zsh");
    fputs("    case ${COMP_WORDS[1]}:$prev in\n", f);
    for (const struct command_info *c = commands; c->name != NULL; c++)
        for (const struct option *o = options; o->name != NULL; o++)
            if (o->commands & c->bit)
                bash_option(f, c, o);
    fputs("    esac\n    case ${COMP_WORDS[1]} in\n", f);
    for (const struct command_info *c = commands; c->name != NULL; c++) {
        fprintf(f, "    %s) words=\"--help", c->name);
        for (const struct option *o = options; o->name != NULL; o++)
            if (o->commands & c->bit)
                fprintf(f, " --%s", o->name);
        fputs("\" ;;\n", f);
    }
    fputs("    esac\n    case $cur in\n"
          "    -*) COMPREPLY=($(compgen -W \"$words\" -- \"$cur\")) ;;\n"
          "    *) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n"
          "    esac\n}\ncomplete -o filenames -F _nojit nojit\n",
          f);
}

/* Print text inside '...' and, in a specification of _arguments, inside [...] or before a colon. */
static void zsh_text(FILE *f, const char *s)
{
    for (; *s != '\0'; s++) {
        if (*s == '\'')
            fputs("'\\''", f);
        else if (strchr("[]:\\", *s) != NULL)
            fprintf(f, "\\%c", *s);
        else
            fputc(*s, f);
    }
}

static void zsh_option(FILE *f, const struct option *o)
{
    static const char *const actions[] = {
        [VALUE_NONE] = ": ", [VALUE_FOLDER] = ":_files -/", [VALUE_FILE] = ":_files"};
    const enum value_kind kind = value_kind(o);
    fprintf(f, "            '%s--%s[", o->kind == OPT_LIST ? "*" : "", o->name);
    zsh_text(f, o->help);
    fputc(']', f);
    if (o->value_name != NULL) {
        fputc(':', f);
        zsh_text(f, kind == VALUE_WORDS ? o->name : o->value_name);
        fputs(kind == VALUE_WORDS ? ":(" : actions[kind], f);
        if (kind == VALUE_WORDS) {
            put_words(f, o->value_name);
            fputc(')', f);
        }
    }
    fputs("' \\\n", f);
}

void complete_zsh(FILE *f)
{
    fputs("#compdef nojit\n_nojit()\n{\n    local context state line\n"
          "    local -a commands=(\n        'help:List the commands'\n",
          f);
    for (const struct command_info *c = commands; c->name != NULL; c++) {
        fprintf(f, "        '%s:", c->name);
        zsh_text(f, c->summary);
        fputs("'\n", f);
    }
    fputs("    )\n    _arguments -C '1: :->command' '*:: :->option'\n"
          "    case $state in\n    command) _describe command commands ;;\n"
          "    option)\n        case $line[1] in\n",
          f);
    for (const struct command_info *c = commands; c->name != NULL; c++) {
        fprintf(f, "        %s)\n            _arguments \\\n", c->name);
        for (const struct option *o = options; o->name != NULL; o++)
            if (o->commands & c->bit)
                zsh_option(f, o);
        fputs("            '--help[list the options]' '*:file:_files' ;;\n", f);
    }
    fputs("        help)\n            _arguments '(- *)--man[print the man page]' "
          "'(- *)--bash[print the completion of bash]' '(- *)--zsh[print that of zsh]' \\\n"
          "            '1:command:(",
          f);
    for (const struct command_info *c = commands; c->name != NULL; c++)
        fprintf(f, "%s%s", c == commands ? "" : " ", c->name);
    fputs(")' ;;\n", f);
    fputs("        esac ;;\n    esac\n}\n_nojit \"$@\"\n", f);
}
