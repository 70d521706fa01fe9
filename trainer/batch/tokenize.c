/* SPDX-License-Identifier: Apache-2.0
 *
 * tokenize.c: encoding of text files into one token file: ids as they come, then, if some have no loss, a bit for each;
 * the header, which counts them, is written last.
 */
#include "batch/tokenize.h"

#include "base/grow.h"
#include "base/try.h"
#include "data/rows.h"
#include "data/token_files.h"
#include "io/error.h"
#include "io/whole_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { HEADER_BYTES = 1024 };

struct writer {
    struct whole_file out;
    uint8_t *mask;
    size_t mask_bytes;
    struct tokenized *done;
    const struct segment *from; /* segment that is being written */
};

static int write_failed(const struct writer *w)
{
    return fail(NJ_E_IO, "%s: cannot be written: %s", w->out.path, strerror(errno));
}

static int begin(struct writer *w, const char *path)
{
    static const char nothing[HEADER_BYTES];
    struct stat info;
    if (lstat(path, &info) == 0)
        return fail(NJ_E_IO, "%s: exists; choose another name or remove it", path);
    TRY(whole_file_begin(&w->out, path));
    w->out.must_be_new = true;
    return fwrite(nothing, 1, sizeof nothing, w->out.f) == sizeof nothing ? 0 : write_failed(w);
}

/* Remember whether the next id has a loss. */
static int put_loss(struct writer *w, bool loss)
{
    const size_t i = (size_t)w->done->tokens;
    const size_t had = w->mask_bytes;
    if (!GROW(w->mask, w->mask_bytes, i / 8 + 1))
        return fail(NJ_E_NOMEM, "%s: out of memory for %zu bits", w->out.path, i + 1);
    memset(w->mask + had, 0, w->mask_bytes - had);
    if (loss)
        w->mask[i / 8] |= (uint8_t)(1u << i % 8);
    else
        w->done->without_loss++;
    w->done->tokens++;
    return 0;
}

/* Refuse a document with the id that ends documents in its middle: the file would have two documents. */
static int check_end(const struct writer *w, int32_t id, unsigned char flags)
{
    if (id != w->from->end_of_text || flags & TOKEN_ENDS)
        return 0;
    return fail(
        NJ_E_UNSUPPORTED,
        "%s: a document has the token that ends documents (%d) in its midst, and in a token "
        "file nothing else ends them; train on the rows themselves, or set eos_token_id of "
        "config.json to another token",
        w->from->path, id);
}

static int put_ids(void *user, const int32_t *ids, const unsigned char *flags, size_t n)
{
    struct writer *w = user;
    if ((int64_t)n > INT_MAX - w->done->tokens)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: a token file holds 2,147,483,647 tokens at most; write several",
                    w->out.path);
    if (fwrite(ids, sizeof *ids, n, w->out.f) != n)
        return write_failed(w);
    for (size_t i = 0; i < n; i++) {
        TRY(check_end(w, ids[i], flags[i]));
        TRY(put_loss(w, flags[i] & TOKEN_TRAINED));
    }
    return 0;
}

/* Report why nothing was written. */
static int no_token(const struct writer *w)
{
    if (w->done->notes.unusable > 0)
        return fail(NJ_E_FORMAT, "%s: not written: no row can be used; the first: %s", w->out.path,
                    w->done->notes.first);
    return fail(NJ_E_FORMAT, "%s: not written: there is no text in the data", w->out.path);
}

/* Write mask and header. */
static int finish(struct writer *w, const struct tokenizer *t)
{
    const size_t mask = w->done->without_loss > 0 ? ((size_t)w->done->tokens + 7) / 8 : 0;
    const int32_t head[5] = {2, 4, (int32_t)w->done->tokens, t->vocab_size, mask > 0};
    if (w->done->tokens == 0)
        return no_token(w);
    if (mask > 0 && fwrite(w->mask, 1, mask, w->out.f) != mask)
        return write_failed(w);
    if (fseek(w->out.f, 0, SEEK_SET) != 0 || fwrite("BIN.TOK\n", 1, 8, w->out.f) != 8 ||
        fwrite(head, sizeof head, 1, w->out.f) != 1)
        return write_failed(w);
    return 0;
}

static int end(struct writer *w, int rc)
{
    free(w->mask);
    if (!w->out.f)
        return rc;
    return whole_file_end(&w->out, rc);
}

int tokenize(const char *const *paths, size_t count, const struct row_rules *rules,
             const struct split_choice *split, const struct tokenizer *t, const char *out,
             struct tokenized *done)
{
    struct file_list list = {0};
    struct writer w = {.done = done};
    memset(done, 0, sizeof *done);
    if (t->vocab_size == 0)
        return fail(NJ_E_UNSUPPORTED, "%s", t->refusal);
    int rc = row_rules_check(rules);
    if (rc == 0)
        rc = files_collect(paths, count, split, &list, &done->passed);
    if (rc == 0)
        rc = begin(&w, out);
    for (size_t i = 0; i < list.count && rc == 0; i++) {
        struct segment s = {.path = list.path[i], .rules = rules, .notes = &done->notes};
        struct stat info;
        list.path[i] = NULL;
        done->bytes += stat(s.path, &info) == 0 ? (double)info.st_size : 0;
        w.from = &s;
        rc = segment_open(&s, t);
        if (rc == 0)
            rc = segment_scan(&s, t->vocab_size, put_ids, &w);
        done->files += s.count > 0;
        segment_close(&s);
    }
    if (rc == 0)
        rc = finish(&w, t);
    rc = end(&w, rc);
    files_free(&list);
    return rc;
}

int tokenize_bytes(const char *const *paths, size_t count, const struct split_choice *split,
                   double *bytes)
{
    struct file_list list;
    struct stat info;
    *bytes = 0;
    int rc = files_collect(paths, count, split, &list, NULL);
    for (size_t i = 0; i < list.count && rc == 0; i++)
        *bytes += stat(list.path[i], &info) == 0 ? (double)info.st_size : 0;
    files_free(&list);
    return rc;
}
