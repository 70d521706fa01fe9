/* SPDX-License-Identifier: Apache-2.0
 *
 * file_kinds.c: see file_kinds.h.
 */
#include "data/file_kinds.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "io/error.h"
#include "io/path.h"

static const char unread[] =
    "data packed so are not read; unpack them, or pack them by gzip or zstd";
static const char table[] =
    "not read as it is; write a line of .jsonl for each row, or call it .txt to train on its text";

static const char arrow[] =
    "Arrow files are not read; write the data set as Parquet, in Python by "
    "datasets.load_from_disk(FOLDER).to_parquet(\"data.parquet\"), each split by itself";

static const struct extension {
    const char *text;
    enum file_format format;
    const char *refusal; /* advice for a format that is known but not read */
    bool in_folders;     /* whether it is data wherever it is found */
    bool packable;       /* whether it is read from .gz and .zst too */
} extensions[] = {
    {".txt", FILE_TEXT, NULL, true, true},
    {".jsonl", FILE_JSONL, NULL, true, true},
    {".parquet", FILE_PARQUET, NULL, true, false},
    {".u16", FILE_U16, NULL, true, false},
    {".u32", FILE_U32, NULL, true, false},
    {".bin", FILE_TOKENS, NULL, true, false},
    {".apr", FILE_UNNAMED,
     "an .apr file is not read; export its tokens as .u16 or .u32, or its text as .txt", true,
     false},
    {".arrow", FILE_UNNAMED, arrow, true, false},
    {".feather", FILE_UNNAMED, arrow, false, false},
    {".xz", FILE_UNNAMED, unread, false, false},
    {".bz2", FILE_UNNAMED, unread, false, false},
    {".zip", FILE_UNNAMED, unread, false, false},
    {".json", FILE_UNNAMED, table, false, false},
    {".csv", FILE_UNNAMED, table, false, false},
    {".tsv", FILE_UNNAMED, table, false, false},
};

static const struct packed {
    const char *text;
    enum packing_of_bytes packing;
} packings[] = {{".gz", BYTES_GZIP}, {".zst", BYTES_ZSTD}};

const char *extension_of(const char *path)
{
    const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
    return dot && (!slash || dot > slash) ? dot : "";
}

static const struct extension *find(const char *text)
{
    for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++)
        if (strcasecmp(text, extensions[i].text) == 0)
            return &extensions[i];
    return NULL;
}

static enum packing_of_bytes packing_of(const char *text)
{
    for (size_t i = 0; i < sizeof packings / sizeof *packings; i++)
        if (strcasecmp(text, packings[i].text) == 0)
            return packings[i].packing;
    return BYTES_PLAIN;
}

/* Find the row of a path's ending, and how the file is packed: the row of .jsonl for "x.jsonl.gz". NULL: none. */
static const struct extension *look(const char *path, enum packing_of_bytes *packing)
{
    char inner[PATH_BYTES];
    const char *last = extension_of(path);
    *packing = packing_of(last);
    if (*packing == BYTES_PLAIN)
        return find(last);
    snprintf(inner, sizeof inner, "%.*s", (int)(last - path), path);
    return find(extension_of(inner));
}

int file_kind_of(const char *path, struct file_kind *out)
{
    const struct extension *e = look(path, &out->packing);
    const bool packed = out->packing != BYTES_PLAIN;
    out->format = e ? e->format : FILE_UNNAMED;
    if (packed && (!e || !e->packable))
        return fail(NJ_E_UNSUPPORTED,
                    "%s: of packed files only .txt and .jsonl are read, and the name must say so "
                    "(x.jsonl.gz); unpack it, or rename it",
                    path);
    return e && e->refusal ? fail(NJ_E_UNSUPPORTED, "%s: %s", path, e->refusal) : 0;
}

bool file_has_rows(const char *path)
{
    enum packing_of_bytes packing;
    const struct extension *e = look(path, &packing);
    return e && (e->format == FILE_JSONL || e->format == FILE_PARQUET) &&
           (packing == BYTES_PLAIN || e->packable);
}

bool path_is_data(const char *path)
{
    enum packing_of_bytes packing;
    const struct extension *e = look(path, &packing);
    return e && e->in_folders && (packing == BYTES_PLAIN || e->packable);
}
