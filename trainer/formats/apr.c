/* SPDX-License-Identifier: Apache-2.0
 *
 * apr.c: see apr.h. Every offset and size is checked against the size of the file before it is
 * used to read.
 */
#include "formats/apr.h"

#include "base/checked.h"
#include "formats/apr_blocks.h"
#include "formats/crc32.h"
#include "formats/cursor.h"
#include "io/error.h"
#include "io/json_text.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define AGAIN "fetch the file again, or import the model again"

enum {
    HEADER_BYTES = 64,
    CHECKSUM_AT = 40, /* offset of the checksum of the header's other bytes */
    FOOTER_BYTES = 4, /* size of the checksum of all bytes before it */
    ALIGNMENT = 64,
    METADATA_MOST = 16 << 20,
    NAME_MOST = 127,
    ENTRY_LEAST = 2 + 1 + 1 + 1 + 8 + 8 + 8,
};

struct header {
    uint64_t major, minor, flags, tensors, metadata, metadata_bytes, index, data, checksum;
};

/* ---- the header ---- */

static int check_magic(const struct cursor *c)
{
    if (memcmp(c->at, "APR", 3) != 0)
        return fail(NJ_E_FORMAT,
                    "%s: not an APR file; give one, or the folder of a Hugging Face model",
                    c->path);
    if (c->at[3] != '\0')
        return fail(NJ_E_UNSUPPORTED,
                    "%s: APR version 1; import the model again with an aprender that writes "
                    "version 2",
                    c->path);
    return 0;
}

static int take_header(struct cursor *c, struct header *h)
{
    const struct {
        uint64_t *to;
        size_t bytes;
    } fields[] = {{&h->major, 1},   {&h->minor, 1},    {&h->flags, 2},
                  {&h->tensors, 4}, {&h->metadata, 8}, {&h->metadata_bytes, 4},
                  {&h->index, 8},   {&h->data, 8},     {&h->checksum, 4}};
    unsigned char covered[HEADER_BYTES - 4];
    TRY(check_magic(c));
    memcpy(covered, c->base, CHECKSUM_AT);
    memcpy(covered + CHECKSUM_AT, c->base + CHECKSUM_AT + 4, sizeof covered - CHECKSUM_AT);
    c->at += 4;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        TRY(cursor_number(c, fields[i].bytes, "the header", fields[i].to));
    if (h->major != 2)
        return fail(NJ_E_UNSUPPORTED, "%s: APR version %" PRIu64 "; write the model as version 2",
                    c->path, h->major);
    if (h->checksum != crc32_of(covered, sizeof covered))
        return fail(NJ_E_FORMAT, "%s: the header's checksum is wrong; " AGAIN, c->path);
    return 0;
}

static int check_flags(const char *path, uint64_t flags)
{
    static const struct {
        unsigned flag;
        const char *what, *remedy;
    } refused[] = {
        {1, "compressed (LZ4)", "write it again without compression"},
        {2, "compressed (Zstandard)", "write it again without compression"},
        {4, "encrypted", "decrypt it first"},
        {16, "one of several shards", "write the model as one file"},
        {2048, "laid out by columns", "import the model again"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (flags & refused[i].flag)
            return fail(NJ_E_UNSUPPORTED,
                        "%s: the file is %s; %s, or use a Hugging Face folder or "
                        "GGUF file of the model",
                        path, refused[i].what, refused[i].remedy);
    return 0;
}

/* ---- metadata ---- */

/* Move the cursor to an offset that is followed by this many bytes. */
static int seek(struct cursor *c, uint64_t offset, uint64_t bytes, const char *what)
{
    const uint64_t all = (uint64_t)(c->end - c->base);
    if (offset < HEADER_BYTES || offset > all || bytes > all - offset)
        return fail(NJ_E_FORMAT,
                    "%s: %s has %" PRIu64 " bytes from byte %" PRIu64 " on, in a file of %" PRIu64
                    "; it may be cut short: " AGAIN,
                    c->path, what, bytes, offset, all + FOOTER_BYTES);
    c->at = c->base + offset;
    return 0;
}

/* Parse the metadata. Writers repeat keys; the last counts, as it does for aprender. */
static int take_metadata(struct cursor *c, const struct header *h, struct apr *a)
{
    char where[PATH_BYTES + 16];
    int rc = 0;
    snprintf(where, sizeof where, "%s (metadata)", c->path);
    if (h->metadata_bytes > METADATA_MOST)
        rc = fail(NJ_E_FORMAT, "%s: %" PRIu64 " bytes of metadata; at most %d are allowed: " AGAIN,
                  c->path, h->metadata_bytes, (int)METADATA_MOST);
    if (rc == 0)
        rc = seek(c, h->metadata, h->metadata_bytes, "the metadata");
    if (rc == 0)
        rc = json_read_text(where, (const char *)c->at, (size_t)h->metadata_bytes, 0, AGAIN,
                            &a->metadata);
    if (rc == 0 && !json_is_object(a->metadata))
        rc = fail(NJ_E_FORMAT, "%s: the metadata are not a JSON object; " AGAIN, c->path);
    return rc;
}

json_t *apr_value(const struct apr *a, const char *key)
{
    json_t *value = json_object_get(a->metadata, key);
    return json_is_null(value) ? NULL : value;
}

const char *apr_key(const struct apr *a, const char *const *keys, int count)
{
    for (int i = 0; i < count && keys[i]; i++)
        if (apr_value(a, keys[i]))
            return keys[i];
    return keys[0];
}

/* ---- tensors ---- */

/* Location and type of a tensor's bytes. */
struct place {
    uint64_t offset, bytes;
    const struct type_row *type;
};

enum { REFUSED = -1 };
static const struct type_row {
    const char *name;
    unsigned char id, old_id; /* old_id: id from before the numbers below 128 were ggml's */
    int type;                 /* tensor type of nojit for the bytes in the file */
    enum apr_blocks blocks;
} types[] = {
    {"F32", 0, 0, NJ_TYPE_F32, APR_NONE},     {"F16", 1, 1, NJ_TYPE_F16, APR_NONE},
    {"BF16", 30, 30, NJ_TYPE_BF16, APR_NONE}, {"Q4_K", 12, 12, NJ_TYPE_Q4_K, APR_NONE},
    {"Q6_K", 14, 14, NJ_TYPE_Q6_K, APR_NONE}, {"APR_Q4", 128, 8, NJ_TYPE_F32, APR_Q4},
    {"APR_Q8", 129, 9, NJ_TYPE_F32, APR_Q8},  {"F64", 3, 3, REFUSED, APR_NONE},
    {"I32", 4, 4, REFUSED, APR_NONE},         {"I64", 5, 5, REFUSED, APR_NONE},
    {"I8", 6, 6, REFUSED, APR_NONE},          {"U8", 7, 7, REFUSED, APR_NONE},
    {"MXFP4", 39, 39, REFUSED, APR_NONE},     {"NVFP4", 40, 40, REFUSED, APR_NONE},
};

static int take_name(struct cursor *c, struct tensor *t)
{
    uint64_t bytes;
    TRY(cursor_number(c, 2, "the list of tensors", &bytes));
    if (bytes == 0 || bytes > NAME_MOST)
        return fail(NJ_E_FORMAT,
                    "%s: a tensor's name has %" PRIu64 " bytes; 1 to %d are allowed: " AGAIN,
                    c->path, bytes, (int)NAME_MOST);
    if (bytes > cursor_left(c))
        return cursor_short(c, "a tensor's name");
    if (memchr(c->at, '\0', (size_t)bytes) != NULL)
        return fail(NJ_E_FORMAT, "%s: a tensor's name holds a zero byte; " AGAIN, c->path);
    memcpy(t->name, c->at, (size_t)bytes);
    c->at += bytes;
    return 0;
}

static int take_type(struct cursor *c, struct tensor *t, struct place *p)
{
    uint64_t id;
    TRY(cursor_number(c, 1, t->name, &id));
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].id == id || types[i].old_id == id)
            p->type = &types[i];
    if (!p->type)
        return fail(NJ_E_FORMAT,
                    "%s: tensor %s has the type %" PRIu64 ", which APR does not know; " AGAIN,
                    c->path, t->name, id);
    if (p->type->type == REFUSED)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: tensor %s is %s, which is not supported; import the model again as Q4_K "
                    "or F16, or use its Hugging Face folder or GGUF file",
                    c->path, t->name, p->type->name);
    t->dtype = (enum nj_tensor_type)p->type->type;
    return 0;
}

static int take_shape(struct cursor *c, struct tensor *t, uint64_t *elements)
{
    uint64_t rank, size;
    int rc = cursor_number(c, 1, t->name, &rank);
    *elements = 1;
    if (rc == 0 && (rank < 1 || rank > 4))
        rc = fail(NJ_E_FORMAT,
                  "%s: tensor %s has %" PRIu64 " dimensions; 1 to 4 are allowed: " AGAIN, c->path,
                  t->name, rank);
    t->rank = rc == 0 ? (int)rank : 0;
    for (int i = 0; rc == 0 && i < t->rank; i++) {
        rc = cursor_number(c, 8, t->name, &size);
        if (rc == 0 && (size == 0 || __builtin_mul_overflow(*elements, size, elements) ||
                        *elements > (uint64_t)1 << 56))
            rc = fail(NJ_E_FORMAT, "%s: tensor %s: its shape is empty or too large; " AGAIN,
                      c->path, t->name);
        t->shape[i] = (int64_t)size;
    }
    return rc;
}

/* Check the number of bytes that the file gives for a tensor against its type and shape. */
static int check_bytes(const struct cursor *c, const struct tensor *t, const struct place *p,
                       uint64_t elements)
{
    const int64_t columns = t->shape[t->rank - 1], block = tensor_type_block(t->dtype);
    const bool quantized = block > 1 || p->type->blocks != APR_NONE;
    if (quantized && t->rank != 2)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: tensor %s is %s; norms and biases must be F32, F16 or BF16: import the "
                    "model again",
                    c->path, t->name, p->type->name);
    if (columns % block != 0)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: tensor %s has rows of %" PRId64 " elements, which are not whole blocks of "
                    "%s, %" PRId64 " each; use the model's Hugging Face folder or GGUF file",
                    c->path, t->name, columns, p->type->name, block);
    const uint64_t due = p->type->blocks != APR_NONE
                             ? apr_blocks_bytes(p->type->blocks, elements)
                             : tensor_type_bytes(t->dtype, (int64_t)elements);
    if (p->bytes != due)
        return fail(NJ_E_FORMAT,
                    "%s: tensor %s has %" PRIu64 " bytes, where %s of its shape has %" PRIu64
                    "; " AGAIN,
                    c->path, t->name, p->bytes, p->type->name, due);
    return 0;
}

static int take_tensor(struct cursor *c, struct tensor *t, struct place *p)
{
    uint64_t elements;
    TRY(take_name(c, t));
    TRY(take_type(c, t, p));
    TRY(take_shape(c, t, &elements));
    TRY(cursor_number(c, 8, t->name, &p->offset));
    TRY(cursor_number(c, 8, t->name, &p->bytes));
    return check_bytes(c, t, p, elements);
}

/* Read the index; names ascend, so none occurs twice. */
static int take_index(struct cursor *c, struct tensors *w, struct place *place, uint64_t count)
{
    for (; w->count < count; w->count++) {
        struct tensor *t = &w->tensor[w->count];
        TRY(take_tensor(c, t, &place[w->count]));
        if (w->count > 0 && strcmp(t[-1].name, t->name) >= 0)
            return fail(NJ_E_FORMAT, "%s: tensor %s follows %s, out of order; " AGAIN, c->path,
                        t->name, t[-1].name);
    }
    return 0;
}

static int place_tensors(struct cursor *c, const struct header *h, struct tensors *w,
                         const struct place *place)
{
    const uint64_t index_end = (uint64_t)(c->at - c->base);
    const uint64_t metadata_end = h->metadata + h->metadata_bytes;
    const uint64_t end = index_end > metadata_end ? index_end : metadata_end;
    if (h->data % ALIGNMENT != 0)
        return fail(NJ_E_FORMAT,
                    "%s: the data begin at byte %" PRIu64 ", no multiple of %d; " AGAIN, c->path,
                    h->data, (int)ALIGNMENT);
    if (w->count > 0 && h->data < end)
        return fail(NJ_E_FORMAT,
                    "%s: the data begin at byte %" PRIu64 ", before the metadata and the list of "
                    "tensors end; " AGAIN,
                    c->path, h->data);
    for (size_t i = 0; i < w->count; i++) {
        struct tensor *t = &w->tensor[i];
        if (place[i].offset % ALIGNMENT != 0)
            return fail(NJ_E_FORMAT,
                        "%s: tensor %s begins at byte %" PRIu64
                        " of the data, no multiple of %d; " AGAIN,
                        c->path, t->name, place[i].offset, (int)ALIGNMENT);
        TRY(seek(c, size_add(h->data, place[i].offset), place[i].bytes, t->name));
        t->data = c->at;
        t->bytes = (size_t)place[i].bytes;
    }
    return 0;
}

/* Fill in the tensors. The index is sorted by name, and so is the list again after the check for
 * overlaps. */
static int fill(struct cursor *c, const struct header *h, struct tensors *w, struct place *place)
{
    TRY(take_index(c, w, place, h->tensors));
    TRY(place_tensors(c, h, w, place));
    TRY(tensors_check_overlap(c->path, w->tensor, w->count));
    tensors_sort(w->tensor, w->count);
    for (size_t i = 0; i < w->count; i++)
        apr_blocks_pack(place[i].type->blocks, &w->packed[i], &w->tensor[i]);
    return 0;
}

static int take_tensors(struct cursor *c, const struct header *h, struct tensors *w)
{
    TRY(seek(c, h->index, size_mul(h->tensors, ENTRY_LEAST), "the list of tensors"));
    struct place *place = calloc((size_t)h->tensors + 1, sizeof *place);
    w->tensor = calloc((size_t)h->tensors + 1, sizeof *w->tensor);
    w->packed = calloc((size_t)h->tensors + 1, sizeof *w->packed);
    const int rc =
        place && w->tensor && w->packed
            ? fill(c, h, w, place)
            : fail(NJ_E_NOMEM, "%s: out of memory for %" PRIu64 " tensors", c->path, h->tensors);
    free(place);
    return rc;
}

/* ---- a file ---- */

static int open_file(struct apr *a)
{
    struct header h;
    struct cursor c;
    TRY(cursor_open(a->path, "an APR", HEADER_BYTES + FOOTER_BYTES, "give the path of an APR file",
                    &a->tensors, &c));
    TRY(take_header(&c, &h));
    TRY(check_flags(a->path, h.flags));
    c.end -= FOOTER_BYTES;
    TRY(take_metadata(&c, &h, a));
    return take_tensors(&c, &h, &a->tensors);
}

int apr_open(const char *path, struct apr *out)
{
    memset(out, 0, sizeof *out);
    if (snprintf(out->path, sizeof out->path, "%s", path) >= (int)sizeof out->path)
        return fail(NJ_E_IO, "%.80s...: the path is too long; use a shorter one", path);
    const int rc = open_file(out);
    if (rc != 0)
        apr_close(out);
    return rc;
}

void apr_close(struct apr *a)
{
    tensors_close(&a->tensors);
    json_decref(a->metadata);
    memset(a, 0, sizeof *a);
}

bool apr_is(const char *path)
{
    char magic[4] = "";
    struct stat st;
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    const bool is = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
                    pread(fd, magic, sizeof magic, 0) == (ssize_t)sizeof magic &&
                    memcmp(magic, "APR", 3) == 0;
    if (fd >= 0)
        close(fd);
    return is && memchr("\0N12", magic[3], 4) != NULL;
}

int apr_check(const char *path, const struct tensors *w)
{
    const unsigned char *base = w->map->base;
    const size_t covered = w->map->bytes - FOOTER_BYTES;
    uint32_t said = 0;
    for (int i = 0; i < FOOTER_BYTES; i++)
        said |= (uint32_t)base[covered + (size_t)i] << 8 * i;
    return said == crc32_of(base, covered)
               ? 0
               : fail(NJ_E_FORMAT,
                      "%s: the checksum at its end is wrong: the file was damaged, or "
                      "is cut short; " AGAIN,
                      path);
}
