/* SPDX-License-Identifier: Apache-2.0
 *
 * token_files.c: what one file of data holds. Text is encoded (text_files.c, jsonl.c); token files
 * are mapped and used as they lie. The format follows from the first bytes where it has a magic
 * number, else from the extension.
 */
#include "token_files.h"

#include "error.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_BYTES 1024

static const char *extension_of(const char *path)
{
    const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
    return dot && (!slash || dot > slash) ? dot : "";
}

/* Maps the file; an empty one has map NULL. */
static int map_file(struct segment *s)
{
    /* Not blocking, so that a pipe is refused below instead of waited for. */
    int fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return fail(NJ_E_IO, "%s: %s; check the path", s->path, strerror(errno));
    struct stat info;
    int rc = NJ_OK;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        rc = fail(NJ_E_IO, "%s: not a regular file; give files, folders or globs", s->path);
    } else if (info.st_size > 0) {
        void *base = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (base == MAP_FAILED) {
            rc = fail(NJ_E_IO, "%s: cannot read it: %s", s->path, strerror(errno));
        } else {
            s->map = base;
            s->map_bytes = (size_t)info.st_size;
        }
    }
    close(fd);
    return rc;
}

/* Points s at count ids from byte offset on, mask bits after them if asked for; the file must hold
 * just that. */
static int take_ids(struct segment *s, size_t offset, int64_t count, int id_bytes, int has_mask)
{
    const size_t ids = (size_t)count * (size_t)id_bytes;
    const size_t want = offset + ids + (has_mask ? ((size_t)count + 7) / 8 : 0);
    if (count < 0 || s->map_bytes != want)
        return fail(NJ_E_FORMAT,
                    "%s: %" PRId64 " tokens are declared, which makes %zu bytes; the file has %zu: "
                    "make it again",
                    s->path, count, want, s->map_bytes);
    s->count = count;
    s->id_bytes = id_bytes;
    s->ids = (const char *)s->map + offset;
    s->mask = has_mask ? (const uint8_t *)s->map + offset + ids : NULL;
    return NJ_OK;
}

/* ---- formats ---- */

/* llm.c: 256 int32 (magic, version, count), then ids. */
static int open_llmc(struct segment *s, const struct tokenizer *t)
{
    (void)t;
    int32_t head[3];
    memcpy(head, s->map, sizeof head);
    if (s->map_bytes < HEADER_BYTES || head[1] != 1)
        return fail(NJ_E_FORMAT,
                    "%s: llm.c token file of version %d; version 1 is supported: make it again",
                    s->path, head[1]);
    return take_ids(s, HEADER_BYTES, head[2], 2, 0);
}

/* LLM.Q: "BIN.TOK\n", int32 version, bytes an id, count, vocabulary, has masks; ids from byte 1024
 * on. */
static int open_llmq(struct segment *s, const struct tokenizer *t)
{
    (void)t;
    int32_t head[5] = {0};
    if (s->map_bytes >= HEADER_BYTES)
        memcpy(head, (const char *)s->map + 8, sizeof head);
    if (head[0] != 2 || head[1] != 4)
        return fail(NJ_E_FORMAT,
                    "%s: LLM.Q token file of version %d with %d bytes a token; version 2 with 4 is "
                    "supported: make it again",
                    s->path, head[0], head[1]);
    return take_ids(s, HEADER_BYTES, head[2], 4, head[4] != 0);
}

static int open_raw(struct segment *s, int id_bytes)
{
    if (s->map_bytes % (size_t)id_bytes != 0)
        return fail(NJ_E_FORMAT, "%s: %zu bytes are no whole number of %d-byte ids; make it again",
                    s->path, s->map_bytes, id_bytes);
    if (s->map_bytes == 0) /* nothing is mapped */
        return NJ_OK;
    return take_ids(s, 0, (int64_t)(s->map_bytes / (size_t)id_bytes), id_bytes, 0);
}

static int open_u16(struct segment *s, const struct tokenizer *t)
{
    (void)t;
    return open_raw(s, 2);
}

static int open_u32(struct segment *s, const struct tokenizer *t)
{
    (void)t;
    return open_raw(s, 4);
}

/* ---- which format ---- */

static const struct format {
    const char *extension;
    int (*open)(struct segment *s, const struct tokenizer *t);
    const char *refusal; /* for those that are known but not read */
} formats[] = {
    {".txt", open_text, NULL},
    {".u16", open_u16, NULL},
    {".u32", open_u32, NULL},
    {".jsonl", open_jsonl, NULL},
    {".parquet", NULL, "Parquet is not read; write it as .jsonl"},
    {".apr", NULL,
     "an .apr file is not read; export its tokens as .u16 or .u32, or its text as .txt"},
};

static const struct {
    const char *magic;
    size_t bytes;
    int (*open)(struct segment *s, const struct tokenizer *t);
} magics[] = {
    {"\x88\xd8\x34\x01", 4, open_llmc}, /* 20240520 */
    {"BIN.TOK\n", 8, open_llmq},
};

static const struct format *format_find(const char *extension)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcasecmp(extension, formats[i].extension) == 0)
            return &formats[i];
    return NULL;
}

static int open_format(struct segment *s, const struct tokenizer *t)
{
    const struct format *format = format_find(extension_of(s->path));
    if (format && format->refusal)
        return fail(NJ_E_UNSUPPORTED, "%s: %s", s->path, format->refusal);
    int rc = map_file(s);
    if (rc)
        return rc;
    if (format)
        return format->open(s, t);
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if (s->map_bytes >= 12 && memcmp(s->map, magics[i].magic, magics[i].bytes) == 0)
            return magics[i].open(s, t);
    return fail(
        NJ_E_UNSUPPORTED,
        "%s: not a token file of llm.c or LLM.Q, and its name does not say what else; end it "
        "in .txt (text), .jsonl (JSON lines), .u16 or .u32 (bare ids)",
        s->path);
}

static int check_ids(const struct segment *s, int vocab_size)
{
    for (int64_t i = 0; i < s->count; i++) {
        int32_t id = segment_id(s, i);
        if (id < 0 || id >= vocab_size)
            return fail(NJ_E_FORMAT,
                        "%s: token %" PRId64 " is %d, the vocabulary of this run ends at %d; leave "
                        "that token out, or make the file with this model's tokenizer",
                        s->path, i, id, vocab_size - 1);
    }
    return NJ_OK;
}

int segment_open(struct segment *s, const struct tokenizer *t, int vocab_size)
{
    int rc = open_format(s, t);
    return rc ? rc : check_ids(s, vocab_size);
}

void segment_close(struct segment *s)
{
    if (s->map)
        munmap(s->map, s->map_bytes);
    free(s->owned);
    free(s->owned_mask);
    free(s->path);
    memset(s, 0, sizeof *s);
}

int32_t segment_id(const struct segment *s, int64_t i)
{
    return s->id_bytes == 2 ? ((const uint16_t *)s->ids)[i] : ((const int32_t *)s->ids)[i];
}

int segment_has_loss(const struct segment *s, int64_t i)
{
    return !s->mask || (s->mask[i / 8] >> (i % 8) & 1);
}

int path_is_data(const char *path)
{
    const char *extension = extension_of(path);
    return strcasecmp(extension, ".bin") == 0 || format_find(extension) != NULL;
}
