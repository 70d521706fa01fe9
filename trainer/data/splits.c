/* SPDX-License-Identifier: Apache-2.0
 *
 * splits.c: the splits of a data set that are in one folder (train-00000-of-00002.parquet, test.jsonl, validation/...):
 * they are not read together, since a model would be trained on the data that it is measured on.
 */
#include "base/plural.h"
#include "data/file_kinds.h"
#include "data/token_files.h"
#include "io/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const names[] = {"others", "train", "validation", "test"};
enum { SPLITS = sizeof names / sizeof *names };

static const struct {
    const char *word;
    enum data_split split;
} words[] = {
    {"train", SPLIT_TRAIN},      {"training", SPLIT_TRAIN}, {"validation", SPLIT_VALIDATION},
    {"valid", SPLIT_VALIDATION}, {"val", SPLIT_VALIDATION}, {"dev", SPLIT_VALIDATION},
    {"test", SPLIT_TEST},        {"testing", SPLIT_TEST},   {"eval", SPLIT_TEST},
    {"evaluation", SPLIT_TEST},
};

static enum data_split split_of_word(const char *text, size_t bytes)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i].word) == bytes && strncasecmp(text, words[i].word, bytes) == 0)
            return words[i].split;
    return SPLIT_AUTO;
}

/* Return the length of a file's name without its endings: "train-1" of "train-1.jsonl.gz". */
static size_t stem_bytes(const char *name)
{
    const char *end = extension_of(name);
    size_t bytes = *end ? (size_t)(end - name) : strlen(name);
    if (strcasecmp(end, ".gz") != 0 && strcasecmp(end, ".zst") != 0)
        return bytes;
    const char *inner = memrchr(name, '.', bytes);
    return inner ? (size_t)(inner - name) : bytes;
}

/* Return the split that the first or the last word of a file's name says. */
static enum data_split split_of_name(const char *name)
{
    const size_t bytes = stem_bytes(name), first = strcspn(name, "-_.");
    size_t last = bytes;
    while (last > 0 && !memchr("-_.", name[last - 1], 3))
        last--;
    const enum data_split split = split_of_word(name, first < bytes ? first : bytes);
    return split != SPLIT_AUTO ? split : split_of_word(name + last, bytes - last);
}

/* Return the split of a file, by its name or that of a folder on the way to it; SPLIT_AUTO: none. */
static enum data_split split_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    enum data_split split = split_of_name(slash ? slash + 1 : path);
    while (split == SPLIT_AUTO && (slash = strchr(path, '/'))) {
        split = split_of_word(path, (size_t)(slash - path));
        path = slash + 1;
    }
    return split;
}

/* Count the files of each split; of the others, those that hold rows. */
struct count {
    size_t files[SPLITS], rows;
};

static bool mixes(const struct count *n)
{
    int named = 0;
    for (int i = SPLIT_TRAIN; i < SPLITS; i++)
        named += n->files[i] > 0;
    return named > 1 || (named > 0 && n->files[SPLIT_TRAIN] == 0 && n->rows > 0);
}

/* List the splits that are present, except one: "test (1 file), others (2 files)". */
static const char *list(const struct count *n, int without, char *out, size_t bytes)
{
    size_t at = 0;
    out[0] = '\0';
    for (int k = 1; k <= SPLITS && at < bytes; k++) {
        const int i = k % SPLITS;
        if (i != without && n->files[i] > 0)
            at += (size_t)snprintf(out + at, bytes - at, "%s%s (%zu file%s)", at > 0 ? ", " : "",
                                   names[i], n->files[i], plural((long long)n->files[i]));
    }
    return out;
}

/* Keep the files of one split in the list, in their order. */
static void keep(struct file_list *files, size_t from, size_t skip, enum data_split split)
{
    size_t kept = from;
    for (size_t i = from; i < files->count; i++)
        if (split_of(files->path[i] + skip) == split)
            files->path[kept++] = files->path[i];
        else
            free(files->path[i]);
    files->count = kept;
}

int splits_choose(const char *dir, struct file_list *files, size_t from,
                  const struct split_choice *choice, struct passed_over *passed)
{
    const size_t skip = strlen(dir) + 1;
    struct count n = {{0}, 0};
    char text[160];
    for (size_t i = from; i < files->count; i++) {
        const enum data_split split = split_of(files->path[i] + skip);
        n.files[split]++;
        n.rows += split == SPLIT_AUTO && file_has_rows(files->path[i]);
    }
    if (!mixes(&n))
        return 0;
    enum data_split split = choice->wanted;
    if (split != SPLIT_AUTO && n.files[split] == 0)
        split = choice->instead;
    if (split == SPLIT_AUTO || n.files[split] == 0)
        return fail(NJ_E_FORMAT,
                    "%s: holds splits that are not read together: %s; choose one by --split, or "
                    "name files",
                    dir, list(&n, -1, text, sizeof text));
    snprintf(passed->split, sizeof passed->split,
             "%.100s: the split %s is read (%zu file%s); not read: %s", dir, names[split],
             n.files[split], plural((long long)n.files[split]),
             list(&n, (int)split, text, sizeof text));
    keep(files, from, skip, split);
    return 0;
}
