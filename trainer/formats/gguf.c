/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf.c: see gguf.h. gguf_values.c reads metadata.
 */
#include "formats/gguf.h"

#include "formats/gguf_file.h"
#include "io/error.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FETCH "fetch the file again"
enum { PARTS_MOST = 1000 }; /* maximum number of parts of a split file */

/* Move the tensors and the mapping of a part to those of the whole. */
static int append_part(struct gguf *g, struct gguf *part)
{
    struct tensors *to = &g->tensors, *from = &part->tensors;
    struct tensor *tensor = realloc(to->tensor, (to->count + from->count + 1) * sizeof *tensor);
    if (tensor)
        to->tensor = tensor;
    struct tensor_map *map = realloc(to->map, (to->map_count + from->map_count) * sizeof *map);
    if (map)
        to->map = map;
    if (!tensor || !map)
        return fail(NJ_E_NOMEM, "%s: out of memory for %zu tensors", g->path, from->count);
    memcpy(tensor + to->count, from->tensor, from->count * sizeof *tensor);
    memcpy(map + to->map_count, from->map, from->map_count * sizeof *map);
    to->count += from->count;
    to->map_count += from->map_count;
    from->map_count = 0; /* the whole now owns it */
    return 0;
}

/* Write the end of a part's name: "-00001-of-00004.gguf". */
static void part_name(char out[32], int64_t part, int64_t parts)
{
    snprintf(out, 32, "-%05d-of-%05d.gguf", (int)part, (int)parts);
}

/* Check a key of a part against its value for the whole. missing: value of an optional key that
 * is absent. */
static int check_key(const struct gguf *part, const char *key, int64_t missing, int64_t due)
{
    int64_t value;
    const int rc = gguf_int(part, key, missing, &value);
    if (rc != 0 || value == due)
        return rc;
    return fail(NJ_E_FORMAT, "%s: %s is %" PRId64 ", not %" PRId64 "; fetch all parts again",
                part->path, key, value, due);
}

static int open_other(struct gguf *g, const char *stem, int64_t no, int64_t parts, int64_t tensors)
{
    char path[PATH_BYTES + 32], name[32];
    struct gguf part;
    part_name(name, no + 1, parts);
    snprintf(path, sizeof path, "%s%s", stem, name);
    int rc = gguf_file_open(path, "fetch all parts of the model", &part);
    if (rc == 0)
        rc = check_key(&part, "split.no", -1, no);
    if (rc == 0)
        rc = check_key(&part, "split.count", parts, parts);
    if (rc == 0 && tensors != -1)
        rc = check_key(&part, "split.tensors.count", tensors, tensors);
    if (rc == 0)
        rc = append_part(g, &part);
    gguf_close(&part);
    return rc;
}

/* Check that the file is the first of its parts. `stem` becomes its path without the end of the name, which is
 * "-00001-of-0000N.gguf" for N parts. */
static int check_first(const struct gguf *g, int64_t parts, char stem[PATH_BYTES])
{
    char name[32];
    int64_t no;
    TRY(gguf_int(g, "split.no", 0, &no));
    if (parts > PARTS_MOST)
        return fail(NJ_E_FORMAT, "%s: split.count is %" PRId64 "; at most %d parts are allowed",
                    g->path, parts, (int)PARTS_MOST);
    part_name(name, 1, parts);
    if (no < 0 || no >= parts)
        return fail(NJ_E_FORMAT,
                    "%s: split.no is %" PRId64 ", but split.count is %" PRId64 "; " FETCH, g->path,
                    no, parts);
    if (no != 0)
        return fail(NJ_E_FORMAT,
                    "%s: part %" PRId64 " of %" PRId64 "; give the first, whose name ends in %s",
                    g->path, no + 1, parts, name);
    const size_t bytes = strlen(g->path), end = strlen(name);
    if (bytes < end || strcmp(g->path + bytes - end, name) != 0)
        return fail(NJ_E_FORMAT,
                    "%s: the first of %" PRId64
                    " parts, whose name must end in %s: give all parts their names",
                    g->path, parts, name);
    snprintf(stem, PATH_BYTES, "%.*s", (int)(bytes - end), g->path);
    return 0;
}

static int open_others(struct gguf *g)
{
    char stem[PATH_BYTES];
    int64_t parts, tensors;
    int rc = gguf_int(g, "split.count", 1, &parts);
    if (rc != 0 || parts <= 1)
        return rc;
    TRY(check_first(g, parts, stem));
    TRY(gguf_int(g, "split.tensors.count", -1, &tensors));
    for (int64_t no = 1; no < parts; no++)
        TRY(open_other(g, stem, no, parts, tensors));
    if (tensors != -1 && tensors != (int64_t)g->tensors.count)
        return fail(NJ_E_FORMAT,
                    "%s: split.tensors.count is %" PRId64
                    ", and the parts hold %zu tensors; fetch all parts again",
                    g->path, tensors, g->tensors.count);
    return 0;
}

static int sort_tensors(struct gguf *g)
{
    const struct tensor *twice = tensors_sort(g->tensors.tensor, g->tensors.count);
    return twice ? fail(NJ_E_FORMAT, "%s: tensor %s is there twice; " FETCH, g->path, twice->name)
                 : 0;
}

int gguf_open(const char *path, struct gguf *out)
{
    int rc = gguf_file_open(path, "give the path of a GGUF file", out);
    if (rc == 0)
        rc = open_others(out);
    if (rc == 0)
        rc = sort_tensors(out);
    if (rc != 0)
        gguf_close(out);
    return rc;
}

void gguf_close(struct gguf *g)
{
    tensors_close(&g->tensors);
    free(g->value);
    memset(g, 0, sizeof *g);
}

bool gguf_is(const char *path)
{
    char magic[4] = "";
    struct stat st;
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    const bool is = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
                    pread(fd, magic, sizeof magic, 0) == (ssize_t)sizeof magic &&
                    memcmp(magic, "GGUF", sizeof magic) == 0;
    if (fd >= 0)
        close(fd);
    return is;
}
