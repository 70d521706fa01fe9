/* SPDX-License-Identifier: Apache-2.0
 *
 * state_file.c: see state_file.h. Version 2 has a head, a record for each tag, and the contents of the records, in
 * their order. Version 1, with a fixed header before the arrays, can be read.
 */
#include "weights/state_file.h"

#include "base/try.h"
#include "io/error.h"
#include "io/regular.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STATE_VERSION = 2, TAG_BYTES = 16, RECORDS_MOST = 64 };
static const char state_magic[8] = "NJSTATE";

/* Little-endian, no padding: every field lies at a multiple of its size. */
struct head {
    char magic[8];
    uint32_t version, records;
    uint64_t records_hash;
};
struct record {
    char tag[TAG_BYTES]; /* padded with zeros */
    uint64_t bytes, hash;
};
struct header_1 {
    char magic[8];
    uint32_t version;
    uint16_t dtype, kept;
    uint64_t layout;
    int64_t elements, step;
    uint64_t epoch, window;
    float slots[NJ_STEP_SLOTS];
    uint64_t array_hash[STATE_ARRAYS];
    uint64_t header_hash; /* hash of all before it */
};

/* The step comes first, so that a script can find it. */
#define FIELD(name)                                                                                \
    {                                                                                              \
#name, offsetof(struct state_fields, name), sizeof(((struct state_fields *)0)->name)       \
    }
static const struct field {
    const char *tag;
    size_t at, bytes;
} fields[] = {FIELD(step),     FIELD(dtype), FIELD(kept),   FIELD(layout),
              FIELD(elements), FIELD(epoch), FIELD(window), FIELD(slots)};
enum { FIELDS = sizeof fields / sizeof *fields, RECORDS = FIELDS + STATE_ARRAYS };
static const struct {
    const char *tag, *name;
} arrays[STATE_ARRAYS] = {
    {"weights", "weights"}, {"moments.1", "first moments"}, {"moments.2", "second moments"}};

static int io_failed(const struct state_file *s, const char *doing)
{
    if (feof(s->f))
        return fail(NJ_E_FORMAT, "%s: ends too early; take another checkpoint", s->path);
    const bool full = errno == ENOSPC || errno == EDQUOT;
    return fail(NJ_E_IO, "%s: %s failed: %s%s", s->path, doing, strerror(errno),
                full ? "; free space, then continue with --resume auto" : "");
}

static int seek(struct state_file *s, uint64_t at)
{
    return fseeko(s->f, (off_t)at, SEEK_SET) == 0 ? 0 : io_failed(s, "seeking");
}

int state_file_read(struct state_file *s, void *to, size_t bytes)
{
    return fread(to, 1, bytes, s->f) == bytes ? 0 : io_failed(s, "reading");
}

int state_file_write(struct state_file *s, const void *from, size_t bytes)
{
    return fwrite(from, 1, bytes, s->f) == bytes ? 0 : io_failed(s, "writing");
}

int state_file_seek(struct state_file *s, int array)
{
    return seek(s, s->array[array].at);
}

int state_file_check(const struct state_file *s, int array, uint64_t hash)
{
    if (hash == s->array[array].hash)
        return 0;
    return fail(NJ_E_FORMAT, "%s: the %s are damaged; take another checkpoint", s->path,
                arrays[array].name);
}

int state_file_close(struct state_file *s, int rc)
{
    if (fclose(s->f) != 0 && rc == 0)
        rc = fail(NJ_E_IO, "%s: closing failed: %s", s->path, strerror(errno));
    return rc;
}

static int set_path(struct state_file *s, const char *dir)
{
    if (snprintf(s->path, sizeof s->path, "%s/state.bin", dir) < (int)sizeof s->path)
        return 0;
    return fail(NJ_E_ARG, "%s: path too long; use a shorter one", dir);
}

/* ---- writing ---- */

int state_file_create(struct state_file *s, const char *dir, const uint64_t bytes[STATE_ARRAYS])
{
    *s = (struct state_file){.version = STATE_VERSION};
    uint64_t at = sizeof(struct head) + RECORDS * sizeof(struct record);
    for (int i = 0; i < FIELDS; i++)
        at += fields[i].bytes;
    for (int i = 0; i < STATE_ARRAYS; i++) {
        s->array[i] = (struct state_array){.at = at, .bytes = bytes[i]};
        at += bytes[i];
    }
    TRY(set_path(s, dir));
    s->f = fopen(s->path, "wb");
    return s->f ? 0 : fail(NJ_E_IO, "%s: %s", s->path, strerror(errno));
}

static void make_records(const struct state_file *s, struct record record[RECORDS])
{
    memset(record, 0, RECORDS * sizeof *record);
    for (int i = 0; i < FIELDS; i++) {
        snprintf(record[i].tag, sizeof record[i].tag, "%s", fields[i].tag);
        record[i].bytes = fields[i].bytes;
        record[i].hash = XXH3_64bits((const char *)&s->fields + fields[i].at, fields[i].bytes);
    }
    for (int i = 0; i < STATE_ARRAYS; i++) {
        struct record *r = &record[FIELDS + i];
        snprintf(r->tag, sizeof r->tag, "%s", arrays[i].tag);
        r->bytes = s->array[i].bytes;
        r->hash = s->array[i].hash;
    }
}

int state_file_finish(struct state_file *s)
{
    struct record record[RECORDS];
    struct head head = {.version = STATE_VERSION, .records = RECORDS};
    memcpy(head.magic, state_magic, sizeof head.magic);
    make_records(s, record);
    head.records_hash = XXH3_64bits(record, sizeof record);
    TRY(seek(s, 0));
    TRY(state_file_write(s, &head, sizeof head));
    TRY(state_file_write(s, record, sizeof record));
    for (int i = 0; i < FIELDS; i++)
        TRY(state_file_write(s, (const char *)&s->fields + fields[i].at, fields[i].bytes));
    return fflush(s->f) == 0 && fsync(fileno(s->f)) == 0 ? 0 : io_failed(s, "writing");
}

/* ---- reading ---- */

static int not_whole(const struct state_file *s)
{
    return fail(NJ_E_FORMAT, "%s: not a whole training state; take another checkpoint", s->path);
}

static int read_version_1(struct state_file *s)
{
    struct header_1 h;
    TRY(seek(s, 0));
    TRY(state_file_read(s, &h, sizeof h));
    if (h.header_hash != XXH3_64bits(&h, offsetof(struct header_1, header_hash)))
        return not_whole(s);
    s->fields = (struct state_fields){.step = h.step,
                                      .dtype = h.dtype,
                                      .kept = h.kept,
                                      .layout = h.layout,
                                      .elements = h.elements,
                                      .epoch = h.epoch,
                                      .window = h.window};
    memcpy(s->fields.slots, h.slots, sizeof h.slots);
    for (int i = 0; i < STATE_ARRAYS; i++)
        s->array[i].hash = h.array_hash[i];
    s->end = sizeof h;
    return 0;
}

/* Return the number of a record's tag, fields before arrays, or -1. */
static int tag_number(const struct record *r)
{
    for (int i = 0; i < RECORDS; i++) {
        const char *tag = i < FIELDS ? fields[i].tag : arrays[i - FIELDS].tag;
        if (strncmp(r->tag, tag, TAG_BYTES) == 0)
            return i;
    }
    return -1;
}

static int refuse_record(const struct state_file *s, const struct record *r, int code,
                         const char *why)
{
    char tag[TAG_BYTES + 1] = {0};
    for (int i = 0; i < TAG_BYTES && r->tag[i]; i++)
        tag[i] = (char)(isprint((unsigned char)r->tag[i]) ? r->tag[i] : '?');
    return fail(code, "%s: the field '%s' %s", s->path, tag, why);
}

static int read_field(struct state_file *s, const struct record *r, const struct field *to)
{
    char *at = (char *)&s->fields + to->at;
    if (r->bytes != to->bytes)
        return refuse_record(s, r, NJ_E_FORMAT, "has another size; take another checkpoint");
    TRY(state_file_read(s, at, to->bytes));
    if (XXH3_64bits(at, to->bytes) != r->hash)
        return refuse_record(s, r, NJ_E_FORMAT, "is damaged; take another checkpoint");
    return 0;
}

static int read_record(struct state_file *s, const struct record *r, uint64_t at,
                       bool seen[RECORDS])
{
    const int number = tag_number(r);
    if (number < 0)
        return refuse_record(s, r, NJ_E_UNSUPPORTED,
                             "is unknown to this program; continue with the nojit that wrote it");
    if (seen[number])
        return refuse_record(s, r, NJ_E_FORMAT, "is there twice; take another checkpoint");
    seen[number] = true;
    if (number >= FIELDS) {
        s->array[number - FIELDS] = (struct state_array){at, r->bytes, r->hash};
        return 0;
    }
    TRY(seek(s, at));
    return read_field(s, r, &fields[number]);
}

static int read_records(struct state_file *s)
{
    struct head head;
    struct record record[RECORDS_MOST];
    bool seen[RECORDS] = {false};
    TRY(seek(s, 0));
    TRY(state_file_read(s, &head, sizeof head));
    if (head.records > RECORDS_MOST)
        return not_whole(s);
    TRY(state_file_read(s, record, head.records * sizeof *record));
    if (head.records_hash != XXH3_64bits(record, head.records * sizeof *record))
        return not_whole(s);
    uint64_t at = sizeof head + head.records * sizeof *record;
    for (uint32_t i = 0; i < head.records; i++) {
        if (record[i].bytes > s->size - at)
            return fail(NJ_E_FORMAT, "%s: ends too early; take another checkpoint", s->path);
        TRY(read_record(s, &record[i], at, seen));
        at += record[i].bytes;
    }
    s->end = at;
    for (int i = 0; i < STATE_ARRAYS; i++)
        if (!seen[FIELDS + i])
            return fail(NJ_E_FORMAT, "%s: lacks its %s; take another checkpoint", s->path,
                        arrays[i].name);
    return 0;
}

static int read_fields(struct state_file *s)
{
    struct {
        char magic[8];
        uint32_t version;
    } start;
    TRY(state_file_read(s, &start, sizeof start));
    if (memcmp(start.magic, state_magic, sizeof start.magic) != 0)
        return not_whole(s);
    s->version = start.version;
    if (start.version == 1)
        return read_version_1(s);
    if (start.version == STATE_VERSION)
        return read_records(s);
    return fail(
        NJ_E_UNSUPPORTED,
        "%s: format version %u, and this program reads versions 1 and %d; continue with the "
        "nojit that wrote it; if that is this one, the file is damaged",
        s->path, start.version, STATE_VERSION);
}

int state_file_open(struct state_file *s, const char *dir)
{
    struct stat st;
    *s = (struct state_file){.f = NULL};
    TRY(set_path(s, dir));
    TRY(regular_open(s->path, 0, "take another checkpoint", &s->f));
    int rc = fstat(fileno(s->f), &st) == 0 ? 0 : io_failed(s, "reading");
    s->size = rc == 0 ? (uint64_t)st.st_size : 0;
    if (rc == 0)
        rc = read_fields(s);
    if (rc != 0)
        fclose(s->f);
    return rc;
}

int state_file_expect(struct state_file *s, const uint64_t bytes[STATE_ARRAYS])
{
    for (int i = 0; i < STATE_ARRAYS; i++) {
        struct state_array *a = &s->array[i];
        if (s->version == 1) {
            *a = (struct state_array){s->end, bytes[i], a->hash};
            s->end += bytes[i];
        }
        if (a->bytes != bytes[i])
            return fail(NJ_E_FORMAT, "%s: the %s have another size; take another checkpoint",
                        s->path, arrays[i].name);
    }
    if (s->end > s->size)
        return fail(NJ_E_FORMAT, "%s: ends too early; take another checkpoint", s->path);
    if (s->end < s->size)
        return fail(NJ_E_FORMAT, "%s: longer than its header says; take another checkpoint",
                    s->path);
    return 0;
}
