/* SPDX-License-Identifier: Apache-2.0
 *
 * blobindex.c: checks an index: it must have the layout that pack writes and no other, so that every byte has one
 * meaning.
 */
#include "check/blobindex.h"

#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Check the offsets, which follow from the counts: arrays are adjacent, in one order. */
static int check_layout(const struct nji_header *h, uint64_t section_bytes, char why[WHY_BYTES])
{
    uint64_t archs = sizeof(*h);
    uint64_t entries = archs + (uint64_t)h->arch_count * sizeof(struct nji_arch);
    uint64_t records = entries + (uint64_t)h->entry_count * sizeof(struct nji_entry);
    uint64_t params = records + (uint64_t)h->record_count * sizeof(struct nji_record);
    uint64_t strings = params + (uint64_t)h->param_count * sizeof(struct nji_param);
    if (h->magic != NJI_MAGIC)
        return fail(why, "the index does not begin with its magic");
    if (h->version != NJI_VERSION)
        return fail(why, "the index has version %u; this blobcheck reads %d", h->version,
                    NJI_VERSION);
    if (h->index_bytes != section_bytes)
        return fail(why, "the index says %u bytes, its section holds %llu: truncated?",
                    h->index_bytes, (unsigned long long)section_bytes);
    if (h->reserved)
        return fail(why, "a reserved field of the index is not zero");
    if (h->arch_count == 0 || h->arch_count > MAX_ARCHS)
        return fail(why, "the index lists %u archs (1 to %d)", h->arch_count, MAX_ARCHS);
    if (h->archs_off != archs || h->entries_off != entries || h->records_off != records ||
        h->params_off != params || h->strings_off != strings || strings >= section_bytes)
        return fail(why, "the arrays of the index do not lie where their counts put them");
    return 0;
}

static uint64_t hash_index(const void *index, size_t bytes)
{
    static const uint64_t zero;
    const size_t at = offsetof(struct nji_header, index_hash);
    const uint8_t *b = index;
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, b, at);
    XXH3_64bits_update(&state, &zero, sizeof(zero));
    XXH3_64bits_update(&state, b + at + sizeof(zero), bytes - at - sizeof(zero));
    return XXH3_64bits_digest(&state);
}

static void check_archs(const struct blob_index *x, struct report *r)
{
    for (uint32_t i = 0; i < x->header.arch_count; i++) {
        const struct nji_arch *a = &x->archs[i];
        if (a->suffix && a->suffix != 'a' && a->suffix != 'f')
            report_add(r, "", "", "arch %u of the index has suffix 0x%02x", i, a->suffix);
        if (a->lp_is_f16 > 1)
            report_add(r, "", "", "arch %u of the index has a 16-bit type %u", i, a->lp_is_f16);
        if (a->spare > 1 || a->reserved[0] || a->reserved[1] || a->reserved[2])
            report_add(r, "", "",
                       "arch %u of the index has a flag or a reserved field of unknown meaning", i);
        if (i && x->archs[i - 1].sm >= a->sm)
            report_add(r, "", arch_name(a->sm, (char)a->suffix).text,
                       "listed twice or out of order in the index");
    }
}

static void check_order(const struct blob_index *x, struct report *r)
{
    uint64_t records = 0, params = 0;
    for (uint32_t i = 0; i < x->header.entry_count; i++) {
        const struct nji_entry *e = &x->entries[i];
        const char *key = index_string(x, e->key_str);
        if (!key || !index_string(x, e->entry_str)) {
            report_add(r, "", "", "index entry %u has no valid name", i);
            continue;
        }
        if (XXH3_64bits(key, strlen(key)) != e->key_hash)
            report_add(r, key, "", "the index holds the hash of another key");
        if (i && e[-1].key_hash == e->key_hash)
            report_add(r, key, "", "present twice in the index");
        else if (i && e[-1].key_hash > e->key_hash)
            report_add(r, key, "", "the index is not sorted here");
        if (e->reserved[0] || e->reserved[1] || e->reserved[2])
            report_add(r, key, "", "reserved fields of the index are not zero");
        if (e->first_record != records)
            report_add(r, key, "", "its records begin at %u, not %llu", e->first_record,
                       (unsigned long long)records);
        records += e->record_count;
        params += e->param_count;
    }
    if (records != x->header.record_count || params != x->header.param_count)
        report_add(r, "", "", "the index holds records or parameters that belong to no key");
}

static int compare_hashes(const void *a, const void *b)
{
    const uint64_t x = (*(const struct nji_entry *const *)a)->key_hash;
    const uint64_t y = (*(const struct nji_entry *const *)b)->key_hash;
    return (x > y) - (x < y);
}

/* Sort the entries by hash, in whatever order the file has them. */
static int sort_entries(struct blob_index *x, char why[WHY_BYTES])
{
    const uint32_t count = x->header.entry_count;
    x->by_hash = calloc(count + 1UL, sizeof(*x->by_hash));
    if (!x->by_hash)
        return fail(why, "no memory for %u entries", count);
    for (uint32_t i = 0; i < count; i++)
        x->by_hash[i] = &x->entries[i];
    qsort(x->by_hash, count, sizeof(*x->by_hash), compare_hashes);
    return 0;
}

/* Return whether each arch with code names the compiler ("ptxas ") and a version of it. */
static bool names_compilers(const struct blob_index *x, const char *compiler)
{
    const size_t name = strlen(compiler);
    for (uint32_t a = 0; a < x->header.arch_count; a++) {
        const char *said = index_assembler(x, a);
        if (said && !said[0])
            continue; /* no key has code for it */
        if (!said || strncmp(said, compiler, name) != 0 || !said[name] ||
            said[name + strspn(said + name, "0123456789.")])
            return false;
    }
    return true;
}

int index_read(struct span section, const char *compiler, struct blob_index *out, struct report *r,
               char why[WHY_BYTES])
{
    *out = (struct blob_index){0};
    if (section.bytes < sizeof(out->header))
        return fail(why, "the index has %zu bytes, less than its header", section.bytes);
    memcpy(&out->header, section.data, sizeof(out->header));
    if (check_layout(&out->header, section.bytes, why))
        return -1;
    uint8_t *copy = out->copy = malloc(section.bytes);
    if (!copy)
        return fail(why, "no memory for an index of %zu bytes", section.bytes);
    memcpy(copy, section.data, section.bytes);
    out->archs = (const void *)(copy + out->header.archs_off);
    out->entries = (const void *)(copy + out->header.entries_off);
    out->records = (const void *)(copy + out->header.records_off);
    out->params = (const void *)(copy + out->header.params_off);
    out->strings =
        (struct span){copy + out->header.strings_off, section.bytes - out->header.strings_off};
    if (!names_compilers(out, compiler))
        return fail(why, "the index does not record the version of %s", compiler);
    if (hash_index(copy, section.bytes) != out->header.index_hash)
        report_add(r, "", "", "the hash of the index is not the recorded one");
    check_archs(out, r);
    check_order(out, r);
    return sort_entries(out, why);
}

void index_free(struct blob_index *x)
{
    free(x->by_hash);
    free(x->copy);
    *x = (struct blob_index){0};
}

const char *index_string(const struct blob_index *x, uint32_t off)
{
    return span_string(x->strings, off);
}

const char *index_assembler(const struct blob_index *x, uint32_t arch)
{
    return index_string(x, x->archs[arch].assembler_str);
}

const struct nji_entry *index_find(const struct blob_index *x, const char *key)
{
    const uint64_t hash = XXH3_64bits(key, strlen(key));
    uint32_t at = 0, high = x->header.entry_count;
    while (at < high) {
        const uint32_t middle = at + (high - at) / 2;
        if (x->by_hash[middle]->key_hash < hash)
            at = middle + 1;
        else
            high = middle;
    }
    for (; at < x->header.entry_count && x->by_hash[at]->key_hash == hash; at++) {
        const char *name = index_string(x, x->by_hash[at]->key_str);
        if (name && !strcmp(name, key))
            return x->by_hash[at];
    }
    return NULL;
}

void index_check_entry(const struct blob_index *x, const struct nji_entry *e, const struct key *k,
                       struct report *r)
{
    const char *entry = index_string(x, e->entry_str);
    const struct {
        const char *what;
        uint32_t index, launcher;
    } fields[] = {
        {"threads", e->threads, k->threads},
        {"bytes of dynamic shared memory", e->max_shared_bytes, k->max_shared_bytes},
        {"as lowest SM", e->min_sm, k->min_sm},
        {"bytes of parameters", e->param_bytes, k->param_bytes},
        {"parameters", e->param_count, k->param_count},
    };
    if (!entry || strcmp(entry, k->entry) != 0)
        report_add(r, k->key, "", "the index names entry %.80s, the launcher %s",
                   entry ? entry : "(none)", k->entry);
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
        if (fields[i].index != fields[i].launcher)
            report_add(r, k->key, "", "the index says %u %s, the launcher %u", fields[i].index,
                       fields[i].what, fields[i].launcher);
    if (e->param_count != k->param_count)
        return;
    if (e->first_param > x->header.param_count ||
        e->param_count > x->header.param_count - e->first_param) {
        report_add(r, k->key, "", "its parameters lie outside of the index");
        return;
    }
    for (uint32_t i = 0; i < k->param_count; i++) {
        const struct nji_param *p = &x->params[e->first_param + i];
        if (p->offset != k->params[i].offset || p->bytes != k->params[i].bytes)
            report_add(r, k->key, "",
                       "the index says parameter %u is %u bytes at %u, the launcher %u at %u", i,
                       p->bytes, p->offset, k->params[i].bytes, k->params[i].offset);
    }
}
