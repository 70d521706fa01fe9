/* SPDX-License-Identifier: Apache-2.0
 *
 * token_files.c: the content of one file of data. Text is encoded (text_files.c, jsonl.c); token files are read when a
 * row needs them. The format follows from the first bytes if they are a magic number, otherwise from the extension.
 */
#include "data/token_files.h"

#include "base/checked.h"
#include "base/utf8.h"
#include "data/file_kinds.h"
#include "io/error.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEADER_BYTES = 1024,
    MAGIC_BYTES = 12, /* bytes of the shortest header */
    BLOCK = 4096      /* number of ids that are read at once */
};

/* Set up s with count ids from byte offset on, and mask bits after them if asked for; the file must hold just that. */
static int take_ids(struct segment *s, size_t offset, int64_t count, int id_bytes, int has_mask)
{
    const size_t n = (size_t)count, ids = size_mul(n, (size_t)id_bytes);
    const size_t mask = has_mask ? size_up(n, 8) / 8 : 0;
    const size_t want = size_add(size_add(offset, ids), mask);
    if (count < 0)
        return fail(NJ_E_FORMAT, "%s: %" PRId64 " tokens are declared; make it again", s->path,
                    count);
    if (want == SIZE_MAX || s->file.bytes != want)
        return fail(NJ_E_FORMAT,
                    "%s: %" PRId64 " tokens are declared, which makes %zu bytes; the file has %zu: "
                    "make it again",
                    s->path, count, want, s->file.bytes);
    s->count = count;
    s->id_bytes = id_bytes;
    s->ids_at = offset;
    s->mask_at = has_mask ? offset + ids : 0;
    return 0;
}

/* ---- formats ---- */

/* Open a file of llm.c: 256 int32 (magic, version, count), then ids. */
static int open_llmc(struct segment *s, const struct tokenizer *t)
{
    (void)t;
    int32_t head[3];
    TRY(data_file_read(&s->file, 0, head, sizeof head));
    if (s->file.bytes < HEADER_BYTES || head[1] != 1)
        return fail(NJ_E_FORMAT,
                    "%s: llm.c token file of version %d; version 1 is supported: encode the text "
                    "again with `nojit tokenize`",
                    s->path, head[1]);
    return take_ids(s, HEADER_BYTES, head[2], 2, 0);
}

/* Open a file of LLM.Q: "BIN.TOK\n", int32 version, bytes per id, count, vocabulary, whether it has masks; ids from
 * byte 1024 on. */
static int open_llmq(struct segment *s, const struct tokenizer *t)
{
    (void)t;
    int32_t head[5] = {0};
    if (s->file.bytes >= HEADER_BYTES)
        TRY(data_file_read(&s->file, 8, head, sizeof head));
    if (head[0] != 2 || head[1] != 4)
        return fail(
            NJ_E_FORMAT,
            "%s: LLM.Q token file of version %d with %d bytes per token; version 2 with 4 is "
            "supported: encode the text again with `nojit tokenize`",
            s->path, head[0], head[1]);
    return take_ids(s, HEADER_BYTES, head[2], 4, head[4] != 0);
}

static int open_raw(struct segment *s, int id_bytes)
{
    if (s->file.bytes % (size_t)id_bytes != 0)
        return fail(NJ_E_FORMAT,
                    "%s: %zu bytes are not a whole number of %d-byte ids; make it again", s->path,
                    s->file.bytes, id_bytes);
    return take_ids(s, 0, (int64_t)(s->file.bytes / (size_t)id_bytes), id_bytes, 0);
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

static const struct {
    const char *magic;
    size_t bytes;
    int (*open)(struct segment *s, const struct tokenizer *t);
} magics[] = {
    {"\x88\xd8\x34\x01", 4, open_llmc}, /* 20240520 */
    {"BIN.TOK\n", 8, open_llmq},
};

static int open_magic(struct segment *s, const struct tokenizer *t, bool *known)
{
    char magic[MAGIC_BYTES] = "";
    *known = false;
    if (s->file.bytes < sizeof magic)
        return 0;
    TRY(data_file_read(&s->file, 0, magic, sizeof magic));
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if (memcmp(magic, magics[i].magic, magics[i].bytes) == 0) {
            *known = true;
            return magics[i].open(s, t);
        }
    return 0;
}

static int open_tokens(struct segment *s, const struct tokenizer *t)
{
    bool known;
    const int rc = open_magic(s, t, &known);
    return rc != 0 || known
               ? rc
               : fail(NJ_E_UNSUPPORTED,
                      "%s: not a token file of llm.c or LLM.Q; make it with `nojit tokenize`, "
                      "or rename a file of bare ids to end in .u16 or .u32",
                      s->path);
}

/* Return whether the first bytes of a file are UTF-8 without a NUL. */
static int looks_like_text(struct data_file *f, bool *text)
{
    const int rc = data_file_fill(f, 1 << 16);
    const unsigned char *bytes = (const unsigned char *)f->text;
    uint32_t cp = 0;
    size_t at = 0;
    while (rc == 0 && at < f->have && cp != NOT_UTF8)
        at += utf8_next(bytes + at, f->have - at, &cp);
    /* The last character may continue in the next bytes. */
    *text = cp != NOT_UTF8 || (!data_file_ended(f) && at + 3 > f->have);
    *text = *text && (f->have == 0 || memchr(bytes, '\0', f->have) == NULL);
    return rc;
}

/* Open a file whose name does not say what it holds: tokens, or a text that the user named. */
static int open_unnamed(struct segment *s, const struct tokenizer *t)
{
    bool known, text = false;
    int rc = open_magic(s, t, &known);
    if (rc != 0 || known)
        return rc;
    rc = looks_like_text(&s->file, &text);
    if (rc != 0 || text)
        return rc != 0 ? rc : open_text(s, t);
    return fail(NJ_E_UNSUPPORTED,
                "%s: neither a token file of llm.c or LLM.Q nor text in UTF-8; convert text with "
                "iconv, or rename a file of bare ids to end in .u16 or .u32",
                s->path);
}

/* ---- which format ---- */

/* Functions that open a file, in the order of enum file_format. */
static int (*const openers[])(struct segment *s, const struct tokenizer *t) = {
    open_unnamed, open_text, open_u16, open_u32, open_tokens, open_rows, open_rows,
};

static int open_format(struct segment *s, const struct tokenizer *t)
{
    struct file_kind kind;
    TRY(file_kind_of(s->path, &kind));
    TRY(data_file_open(&s->file, s->path));
    TRY(data_file_unpack(&s->file, kind.packing));
    return openers[kind.format](s, t);
}

int segment_open(struct segment *s, const struct tokenizer *t)
{
    s->end_of_text = t ? t->end_of_text : -1;
    const int rc = open_format(s, t);
    if (s->owned || rc != 0)
        data_file_close(&s->file);
    return rc;
}

void segment_close(struct segment *s)
{
    data_file_close(&s->file);
    free(s->owned);
    free(s->owned_mask);
    free(s->owned_ends);
    free(s->path);
    memset(s, 0, sizeof *s);
}

/* ---- reading ---- */

/* Widen 16-bit ids, which are in the upper half of the output, so that none is overwritten before it is read. */
static void widen(int32_t *ids, size_t n)
{
    const char *from = (const char *)ids + n * sizeof(uint16_t);
    for (size_t i = 0; i < n; i++) {
        uint16_t id;
        memcpy(&id, from + i * sizeof id, sizeof id);
        ids[i] = id;
    }
}

static int read_ids(const struct segment *s, int64_t first, size_t n, int32_t *ids)
{
    const size_t size = (size_t)s->id_bytes, from = (size_t)first * size;
    char *to = (char *)ids + n * (sizeof *ids - size);
    int rc = 0;
    if (s->owned)
        memcpy(to, (const char *)s->owned + from, n * size);
    else
        rc = data_file_read(&s->file, s->ids_at + from, to, n * size);
    if (rc == 0 && size == sizeof(uint16_t))
        widen(ids, n);
    return rc;
}

/* Add a flag to the tokens whose bit is set; bits: from the byte of the first token's bit on. */
static void flag_by_bits(const uint8_t *bits, int64_t first, size_t n, enum token_flag flag,
                         unsigned char *flags)
{
    for (size_t i = 0, bit = (size_t)(first % 8); i < n; i++, bit++)
        if (bits[bit / 8] >> (bit % 8) & 1)
            flags[i] |= (unsigned char)flag;
}

static int flag_trained(const struct segment *s, int64_t first, size_t n, unsigned char *flags)
{
    unsigned char buffer[BLOCK / 8 + 1];
    const unsigned char *bits = s->owned_mask ? s->owned_mask + first / 8 : buffer;
    memset(flags, s->owned_mask || s->mask_at > 0 ? 0 : TOKEN_TRAINED, n);
    if (!s->owned_mask && s->mask_at == 0)
        return 0;
    if (!s->owned_mask) {
        const size_t bytes = ((size_t)(first % 8) + n + 7) / 8;
        TRY(data_file_read(&s->file, s->mask_at + (size_t)first / 8, buffer, bytes));
    }
    flag_by_bits(bits, first, n, TOKEN_TRAINED, flags);
    return 0;
}

static void flag_ends(const struct segment *s, int64_t first, size_t n, const int32_t *ids,
                      unsigned char *flags)
{
    if (s->owned_ends)
        flag_by_bits(s->owned_ends + first / 8, first, n, TOKEN_ENDS, flags);
    for (size_t i = 0; i < n && !s->owned_ends; i++)
        if (ids[i] == s->end_of_text)
            flags[i] |= TOKEN_ENDS;
    if (n > 0 && first + (int64_t)n == s->count)
        flags[n - 1] |= TOKEN_ENDS;
}

int segment_read(const struct segment *s, int64_t first, size_t n, int32_t *ids,
                 unsigned char *flags)
{
    for (size_t at = 0; at < n; at += BLOCK) {
        const size_t count = n - at < BLOCK ? n - at : BLOCK;
        TRY(read_ids(s, first + (int64_t)at, count, ids + at));
        TRY(flag_trained(s, first + (int64_t)at, count, flags + at));
        flag_ends(s, first + (int64_t)at, count, ids + at, flags + at);
    }
    return 0;
}

static int refuse_id(const struct segment *s, int64_t at, int32_t id, int vocab_size)
{
    if (s->owned && id == s->end_of_text)
        return fail(NJ_E_FORMAT,
                    "%s: texts end with eos_token_id of the model's config.json, %d, and the "
                    "vocabulary ends at %d; correct eos_token_id",
                    s->path, id, vocab_size - 1);
    return fail(NJ_E_FORMAT,
                "%s: token %" PRId64 " is %d, the vocabulary of this run ends at %d; "
                "leave that token out, or make the file with this model's tokenizer",
                s->path, at, id, vocab_size - 1);
}

int segment_check(const struct segment *s, int64_t first, size_t n, const int32_t *ids,
                  int vocab_size)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= vocab_size)
            return refuse_id(s, first + (int64_t)i, ids[i], vocab_size);
    return 0;
}

int segment_scan(const struct segment *s, int vocab_size, segment_visit *visit, void *user)
{
    int32_t ids[BLOCK];
    unsigned char flags[BLOCK];
    for (int64_t at = 0; at < s->count; at += BLOCK) {
        const size_t n = s->count - at < BLOCK ? (size_t)(s->count - at) : BLOCK;
        TRY(segment_read(s, at, n, ids, flags));
        TRY(segment_check(s, at, n, ids, vocab_size));
        TRY(visit(user, ids, flags, n));
    }
    return 0;
}
