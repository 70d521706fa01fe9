/* SPDX-License-Identifier: Apache-2.0
 *
 * commands.h: the function of each command, in a file of its own (cmd_*.c), and what prints help.
 */
#ifndef NOJIT_TRAINER_COMMANDS_H
#define NOJIT_TRAINER_COMMANDS_H

#include <stdio.h>

#include "options/settings.h"

int cmd_distill(const struct settings *s);
int cmd_train(const struct settings *s);
int cmd_cache(const struct settings *s);
int cmd_eval(const struct settings *s);
int cmd_generate(const struct settings *s);
int cmd_tokenize(const struct settings *s);
int cmd_merge(const struct settings *s);
int cmd_export(const struct settings *s);
int cmd_init(const struct settings *s);
int cmd_models(const struct settings *s);
int cmd_plan(const struct settings *s);
int cmd_doctor(const struct settings *s);
int cmd_report(const struct settings *s);
int cmd_version(const struct settings *s);

void help_overview(FILE *f);
void help_command(FILE *f, const struct command_info *c);
void help_man(FILE *f);
/* Print completion scripts for two shells. */
void complete_bash(FILE *f);
void complete_zsh(FILE *f);

#endif
