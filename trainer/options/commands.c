/* SPDX-License-Identifier: Apache-2.0
 *
 * commands.c: names and arguments of the commands; cli/main.c has their functions.
 */
#include "options/settings.h"

const struct command_info commands[COMMANDS + 1] = {
    {CMD_DISTILL, "distill", "--teacher DIR --student DIR --data PATH... --out DIR [OPTION...]",
     "Train a student on a teacher's distribution and on the text", NULL},
    {CMD_TRAIN, "train", "--student DIR --data PATH... --out DIR [OPTION...]",
     "Train a model on text alone (cross-entropy)", NULL},
    {CMD_EVAL, "eval", "--model DIR --data PATH... [--teacher DIR] [OPTION...]",
     "Measure held-out loss, and the divergence from a teacher", NULL},
    {CMD_GENERATE, "generate", "--model DIR [--prompt TEXT] [OPTION...]", "Continue a text", NULL},
    {CMD_TOKENIZE, "tokenize", "--model DIR --data PATH... --out FILE",
     "Write text as a token file, so that training need not encode it again", NULL},
    {CMD_MERGE, "merge", "--model DIR --adapter DIR --out DIR",
     "Write the model with adapters in its weights", NULL},
    {CMD_INIT, "init", "--preset NAME|--like DIR --out DIR [OPTION...]",
     "Write a new model, with random weights or with layers of another", NULL},
    {CMD_PLAN, "plan", "--student DIR [--teacher DIR] [OPTION...]",
     "Print the memory that a run needs, without a GPU and without loading weights", NULL},
    {CMD_DOCTOR, "doctor", "[OPTION...]",
     "Report what this machine has, what the binary holds, and whether they fit", NULL},
    {CMD_REPORT, "report", "RUN... [--out FILE.html]",
     "Draw the curves and compare the settings of runs on one HTML page",
     "RUN: the --out folder of a `nojit distill` or `nojit train`, finished or not"},
    {CMD_VERSION, "version", "[--json] [--verbose]", "Print the version and what is embedded",
     NULL},
    {0, NULL, NULL, NULL, NULL},
};
