/* SPDX-License-Identifier: Apache-2.0
 *
 * contractcheck.c: checks whether the claims of the contracts are held. Run it in the root of the tree; it reads
 * contracts/kernels and contracts/system. Every claim is bound to a test and to a mutant, an edit that makes the test
 * fail, or says that it is open. Claims that need a GPU are held by the record of a run on one, if that was of this
 * tree; without a record they are counted separately. docs/contracts.md has the format. Exit status: 0 all bound claims
 * are held, 1 one is not, 2 usage.
 */
#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "falsifier.h"
#include "image/fileio.h"
#include "util.h"

enum { MAX_CLAIMS = 4096 };

static const char USAGE[] =
    "usage: contractcheck [--only GLOB] [--device cpu|cuda] [--results FILE] [--gpu FILE --tree "
    "HASH]\n"
    "                     [--mutants FILE]\n"
    "       contractcheck [--only GLOB] [--device cpu|cuda] --list\n"
    "       contractcheck --plant ID\n"
    "Checks the claims under contracts/ in this folder: each names a test that exists and a mutant "
    "that can be applied.\n"
    "  --only GLOB     claims whose id matches (@(A|B)* works)\n"
    "  --device D      claims whose test needs a GPU (cuda), or none (cpu)\n"
    "  --results FILE  the tests have passed in this record of a test run (BUILD/test-results)\n"
    "  --gpu FILE      those on a GPU have in this one (BUILD/check-gpu.results); left aside "
    "unless it is there\n"
    "  --tree HASH     and of the tree with this hash (tests/lib/treehash.sh)\n"
    "  --mutants FILE  the mutants were killed in this record (BUILD/mutants)\n"
    "  --list          id, file of the mutant, program and check of the test; a line per bound "
    "claim\n"
    "  --plant ID      edits the file of this mutant\n";

struct claims {
    struct falsifier of[MAX_CLAIMS];
    enum verdict { HELD, FAILED, NEEDS_GPU, SKIPPED, OPEN } verdict[MAX_CLAIMS];
    int count;
};

/* A test as tests/run.sh or, if it needs a GPU, tests/gpu.sh records it. */
struct test_name {
    const char *program, *check; /* check "": the whole program */
};

static const char GPU_PROGRAM[] = "gpu-";

static bool needs_gpu(const struct falsifier *f)
{
    return f->open == NULL && strncmp(f->test, GPU_PROGRAM, strlen(GPU_PROGRAM)) == 0;
}

static struct test_name name_of(const struct falsifier *f)
{
    const char *space = strchr(f->test, ' ');
    if (space == NULL)
        return (struct test_name){f->test, ""};
    return (struct test_name){keep_text(f->test, (size_t)(space - f->test)), space + 1};
}

/* Return the text of a file, or NULL. */
static const char *text_of(const char *path)
{
    char why[WHY_BYTES];
    struct span file;
    if (file_read(path, &file, why) != 0)
        return NULL;
    const char *text = keep_text((const char *)file.data, file.bytes);
    file_free(&file);
    return text;
}

/* ---- reading ---------------------------------------------------------------------------------- */

static void read_falsifiers(struct claims *c, const char *path, const struct node *list)
{
    for (int i = 0; i < list->count; i++) {
        if (c->count == MAX_CLAIMS) {
            problem(path, list->line, "more than %d claims", MAX_CLAIMS);
            return;
        }
        if (falsifier_read(path, list->items[i], &c->of[c->count]))
            c->count++;
    }
}

static void ignore(void *into, const struct node *n)
{
    (void)into;
    (void)n;
}

static void read_system(struct claims *c, const char *path, const struct node *root)
{
    static const struct field fields[] = {
        {"system", true, NODE_SCALAR, ignore},
        {"summary", true, NODE_SCALAR, ignore},
        {"falsifiers", true, NODE_LIST, ignore},
    };
    const int before = problem_count();
    node_fields(path, root, "a system contract", fields, 3, NULL);
    if (problem_count() == before)
        read_falsifiers(c, path, node_field(root, "falsifiers"));
}

/* Read the claims of a kernel contract, whose other parts gen checks. */
static void read_kernel(struct claims *c, const char *path, const struct node *root)
{
    const struct node *list = node_field(root, "falsifiers");
    const int before = c->count;
    if (list != NULL && list->kind == NODE_LIST)
        read_falsifiers(c, path, list);
    for (int i = before; i < c->count; i++)
        if (c->of[i].open == NULL)
            return;
    problem(path, root->line,
            "no claim of this op is bound to a test and a mutant; add one to "
            "its falsifiers");
}

static void read_folder(struct claims *c, const char *pattern,
                        void (*read)(struct claims *, const char *, const struct node *))
{
    glob_t found;
    if (glob(pattern, 0, NULL, &found) != 0) {
        problem(pattern, 0, "there is no such file here; run this in the root of the tree");
        return;
    }
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *path = keep_text(found.gl_pathv[i], strlen(found.gl_pathv[i]));
        const struct node *root = yaml_load(path);
        if (root != NULL)
            read(c, path, root);
    }
    globfree(&found);
}

/* ---- checks: each reports at most one fault of a claim ---------------------------------------- */

static void check_id(const struct claims *c, const struct falsifier *f)
{
    for (const struct falsifier *g = c->of; g < f; g++) {
        if (strcmp(g->id, f->id) == 0) {
            problem(f->contract, f->line, "%s is in %s:%d already", f->id, g->contract, g->line);
            return;
        }
    }
}

/* Return whether text holds word with no letter, digit or _ beside it. */
static bool holds_word(const char *text, const char *word)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    const size_t length = strlen(word);
    for (const char *at = text; (at = strstr(at, word)) != NULL; at++)
        if ((at == text || !strchr(letters, at[-1])) &&
            (at[length] == '\0' || !strchr(letters, at[length])))
            return true;
    return false;
}

/* Return whether a program is the harness, alone or under a tool that watches it on a GPU: its checks are ops. */
static bool is_harness(const char *program)
{
    static const char *const names[] = {"harness", "gpu-harness", "gpu-memcheck", "gpu-racecheck",
                                        "gpu-initcheck"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(program, names[i]) == 0)
            return true;
    return false;
}

/* Return the path of a script or program of that name, in whichever folder of tests/ it lies. */
static const char *source_in_tests(const char *program)
{
    const char *pattern =
        keep_format("tests/*/%s.%s", program, strncmp(program, "test_", 5) == 0 ? "c" : "sh");
    glob_t found;
    const bool one = glob(pattern, 0, NULL, &found) == 0;
    const char *path = one ? keep_format("%s", found.gl_pathv[0]) : pattern;
    if (one)
        globfree(&found);
    return path;
}

/* Return the file that must hold the name of a test. */
static const char *source_of(const struct test_name *t)
{
    const char *program = t->program;
    if (strcmp(program, "harness-selftest") == 0)
        return "tests/harness/harness_selftest.c";
    if (is_harness(program))
        return keep_format("contracts/kernels/%s.yaml", t->check);
    if (strcmp(program, "gpu-run") == 0)
        return "tests/gpu.sh";
    if (strncmp(program, GPU_PROGRAM, strlen(GPU_PROGRAM)) == 0)
        program += strlen(GPU_PROGRAM);
    return source_in_tests(program);
}

static void check_test(const struct falsifier *f)
{
    const struct test_name t = name_of(f);
    const char *path = source_of(&t), *source = text_of(path);
    const char *word = is_harness(t.program) ? "" : t.check;
    if (source == NULL)
        problem(f->contract, f->line, "%s names the test '%s', but there is no %s", f->id, f->test,
                path);
    else if (word[0] != '\0' && !holds_word(source, word))
        problem(f->contract, f->line, "%s names the test '%s', but %s holds no '%s'", f->id,
                f->test, path, word);
}

static int occurrences(const char *text, const char *part)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++)
        n++;
    return n;
}

static void check_mutant(const struct falsifier *f)
{
    const struct mutant *m = &f->mutant;
    const char *text = text_of(m->file);
    const int n = text != NULL ? occurrences(text, m->replace) : 0;
    if (m->file[0] == '/' || strstr(m->file, "..") != NULL)
        problem(f->contract, m->line, "%s: the mutant's file '%s' must be a path in the tree",
                f->id, m->file);
    else if (text == NULL)
        problem(f->contract, m->line, "%s: the mutant's file %s cannot be read", f->id, m->file);
    else if (n == 0)
        problem(f->contract, m->line,
                "%s: %s no longer holds '%s'; the code has changed, so write its mutant anew",
                f->id, m->file, m->replace);
    else if (n > 1)
        problem(f->contract, m->line,
                "%s: %s holds '%s' %d times; the mutant's text must be there once", f->id, m->file,
                m->replace, n);
    else if (strcmp(m->replace, m->with) == 0)
        problem(f->contract, m->line, "%s: the mutant changes nothing", f->id);
}

/* Return whether a record has the line `verdict, tab, name`. */
static bool recorded(const char *record, const char *verdict, const char *name)
{
    const char *line = keep_format("\n%s\t%s\n", verdict, name);
    return strstr(record, line) != NULL || strncmp(record, line + 1, strlen(line + 1)) == 0;
}

static void check_result(const struct falsifier *f, const char *record, const char *path)
{
    const struct test_name t = name_of(f);
    const char *name = keep_format("%s\t%s", t.program, t.check);
    const bool failed = recorded(record, "failed", name);
    if (failed || !recorded(record, "passed", name))
        problem(f->contract, f->line,
                "%s: the test '%s' %s (%s); to run it alone: "
                "tests/run_one.sh %s%s%s%s",
                f->id, f->test, failed ? "failed" : "did not run", path, t.program,
                t.check[0] ? " '" : "", t.check, t.check[0] ? "'" : "");
}

static void check_killed(const struct falsifier *f, const char *record, const char *path)
{
    if (recorded(record, "survived", f->id))
        problem(f->contract, f->mutant.line,
                "%s: its mutant survives the test '%s'; make the test stronger", f->id, f->test);
    else if (!recorded(record, "killed", f->id))
        problem(f->contract, f->mutant.line, "%s: its mutant was not tried or could not be (%s)",
                f->id, path);
}

/* ---- commands --------------------------------------------------------------------------------- */

struct command {
    const char *only, *device, *results, *gpu, *tree, *mutants, *plant;
    int list;
};

static bool is_chosen(const struct falsifier *f, const struct command *cmd)
{
    const char *device = f->open ? "" : needs_gpu(f) ? "cuda" : "cpu";
    return fnmatch(cmd->only, f->id, FNM_EXTMATCH) == 0 &&
           (cmd->device == NULL || strcmp(cmd->device, device) == 0);
}

static const char *record_of(const char *path)
{
    const char *text = path ? text_of(path) : NULL;
    if (path && text == NULL)
        problem(path, 0, "cannot be read: %s; make test writes it, make mutants that of mutants",
                strerror(errno));
    return text;
}

/* Return the record of a run on a GPU, or NULL if there is none of this tree. */
static const char *gpu_record_of(const struct command *cmd)
{
    const char *text = cmd->gpu ? text_of(cmd->gpu) : NULL;
    return text && cmd->tree && recorded(text, "tree", cmd->tree) ? text : NULL;
}

/* Return whether the tool of a claim was skipped, as it is not on the machine or was not requested: its claims then
 * stay as they were. */
static bool was_skipped(const struct falsifier *f, const char *record)
{
    const struct test_name t = name_of(f);
    return recorded(record, "skipped", keep_format("%s\t", t.program)) ||
           recorded(record, "skipped", keep_format("%s\t%s", t.program, t.check));
}

static void check_claims(struct claims *c, const struct command *cmd)
{
    const char *results = record_of(cmd->results), *mutants = record_of(cmd->mutants);
    const char *gpu = gpu_record_of(cmd);
    for (int i = 0; i < c->count; i++) {
        const struct falsifier *f = &c->of[i];
        const int before = problem_count();
        const bool on_gpu = needs_gpu(f);
        const bool unknown = on_gpu && (gpu == NULL || was_skipped(f, gpu));
        const bool skipped = !f->open && !on_gpu && results && was_skipped(f, results);
        check_id(c, f);
        if (f->open == NULL && is_chosen(f, cmd)) {
            check_test(f);
            check_mutant(f);
            if (on_gpu && !unknown)
                check_result(f, gpu, cmd->gpu);
            if (!on_gpu && results && !skipped)
                check_result(f, results, cmd->results);
            if (mutants)
                check_killed(f, mutants, cmd->mutants);
        }
        c->verdict[i] = problem_count() > before ? FAILED
                        : f->open != NULL        ? OPEN
                        : unknown && !mutants    ? NEEDS_GPU
                        : skipped && !mutants    ? SKIPPED
                                                 : HELD;
    }
}

static int report(struct claims *c, const struct command *cmd)
{
    const int others = problem_count(); /* problems that belong to no claim that could be read */
    int count[OPEN + 1] = {0};
    check_claims(c, cmd);
    for (int i = 0; i < c->count; i++) {
        const struct falsifier *f = &c->of[i];
        if (!is_chosen(f, cmd))
            continue;
        count[c->verdict[i]]++;
        if (c->verdict[i] == OPEN)
            printf("open: %s: %s\n", f->id, f->open);
        if (c->verdict[i] == NEEDS_GPU)
            printf("needs a GPU: %s: %s (%s)\n", f->id, f->claim, f->test);
        if (c->verdict[i] == SKIPPED)
            printf("skipped: %s: %s (%s)\n", f->id, f->claim, f->test);
    }
    if (cmd->mutants)
        printf("%d killed of %d\n", count[HELD], count[HELD] + count[FAILED]);
    else
        printf("contracts: %d passed, %d failed, %d skipped, %d need a GPU, %d open\n", count[HELD],
               count[FAILED] + others, count[SKIPPED], count[NEEDS_GPU], count[OPEN]);
    return problem_count() > 0;
}

static int list(const struct claims *c, const struct command *cmd)
{
    for (int i = 0; i < c->count; i++) {
        const struct falsifier *f = &c->of[i];
        if (f->open != NULL || !is_chosen(f, cmd))
            continue;
        const struct test_name t = name_of(f);
        printf("%s\t%s\t%s\t%s\n", f->id, f->mutant.file, t.program, t.check);
    }
    return problem_count() > 0;
}

static int plant(const struct claims *c, const char *id)
{
    char why[WHY_BYTES];
    int i = 0;
    while (i < c->count && strcmp(c->of[i].id, id) != 0)
        i++;
    if (i == c->count || c->of[i].open != NULL) {
        fprintf(stderr, "contractcheck: no claim %s with a mutant; --list prints all\n", id);
        return 2;
    }
    const struct mutant *m = &c->of[i].mutant;
    check_mutant(&c->of[i]);
    if (problem_count() > 0)
        return 1;
    const char *text = text_of(m->file), *at = strstr(text, m->replace);
    const char *made =
        keep_format("%.*s%s%s", (int)(at - text), text, m->with, at + strlen(m->replace));
    const struct span content = {(const uint8_t *)made, strlen(made)};
    if (file_write(m->file, content, why) != 0) {
        fprintf(stderr, "contractcheck: %s\n", why);
        return 1;
    }
    return 0;
}

static int parse(int argc, char **argv, struct command *cmd)
{
    static const struct option options[] = {
        {"only", required_argument, NULL, 'o'},    {"device", required_argument, NULL, 'd'},
        {"results", required_argument, NULL, 'r'}, {"gpu", required_argument, NULL, 'g'},
        {"tree", required_argument, NULL, 't'},    {"mutants", required_argument, NULL, 'm'},
        {"plant", required_argument, NULL, 'p'},   {"list", no_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'},          {0}};
    const struct {
        int option;
        const char **into;
    } texts[] = {{'o', &cmd->only}, {'d', &cmd->device},  {'r', &cmd->results}, {'g', &cmd->gpu},
                 {'t', &cmd->tree}, {'m', &cmd->mutants}, {'p', &cmd->plant}};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        bool known = c == 'l';
        cmd->list |= known;
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
            if (texts[i].option == c) {
                *texts[i].into = optarg;
                known = true;
            }
        if (!known) {
            fputs(USAGE, c == 'h' ? stdout : stderr);
            return c == 'h' ? 0 : 2;
        }
    }
    const bool device_known =
        !cmd->device || strcmp(cmd->device, "cpu") == 0 || strcmp(cmd->device, "cuda") == 0;
    if (optind == argc && device_known)
        return -1;
    fputs(USAGE, stderr);
    return 2;
}

int main(int argc, char **argv)
{
    static struct claims c;
    struct command cmd = {.only = "*"};
    int rc = parse(argc, argv, &cmd);
    if (rc >= 0)
        return rc;
    read_folder(&c, "contracts/kernels/*.yaml", read_kernel);
    read_folder(&c, "contracts/system/*.yaml", read_system);
    if (cmd.plant)
        rc = plant(&c, cmd.plant);
    else
        rc = cmd.list ? list(&c, &cmd) : report(&c, &cmd);
    release();
    return rc;
}
