/* SPDX-License-Identifier: Apache-2.0
 *
 * gen: reads kernel contracts and writes everything that lists kernels: instances, launchers,
 * tables, test cases, documentation and the make list. All contracts are read and checked before
 * anything is written.
 */
#include "emit.h"

#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_BAD_INPUT = 2 };

struct command {
    const char *contracts, *kernels, *archs_file, *archs, *only, *header, *out;
};

static const char usage[] =
    "usage: gen --contracts DIR --kernels DIR --archs-file FILE --archs LIST --out DIR\n"
    "           [--only PATTERNS] [--header NAME]\n"
    "  --contracts DIR    <op>.yaml of every op\n"
    "  --kernels DIR      <op>.cu and ref/<op>.c of every op\n"
    "  --archs-file FILE  all known architectures\n"
    "  --archs LIST       'default', or names such as 'sm_75 sm_90a'\n"
    "  --only PATTERNS    builds only ops or keys that match, such as 'rmsnorm_*'\n"
    "  --header NAME      name of the header of launchers (nojit_ops.h)\n"
    "Exit status: 0 done, 1 output cannot be written, 2 bad input (nothing is written).\n";

/* Read the command line. Returns 0, or an exit status after a message; -1 for --help. */
static int read_command(int argc, char **argv, struct command *cmd)
{
    static const struct option options[] = {
        {"contracts", required_argument, NULL, 'c'},
        {"kernels", required_argument, NULL, 'k'},
        {"archs-file", required_argument, NULL, 'f'},
        {"archs", required_argument, NULL, 'a'},
        {"only", required_argument, NULL, 'n'},
        {"header", required_argument, NULL, 'h'},
        {"out", required_argument, NULL, 'o'},
        {"help", no_argument, NULL, '?' + 128},
        {NULL, 0, NULL, 0},
    };
    int opt;
    while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
        const char **const into = opt == 'c'   ? &cmd->contracts
                                  : opt == 'k' ? &cmd->kernels
                                  : opt == 'f' ? &cmd->archs_file
                                  : opt == 'a' ? &cmd->archs
                                  : opt == 'n' ? &cmd->only
                                  : opt == 'h' ? &cmd->header
                                  : opt == 'o' ? &cmd->out
                                               : NULL;
        if (opt == '?' + 128) {
            fputs(usage, stdout);
            return -1;
        }
        if (into == NULL) {
            fputs(usage, stderr);
            return EXIT_BAD_INPUT;
        }
        *into = optarg;
    }
    if (optind == argc && cmd->contracts && cmd->kernels && cmd->archs_file && cmd->archs &&
        cmd->out)
        return 0;
    fputs(usage, stderr);
    return EXIT_BAD_INPUT;
}

static int is_contract(const struct dirent *e)
{
    size_t n = strlen(e->d_name);
    return n > 5 && e->d_name[0] != '.' && strcmp(e->d_name + n - 5, ".yaml") == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void read_contracts(struct gen *g, const char *dir)
{
    struct dirent **entries = NULL;
    int n = scandir(dir, &entries, is_contract, by_name);
    if (n <= 0) {
        problem(dir, 0, n < 0 ? "cannot be read: %s" : "holds no contract (*.yaml)%.0s",
                strerror(errno));
        free(entries);
        return;
    }
    g->contracts = keep((size_t)n * sizeof *g->contracts);
    g->all_read = true;
    for (int i = 0; i < n; i++) {
        struct contract *c = contract_read(keep_format("%s/%s", dir, entries[i]->d_name));
        g->all_read = g->all_read && c != NULL;
        if (c != NULL)
            g->contracts[g->contract_count++] = c;
        free(entries[i]);
    }
    free(entries);
}

static void print_exclusions(const struct gen *g)
{
    for (int i = 0; i < g->key_count; i++)
        for (int a = 0; g->keys[i].id >= 0 && a < g->arch_count; a++)
            if (!key_on_arch(&g->keys[i], &g->archs[a]))
                printf("excluded: %s on %s (only %s)\n", g->keys[i].key, g->archs[a].name,
                       g->keys[i].c->only);
}

static int write_all(const struct gen *g, const char *out)
{
    static int (*const writers[])(const struct gen *, const char *) = {
        emit_instances, emit_shaders, emit_head,  emit_ops,
        emit_cases,     emit_doc,     emit_lists, emit_make};
    if (make_folder(out) != 0)
        return 1;
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++)
        if (writers[i](g, out) != 0)
            return 1;
    print_exclusions(g);
    return 0;
}

int main(int argc, char **argv)
{
    struct command cmd = {.header = "nojit_ops.h"};
    struct gen g = {0};
    int rc = read_command(argc, argv, &cmd);
    if (rc != 0)
        return rc < 0 ? 0 : rc;
    g.kernels_dir = cmd.kernels;
    g.header = cmd.header;
    archs_read(&g, cmd.archs_file, cmd.archs);
    read_contracts(&g, cmd.contracts);
    keys_make(&g, cmd.only);
    check_all(&g);
    if (problem_count() > 0) {
        rc = EXIT_BAD_INPUT;
        goto done;
    }
    keys_limits(&g);
    rc = write_all(&g, cmd.out);
done:
    release();
    return rc;
}
