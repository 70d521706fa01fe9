/* SPDX-License-Identifier: Apache-2.0
 *
 * commands.c: names and arguments of the commands; cli/main.c has their functions.
 */
#include "options/settings.h"

const struct command_info commands[COMMANDS + 1] = {
    {CMD_DISTILL, "distill",
     "--teacher MODEL --student MODEL --data|--prompts PATH... --out DIR [OPTION...]",
     "Train a student to match a teacher's distribution and to predict the text", NULL},
    {CMD_TRAIN, "train", "--student MODEL --data PATH... --out DIR [OPTION...]",
     "Train a model on text alone (cross-entropy)", NULL},
    {CMD_CACHE, "cache", "--teacher MODEL --data PATH... --out DIR [OPTION...]",
     "Store a teacher's hidden states on text, from which any number of students learn", NULL},
    {CMD_EVAL, "eval",
     "--model MODEL [--teacher MODEL] --data|--tasks|--prompts PATH... [OPTION...]",
     "Measure loss and divergence on text, run benchmarks, or count what a teacher accepts", NULL},
    {CMD_GENERATE, "generate",
     "--model MODEL (--prompt TEXT | --prompts PATH... | --chat) [OPTION...]",
     "Continue a prompt or all prompts of a file, or hold a conversation", NULL},
    {CMD_TOKENIZE, "tokenize", "--model MODEL --data PATH... (--out FILE | --show N)",
     "Encode text into a token file, so that training need not encode it again, or show it", NULL},
    {CMD_MERGE, "merge", "--model MODEL --adapter DIR --out DIR",
     "Merge LoRA adapters into the weights of their model", NULL},
    {CMD_EXPORT, "export", "--model MODEL --out FILE.gguf [--type TYPE] [--adapter DIR]",
     "Write a model as a GGUF file for llama.cpp and Ollama, or as a Hugging Face folder", NULL},
    {CMD_INIT, "init", "--preset NAME|--like MODEL --out DIR [OPTION...]",
     "Create a model with random weights or with layers copied from another", NULL},
    {CMD_MODELS, "models", "[--json]",
     "List the families of models that are read, and their presets", NULL},
    {CMD_PLAN, "plan", "--student MODEL [--teacher MODEL] [OPTION...]",
     "Print the memory that a run needs; needs no GPU and loads no weights", NULL},
    {CMD_DOCTOR, "doctor", "[OPTION...]",
     "Check the GPU, the driver and the libraries against the embedded kernels", NULL},
    {CMD_REPORT, "report", "RUN... [--out FILE.html]",
     "Plot the curves and compare the settings of runs on one HTML page",
     "RUN: the --out folder of a `nojit distill` or `nojit train`, finished or not"},
    {CMD_VERSION, "version", "[--json] [--verbose]", "Print the version and the embedded kernels",
     NULL},
    {0, NULL, NULL, NULL, NULL},
};
