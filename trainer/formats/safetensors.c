/* SPDX-License-Identifier: Apache-2.0
 *
 * safetensors.c: opens weights. A file is accepted only if its header explains every byte of it:
 * nothing overlaps, nothing is left over, nothing is counted twice. safetensors_write.c writes
 * weights.
 */
#include "formats/safetensors.h"

#include "formats/mapped.h"
#include "io/error.h"
#include "io/json_text.h"
#include "io/path.h"
#include "io/regular.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define HEADER_MOST (100u << 20) /* the format's own limit */
#define INDEX_NAME "model.safetensors.index.json"

/* ---- one file ---- */

/* Map a file and read its header length. Header and data are then at base + 8 and base + 8 +
 * length. */
static int map_file(const char *path, struct tensor_map *map, uint64_t *header_bytes)
{
    int fd;
    int rc = regular_fd(path, 0, "check the model folder", &fd, &map->bytes);
    if (rc != 0)
        return rc;
    if (map->bytes < 10) {
        rc = fail(NJ_E_FORMAT, "%s: %zu bytes, too short for a safetensors file; fetch it again",
                  path, map->bytes);
        goto done;
    }
    rc = mapped_begin(path, fd, map->bytes, &map->base);
    if (rc != 0)
        goto done;
    memcpy(header_bytes, map->base, sizeof *header_bytes);
    if (regular_is_pointer(map->base, map->bytes)) {
        rc = regular_refuse_pointer(path);
        goto done;
    }
    if (*header_bytes > HEADER_MOST || *header_bytes > map->bytes - 8)
        rc = fail(NJ_E_FORMAT,
                  "%s: a header of %" PRIu64 " bytes is declared, the file has %zu and the format "
                  "allows %u; fetch it again",
                  path, *header_bytes, map->bytes, HEADER_MOST);
done:
    close(fd);
    return rc;
}

/* Types of parts, which are not read as weights directly. */
static const struct part_type {
    const char *name;
    size_t bytes;
} part_types[ST_TYPES - NJ_TYPES] = {
    [ST_U8 - NJ_TYPES] = {"U8", 1},           [ST_I8 - NJ_TYPES] = {"I8", 1},
    [ST_F8_E4M3 - NJ_TYPES] = {"F8_E4M3", 1}, [ST_I32 - NJ_TYPES] = {"I32", 4},
    [ST_I64 - NJ_TYPES] = {"I64", 8},         [ST_BOOL - NJ_TYPES] = {"BOOL", 1},
    [ST_F8_E5M2 - NJ_TYPES] = {"F8_E5M2", 1}, [ST_I16 - NJ_TYPES] = {"I16", 2},
    [ST_U16 - NJ_TYPES] = {"U16", 2},         [ST_U32 - NJ_TYPES] = {"U32", 4},
    [ST_U64 - NJ_TYPES] = {"U64", 8},         [ST_F64 - NJ_TYPES] = {"F64", 8},
};

const char *st_type_name(enum nj_tensor_type type)
{
    return (int)type < NJ_TYPES ? tensor_type_name(type) : part_types[(int)type - NJ_TYPES].name;
}

size_t st_type_bytes(enum nj_tensor_type type, int64_t elements)
{
    return (int)type < NJ_TYPES ? tensor_type_bytes(type, elements)
                                : part_types[(int)type - NJ_TYPES].bytes * (size_t)elements;
}

static int refuse_type(const char *path, const char *name, const char *type)
{
    return fail(NJ_E_UNSUPPORTED,
                "%s: tensor %s is %.16s; F32, BF16 and F16 are supported: use an unquantized "
                "release of the model",
                path, name, type);
}

static int refuse_parts(const char *path, const struct tensors *w)
{
    for (size_t i = 0; i < w->count; i++)
        if ((int)w->tensor[i].dtype >= NJ_TYPES)
            return refuse_type(path, w->tensor[i].name, st_type_name(w->tensor[i].dtype));
    return 0;
}

/* Return the type's number and the bytes of an element; -1 if there is none. */
static int type_of(const char *name, size_t *bytes)
{
    for (int i = 0; i < ST_TYPES - NJ_TYPES; i++)
        if (strcmp(part_types[i].name, name) == 0) {
            *bytes = part_types[i].bytes;
            return NJ_TYPES + i;
        }
    const int type = tensor_type_find(name);
    if (type < 0 || tensor_type_block((enum nj_tensor_type)type) > 1)
        return -1;
    *bytes = tensor_type_bytes((enum nj_tensor_type)type, 1);
    return type;
}

/* Read the shape; *elements is its product. */
static int parse_shape(const char *path, const json_t *shape, struct tensor *t, uint64_t *elements)
{
    if (!json_is_array(shape))
        return fail(NJ_E_FORMAT, "%s: tensor %s: shape is not a list; fetch the file again", path,
                    t->name);
    if (json_array_size(shape) > 4)
        return fail(NJ_E_UNSUPPORTED, "%s: tensor %s has %zu dimensions; at most 4 are supported",
                    path, t->name, json_array_size(shape));
    t->rank = (int)json_array_size(shape);
    *elements = 1;
    for (int i = 0; i < t->rank; i++) {
        const json_t *dim = json_array_get(shape, (size_t)i);
        int64_t size = json_integer_value(dim);
        if (!json_is_integer(dim) || size < 0)
            return fail(
                NJ_E_FORMAT,
                "%s: tensor %s: dimension %d is not a whole number from 0 on; fetch the file "
                "again",
                path, t->name, i);
        if (__builtin_mul_overflow(*elements, (uint64_t)size, elements) || *elements > (uint64_t)1
                                                                                           << 56)
            return fail(NJ_E_FORMAT, "%s: tensor %s: its shape is too large; fetch the file again",
                        path, t->name);
        t->shape[i] = size;
    }
    return 0;
}

/* Read data_offsets and check them against the data's size and the shape. */
static int parse_offsets(const char *path, const json_t *offsets, uint64_t shape_bytes,
                         size_t data_bytes, const unsigned char *data, struct tensor *t)
{
    const json_t *from = json_array_get(offsets, 0), *to = json_array_get(offsets, 1);
    int64_t begin = json_integer_value(from), end = json_integer_value(to);
    if (json_array_size(offsets) != 2 || !json_is_integer(from) || !json_is_integer(to) ||
        begin < 0 || end < begin)
        return fail(NJ_E_FORMAT,
                    "%s: tensor %s: data_offsets is not [begin, end]; fetch the file again", path,
                    t->name);
    if ((uint64_t)end > data_bytes)
        return fail(NJ_E_FORMAT,
                    "%s: tensor %s ends at byte %" PRId64 " of the tensors, but the file has %zu "
                    "bytes of them; it is cut short: fetch it again",
                    path, t->name, end, data_bytes);
    if ((uint64_t)(end - begin) != shape_bytes)
        return fail(NJ_E_FORMAT,
                    "%s: tensor %s has %" PRId64 " bytes, its shape asks for %" PRIu64
                    "; fetch the file again",
                    path, t->name, end - begin, shape_bytes);
    t->data = data + begin;
    t->bytes = (size_t)shape_bytes;
    return 0;
}

static int parse_tensor(const char *path, const char *name, const json_t *entry,
                        const struct tensor_map *map, uint64_t header_bytes, struct tensor *t)
{
    const size_t before = 8 + (size_t)header_bytes;
    if (snprintf(t->name, sizeof t->name, "%s", name) >= (int)sizeof t->name || !*name)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: a tensor name is %zu bytes long (%.40s...); 1 to %zu are supported", path,
                    strlen(name), name, sizeof t->name - 1);
    const char *dtype_name = json_string_value(json_object_get(entry, "dtype"));
    if (!dtype_name)
        return fail(NJ_E_FORMAT, "%s: tensor %s: dtype is missing; fetch the file again", path,
                    name);
    size_t each = 0;
    const int type = type_of(dtype_name, &each);
    if (type < 0)
        return refuse_type(path, name, dtype_name);
    t->dtype = (enum nj_tensor_type)type;
    uint64_t elements = 0;
    TRY(parse_shape(path, json_object_get(entry, "shape"), t, &elements));
    return parse_offsets(path, json_object_get(entry, "data_offsets"), elements * each,
                         map->bytes - before, (const unsigned char *)map->base + before, t);
}

static int compare_data(const void *a, const void *b)
{
    const struct tensor *x = a, *y = b;
    if (x->data != y->data)
        return (const char *)x->data < (const char *)y->data ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* Sort by position and check that the tensors tile the data from `data` to `end`. */
static int check_tiling(const char *path, struct tensor *t, size_t count, const unsigned char *data,
                        const unsigned char *end)
{
    const unsigned char *at = data;
    qsort(t, count, sizeof *t, compare_data);
    for (size_t i = 0; i < count; i++) {
        const unsigned char *begin = t[i].data;
        if (begin < at)
            return fail(NJ_E_FORMAT, "%s: tensors %s and %s overlap; fetch the file again", path,
                        t[i - 1].name, t[i].name);
        if (begin > at)
            return fail(NJ_E_FORMAT,
                        "%s: %td bytes before tensor %s belong to none; fetch the file again", path,
                        begin - at, t[i].name);
        at = begin + t[i].bytes;
    }
    if (at != end)
        return fail(NJ_E_FORMAT, "%s: %td bytes after the last tensor; fetch the file again", path,
                    end - at);
    return 0;
}

/* Append the tensors of a parsed header. */
static int append_tensors(const char *path, json_t *header, const struct tensor_map *map,
                          uint64_t header_bytes, struct tensors *w)
{
    const size_t first = w->count;
    struct tensor *grown =
        realloc(w->tensor, (first + json_object_size(header) + 1) * sizeof *grown);
    if (!grown)
        return fail(NJ_E_NOMEM, "%s: out of memory for %zu tensors", path,
                    json_object_size(header));
    w->tensor = grown;

    const char *name;
    json_t *entry;
    json_object_foreach(header, name, entry)
    {
        if (strcmp(name, "__metadata__") == 0)
            continue;
        struct tensor *t = &w->tensor[w->count];
        memset(t, 0, sizeof *t);
        int rc = parse_tensor(path, name, entry, map, header_bytes, t);
        if (rc != 0)
            return rc;
        w->count++;
    }
    const unsigned char *base = map->base;
    return check_tiling(path, w->tensor + first, w->count - first, base + 8 + header_bytes,
                        base + map->bytes);
}

/* Map one file and append its tensors to w. w->map must have room for one more. */
static int open_file(const char *path, struct tensors *w)
{
    struct tensor_map *map = &w->map[w->map_count++];
    uint64_t header_bytes = 0;
    TRY(map_file(path, map, &header_bytes));
    json_t *header;
    char where[PATH_BYTES + 16];
    snprintf(where, sizeof where, "%s: header", path);
    const char *text = (const char *)map->base + 8;
    int rc = json_read_text(where, text, (size_t)header_bytes, JSON_REJECT_DUPLICATES,
                            "fetch the file again", &header);
    if (rc == 0 && !json_is_object(header))
        rc = fail(NJ_E_FORMAT, "%s: header: not a JSON object; fetch the file again", path);
    if (rc == 0)
        rc = append_tensors(path, header, map, header_bytes, w);
    json_decref(header);
    return rc;
}

/* ---- a folder ---- */

static int compare_strings(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int sort_names(const char *dir, struct tensors *w)
{
    const struct tensor *twice = tensors_sort(w->tensor, w->count);
    return twice ? fail(NJ_E_FORMAT, "%s: tensor %s is in two files; keep one of them", dir,
                        twice->name)
                 : 0;
}

/* Return whether the tensor's data are in the mapped file m. */
static int lies_in(const struct tensor *t, const struct tensor_map *m)
{
    const char *data = t->data, *base = m->base;
    return data >= base && data <= base + m->bytes;
}

/* Check the index: each tensor is in the shard it names, and there are no other tensors. Its
 * total_size is often that of another type; nothing reads it. */
static int check_index(const char *path, json_t *map, char **shard, const struct tensors *w)
{
    const char *name;
    json_t *file;
    json_object_foreach(map, name, file)
    {
        const struct tensor *t = tensors_find(w, name);
        size_t s = 0;
        while (s + 1 < w->map_count && strcmp(shard[s], json_string_value(file)) != 0)
            s++;
        if (!t || !lies_in(t, &w->map[s]))
            return fail(NJ_E_FORMAT,
                        "%s: tensor %s is not in %s as the index says; fetch both again", path,
                        name, json_string_value(file));
    }
    for (size_t i = 0; i < w->count; i++)
        if (!json_object_get(map, w->tensor[i].name))
            return fail(NJ_E_FORMAT,
                        "%s: tensor %s is in a shard but not in the index; fetch both again", path,
                        w->tensor[i].name);
    return 0;
}

/* List the distinct file names of the index, sorted. Strings belong to map. */
static int list_shards(const char *path, json_t *map, char ***out, size_t *count)
{
    size_t n = 0;
    const char *name;
    json_t *file;
    char **shard = calloc(json_object_size(map) + 1, sizeof *shard);
    if (!shard)
        return fail(NJ_E_NOMEM, "%s: out of memory for %zu names", path, json_object_size(map));
    *out = shard;
    json_object_foreach(map, name, file)
    {
        const char *text = json_string_value(file);
        if (!text || !*text || strchr(text, '/'))
            return fail(NJ_E_FORMAT,
                        "%s: tensor %s: its file must be a name in the same folder; fetch the "
                        "index again",
                        path, name);
        memcpy(&shard[n++], &text, sizeof text);
    }
    qsort(shard, n, sizeof *shard, compare_strings);
    *count = 0;
    for (size_t i = 0; i < n; i++)
        if (i == 0 || strcmp(shard[i], shard[*count - 1]) != 0)
            shard[(*count)++] = shard[i];
    return 0;
}

static int open_shards(const char *dir, const char *path, json_t *index, struct tensors *w)
{
    json_t *map = json_object_get(index, "weight_map");
    char **shard = NULL;
    size_t shards = 0;
    if (!json_is_object(map) || json_object_size(map) == 0)
        return fail(NJ_E_FORMAT, "%s: weight_map is missing or empty; fetch the index again", path);
    int rc = list_shards(path, map, &shard, &shards);
    if (rc != 0)
        goto done;
    w->map = calloc(shards, sizeof *w->map);
    if (!w->map) {
        rc = fail(NJ_E_NOMEM, "%s: out of memory for %zu shards", path, shards);
        goto done;
    }
    for (size_t i = 0; i < shards && rc == 0; i++) {
        char file[PATH_BYTES];
        snprintf(file, sizeof file, "%s/%s", dir, shard[i]);
        rc = open_file(file, w);
    }
    if (rc == 0)
        rc = sort_names(dir, w);
    if (rc == 0)
        rc = check_index(path, map, shard, w);
done:
    free(shard);
    return rc;
}

/* Refuse a folder without safetensors and name its contents, if they are known. */
static int refuse_folder(const char *dir)
{
    static const char *const pickles[] = {"pytorch_model.bin", "pytorch_model.bin.index.json",
                                          "pytorch_model-00001-of-00002.bin"};
    char path[PATH_BYTES];
    for (size_t i = 0; i < sizeof pickles / sizeof *pickles; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, pickles[i]);
        if (access(path, F_OK) == 0)
            return fail(NJ_E_UNSUPPORTED,
                        "%s: PyTorch pickles are not read; save the model with safetensors "
                        "(save_pretrained(..., safe_serialization=True))",
                        path);
    }
    return fail(NJ_E_IO,
                "%s: neither model.safetensors nor " INDEX_NAME " is there; give the folder of a "
                "Hugging Face model",
                dir);
}

static int open_index(const char *dir, struct tensors *w)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/" INDEX_NAME, dir);
    if (access(path, F_OK) != 0)
        return refuse_folder(dir);
    json_t *index;
    int rc = json_read_table(path, "fetch the index again", &index);
    if (rc == 0)
        rc = open_shards(dir, path, index, w);
    json_decref(index);
    return rc;
}

static int open_single(const char *path, struct tensors *w)
{
    w->map = calloc(1, sizeof *w->map);
    if (!w->map)
        return fail(NJ_E_NOMEM, "%s: out of memory", path);
    TRY(open_file(path, w));
    return sort_names(path, w);
}

bool st_is_there(const char *dir)
{
    static const char *const names[] = {"model.safetensors", INDEX_NAME};
    char path[PATH_BYTES];
    bool there = false;
    for (int i = 0; i < 2; i++)
        there = there || (snprintf(path, sizeof path, "%s/%s", dir, names[i]) < PATH_BYTES &&
                          access(path, F_OK) == 0);
    return there;
}

int st_open_parts(const char *dir, struct tensors *out)
{
    char path[PATH_BYTES];
    memset(out, 0, sizeof *out);
    if (strlen(dir) > PATH_BYTES - 512)
        return fail(NJ_E_IO, "%.80s...: the path is too long; use a shorter one", dir);
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    int rc = access(path, F_OK) == 0 ? open_single(path, out) : open_index(dir, out);
    if (rc != 0)
        tensors_close(out);
    return rc;
}

void st_read_ahead(const struct tensors *w)
{
    for (size_t i = 0; i < w->map_count; i++) /* only a hint */
        (void)madvise(w->map[i].base, w->map[i].bytes, MADV_WILLNEED);
}

int st_open(const char *dir, struct tensors *out)
{
    int rc = st_open_parts(dir, out);
    if (rc == 0)
        rc = refuse_parts(dir, out);
    if (rc != 0)
        tensors_close(out);
    return rc;
}

int st_open_file_parts(const char *path, struct tensors *out)
{
    memset(out, 0, sizeof *out);
    const int rc = open_single(path, out);
    if (rc != 0)
        tensors_close(out);
    return rc;
}

int st_open_file(const char *path, struct tensors *out)
{
    int rc = st_open_file_parts(path, out);
    if (rc == 0)
        rc = refuse_parts(path, out);
    if (rc != 0)
        tensors_close(out);
    return rc;
}
