/* SPDX-License-Identifier: Apache-2.0
 *
 * data_open.c: the opening of sources: files are found by their paths, opened, scanned and made into rows.
 */
#include "batch/data_struct.h"

#include "base/plural.h"
#include "base/try.h"
#include "data/rows.h"
#include "io/error.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* End a group of the hash. Ids are hashed as int32, 4,096 at a time, each group with the hash before it: the same
 * stream gives the same value for any division into files. A source begins a group. */
static void end_group(struct hasher *h)
{
    h->hash = XXH3_64bits_withSeed(h->group, h->count * sizeof *h->group, h->hash);
    h->count = 0;
}

static int hash_ids(void *user, const int32_t *ids, const unsigned char *flags, size_t n)
{
    struct hasher *h = user;
    (void)flags;
    for (size_t i = 0; i < n; i++) {
        h->group[h->count++] = ids[i];
        if (h->count == sizeof h->group / sizeof *h->group)
            end_group(h);
    }
    return 0;
}

static int open_segments(struct data *d, const struct data_options *o, const struct tokenizer *t,
                         struct file_list *list)
{
    struct segment *grown =
        realloc(d->segment, (d->segment_count + list->count + 1) * sizeof *grown);
    if (!grown)
        return fail(NJ_E_NOMEM, "out of memory for %zu files", list->count);
    d->segment = grown;
    for (size_t i = 0; i < list->count; i++) {
        struct segment *s = &d->segment[d->segment_count++];
        *s = (struct segment){
            .path = list->path[i], .first = d->tokens, .rules = &d->rules, .notes = &d->notes};
        list->path[i] = NULL;
        int rc = segment_open(s, t);
        if (rc == 0)
            rc = segment_scan(s, o->vocab_size, hash_ids, &d->hasher);
        if (rc != 0)
            return rc;
        d->tokens += s->count;
        if (s->count == 0) { /* an empty file is no document */
            segment_close(s);
            d->segment_count--;
        }
    }
    return 0;
}

/* Report why a source has no token. */
static int no_token(const struct data *d, const struct source *s, const char *more)
{
    if (d->notes.unusable > 0)
        return fail(NJ_E_FORMAT, "%s%s: no row can be used; the first: %s", s->name, more,
                    d->notes.first);
    return fail(NJ_E_FORMAT, "%s%s: there is no token in it; give files with text or tokens",
                s->name, more);
}

static int check_rows(const struct data *d, const struct source *s)
{
    const char *more = s->paths > 1 ? " and the others" : "";
    if (s->tokens == 0)
        return no_token(d, s, more);
    if (s->packed.rows == 0 && s->packed.overlong.dropped > 0)
        return fail(NJ_E_FORMAT,
                    "%s%s: each document is longer than a sequence of %d, so none remains; raise "
                    "--seq-len (the longest takes %" PRId64 ")",
                    s->name, more, d->S, s->packed.overlong.longest - 1);
    if (s->packed.rows == 0 && d->packing != PACKING_WRAPPED)
        return fail(NJ_E_FORMAT,
                    "%s%s: no document has two tokens, so there is nothing to predict; give more "
                    "data",
                    s->name, more);
    if (s->packed.rows == 0)
        return fail(NJ_E_FORMAT,
                    "%s%s: %" PRId64 " token%s, fewer than one sequence of %d + 1; give more data "
                    "or at most --seq-len %" PRId64,
                    s->name, more, s->tokens, plural(s->tokens), d->S,
                    s->tokens > 1 ? s->tokens - 1 : 1);
    return 0;
}

static int open_source(struct data *d, const struct data_options *o, const struct tokenizer *t,
                       const char *const *paths, size_t count, double weight)
{
    struct source *s = &d->source[d->order.count];
    struct share *share = &d->order.share[d->order.count++];
    const int64_t tokens = d->tokens;
    struct file_list list;
    s->first = d->segment_count;
    s->paths = count;
    s->name = strdup(count ? paths[0] : "--data");
    if (!s->name)
        return fail(NJ_E_NOMEM, "out of memory");
    int rc = files_collect(paths, count, &o->split, &list, &d->passed);
    if (rc == 0)
        rc = open_segments(d, o, t, &list);
    files_free(&list);
    end_group(&d->hasher);
    s->segments = d->segment_count - s->first;
    s->tokens = d->tokens - tokens;
    share->weight = weight;
    return rc;
}

/* Return whether a file has prompts: parts that are answered, or tokens without a loss. */
static bool has_prompts(const struct data *d)
{
    size_t i = 0;
    while (i < d->segment_count && !d->segment[i].answers && !d->segment[i].owned_mask &&
           d->segment[i].mask_at == 0)
        i++;
    return i < d->segment_count;
}

/* Make the rows of all sources, whose files are open. Held-out data is never cut off: each target counts once. */
static int pack_sources(struct data *d, const struct data_options *o)
{
    const bool decide = o->packing == PACKING_AUTO;
    d->packing = !decide ? o->packing : has_prompts(d) ? PACKING_BFD : PACKING_WRAPPED;
    const struct packing_rules rules = {d->packing, o->once ? OVERLONG_SPLIT : o->overlong,
                                        o->seq_len, o->once || o->all_rows};
    int rc = 0;
    if (o->overlong != OVERLONG_AUTO && d->packing == PACKING_WRAPPED)
        return fail(NJ_E_ARG, "--overlong says what becomes of documents longer than a sequence, "
                              "and --packing wrapped cuts all of them; add --packing bfd");
    for (size_t i = 0; i < d->order.count && rc == 0; i++) {
        struct source *s = &d->source[i];
        rc = packed_make(d->segment + s->first, s->segments, &rules, &s->packed);
        d->order.share[i].rows = s->packed.rows;
        if (rc == 0)
            rc = check_rows(d, s);
    }
    return rc;
}

static int open_sources(struct data *d, const struct data_options *o, const struct tokenizer *t)
{
    double sum = 0;
    d->source = calloc(o->path_count + 1, sizeof *d->source);
    d->order.share = calloc(o->path_count + 1, sizeof *d->order.share);
    if (!d->source || !d->order.share)
        return fail(NJ_E_NOMEM, "out of memory for %zu sources", o->path_count);
    for (size_t i = 0; i < o->path_count && o->weights; i++)
        sum += o->weights[i];
    if (!o->weights)
        TRY(open_source(d, o, t, o->paths, o->path_count, 1));
    for (size_t i = 0; i < o->path_count && o->weights; i++)
        if (o->weights[i] > 0)
            TRY(open_source(d, o, t, o->paths + i, 1, o->weights[i] / sum));
    if (d->order.count == 0)
        return fail(NJ_E_ARG, "--data-weights: all are 0; give at least one source a weight");
    TRY(pack_sources(d, o));
    order_divide(&d->order);
    return 0;
}

int data_open(const struct data_options *o, const struct tokenizer *t, struct data **out)
{
    *out = NULL;
    if (o->seq_len < 1 || o->batch_size < 1)
        return fail(NJ_E_ARG, "batches of %d x %d: both --batch-size and --seq-len must be above 0",
                    o->batch_size, o->seq_len);
    struct data *d;
    int rc = data_create(o->seq_len, &d);
    if (rc != 0)
        return rc;
    d->vocab = o->vocab_size;
    d->order.seed = o->seed;
    d->once = o->once;
    d->weighted = o->weights != NULL;
    d->rules = o->rules;

    rc = row_rules_check(&o->rules);
    if (rc == 0)
        rc = open_sources(d, o, t);
    if (rc == 0)
        rc = data_allocate(d, o->batch_size);
    if (rc != 0) {
        data_close(d);
        return rc;
    }
    *out = d;
    return 0;
}
