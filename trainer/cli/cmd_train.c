/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_train.c: `nojit distill` and `nojit train`: what they need, then the run.
 */
#include "cli/commands.h"
#include "io/error.h"
#include "run/rollouts.h"
#include "run/run.h"
#include "run/run_inputs.h"
#include "run/train.h"

static int check_settings(const struct settings *s, const char *command, bool distill)
{
    const struct needed needed[] = {{"student", s->student != NULL},
                                    {"teacher", s->teacher != NULL || !distill},
                                    {"data", s->data.count > 0 || s->on_policy > 0},
                                    {"out", s->out != NULL || s->dry_run},
                                    {NULL}};
    TRY(run_needs(command, needed));
    if (s->eval_every > 0 && s->eval_data.count == 0)
        return fail(NJ_E_ARG, "--eval-every needs --eval-data to measure on");
    if (s->keep_best && s->eval_data.count == 0)
        return fail(NJ_E_ARG, "--keep-best needs --eval-data to measure on");
    if (s->early_stop_patience > 0 && (s->eval_data.count == 0 || s->eval_every == 0))
        return fail(NJ_E_ARG, "--early-stop-patience needs --eval-data and --eval-every");
    TRY(run_check_temperature(s));
    TRY(rollouts_check(s));
    return run_check_output(s);
}

static int train(const struct settings *s, enum command bit)
{
    const struct command_info *c = commands;
    while (c->bit != bit)
        c++;
    TRY(check_settings(s, c->name, bit == CMD_DISTILL));
    return train_run(s, c);
}

int cmd_distill(const struct settings *s)
{
    return train(s, CMD_DISTILL);
}

int cmd_train(const struct settings *s)
{
    return train(s, CMD_TRAIN);
}
