/* SPDX-License-Identifier: Apache-2.0
 *
 * keyfile.c: parses keys.txt and archs.txt strictly: each value has one spelling, so no byte can change unnoticed.
 */
#include "pack/keyfile.h"

#include <stdlib.h>

#include "nojit.h"

/* Cut the string at `stop` and return the text before it, or NULL if there is no such character. */
static char *cut(char **at, char stop)
{
    char *start = *at, *end = start ? strchr(start, stop) : NULL;
    *at = NULL;
    if (!end)
        return NULL;
    *end = 0;
    *at = end + 1;
    return start;
}

/* Parse a decimal number without sign, space or leading zero. */
static bool parse_number(const char *s, uint32_t max, uint32_t *out)
{
    uint64_t value = 0;
    if (!s || !*s || (s[0] == '0' && s[1]))
        return false;
    for (; *s; s++) {
        if (*s < '0' || *s > '9')
            return false;
        value = value * 10 + (uint64_t)(*s - '0');
        if (value > max)
            return false;
    }
    *out = (uint32_t)value;
    return true;
}

/* Copy a text with a NUL at the end; return NULL without memory. */
static char *copy_text(struct span text)
{
    char *copy = malloc(text.bytes + 1);
    if (!copy)
        return NULL;
    memcpy(copy, text.data, text.bytes);
    copy[text.bytes] = 0;
    return copy;
}

static uint32_t count_char(struct span text, char c)
{
    uint32_t n = 0;
    for (size_t i = 0; i < text.bytes; i++)
        n += text.data[i] == (uint8_t)c;
    return n;
}

/* Return whether the entry symbol is nj_ + key, dots as underscores. */
static bool entry_fits(const char *key, const char *entry)
{
    if (key[strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_.")])
        return false;
    if (strncmp(entry, "nj_", 3) != 0)
        return false;
    for (entry += 3; *key && *entry; key++, entry++)
        if (*entry != (*key == '.' ? '_' : *key))
            return false;
    return !*key && !*entry;
}

static bool parse_params(char *list, struct key *k, struct nji_param *params)
{
    uint32_t end = 0;
    k->params = params;
    for (char *at = list; at;) {
        char *next = strchr(at, ',');
        if (next)
            *next++ = 0;
        char *bytes_text = strchr(at, ':');
        uint32_t offset, bytes;
        if (!bytes_text)
            return false;
        *bytes_text++ = 0;
        if (!parse_number(at, UINT16_MAX, &offset) ||
            /* a tensor map is the largest parameter */
            !parse_number(bytes_text, NJ_TILE_MAP_BYTES, &bytes))
            return false;
        if (offset < end || bytes == 0)
            return false;
        end = offset + bytes;
        params[k->param_count++] = (struct nji_param){(uint16_t)offset, (uint16_t)bytes};
        at = next;
    }
    return end <= k->param_bytes;
}

/* Parse the archs: "75" is the lowest SM, "sm_90a" the one arch. */
static bool parse_archs(char *text, struct key *k)
{
    uint32_t sm = 0;
    bool known;
    if (text && strncmp(text, "sm_", 3) == 0) {
        char *suffix;
        k->only = text;
        sm = (uint32_t)strtoul(text + 3, &suffix, 10);
        known = sm <= 255 && strchr("af", *suffix) && !strcmp(text, arch_name(sm, *suffix).text);
    } else {
        known = parse_number(text, 255, &sm);
    }
    k->min_sm = (uint16_t)sm;
    return known;
}

/* Parse "FEATURE" or "not FEATURE", which may follow the parameters. */
static bool parse_when(char *line, struct key *k)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    char *tab = strchr(line, '\t');
    if (!tab)
        return true;
    *tab = 0;
    k->when = tab + 1;
    const char *feature = k->when + (strncmp(k->when, "not ", 4) == 0 ? 4 : 0);
    return feature[0] && !feature[strspn(feature, letters)];
}

static bool parse_key(char *line, struct key *k, struct nji_param *params)
{
    uint32_t param_bytes;
    k->key = cut(&line, '\t');
    k->entry = cut(&line, '\t');
    if (!k->key || !k->entry || !k->key[0] || strlen(k->key) >= 64 || !entry_fits(k->key, k->entry))
        return false;
    if (!parse_number(cut(&line, '\t'), 1024, &k->threads) || k->threads == 0 ||
        !parse_number(cut(&line, '\t'), 1 << 20, &k->max_shared_bytes) ||
        !parse_archs(cut(&line, '\t'), k) ||
        !parse_number(cut(&line, '\t'), UINT16_MAX, &param_bytes))
        return false;
    k->param_bytes = (uint16_t)param_bytes;
    return line && parse_when(line, k) && parse_params(line, k, params);
}

int keys_parse(struct span text, struct key_table *out, char why[WHY_BYTES])
{
    *out = (struct key_table){0};
    if (text.bytes == 0 || text.data[text.bytes - 1] != '\n' || memchr(text.data, 0, text.bytes))
        return fail(why, "key list is empty or does not end with a newline");
    uint32_t lines = count_char(text, '\n');
    out->text = copy_text(text);
    out->keys = calloc(lines, sizeof(*out->keys));
    out->params = calloc(count_char(text, ':') + 1, sizeof(*out->params));
    if (!out->text || !out->keys || !out->params)
        return fail(why, "no memory for %u keys", lines);
    char *at = out->text;
    for (uint32_t i = 0; i < lines; i++) {
        struct key *k = &out->keys[i];
        if (!parse_key(cut(&at, '\n'), k, out->params + out->param_count))
            return fail(why, "key list, line %u: malformed", i + 1);
        if (i && strcmp(out->keys[i - 1].key, k->key) >= 0)
            return fail(why, "key list, line %u: %s is not in order", i + 1, k->key);
        out->param_count += k->param_count;
        out->count++;
    }
    return 0;
}

static int compare_names(const void *name, const void *key)
{
    return strcmp(name, ((const struct key *)key)->key);
}

const struct key *keys_find(const struct key_table *t, const char *name)
{
    return bsearch(name, t->keys, t->count, sizeof(*t->keys), compare_names);
}

void keys_free(struct key_table *t)
{
    free(t->keys);
    free(t->params);
    free(t->text);
    *t = (struct key_table){0};
}

void key_of_spare(const struct key *k, struct spare_key *out)
{
    out->key = *k;
    snprintf(out->name, sizeof(out->name), "%s at -O1", k->key);
    out->key.key = out->name;
    out->key.spare = true;
}

static bool parse_arch(char *line, struct nji_arch *a)
{
    uint32_t sm, shared, f16, spare;
    const char *name = cut(&line, '\t');
    const char *sm_text = cut(&line, '\t'), *suffix = cut(&line, '\t');
    const char *shared_text = cut(&line, '\t');
    if (!parse_number(sm_text, 255, &sm) || !suffix || !suffix[0] || suffix[1] ||
        !strchr("-af", suffix[0]) || !parse_number(shared_text, 1 << 20, &shared) ||
        !parse_number(cut(&line, '\t'), 1, &f16) || !parse_number(line, 1, &spare))
        return false;
    *a = (struct nji_arch){.sm = (uint16_t)sm,
                           .suffix = suffix[0] == '-' ? 0 : (uint8_t)suffix[0],
                           .lp_is_f16 = (uint8_t)f16,
                           .shared_limit = shared,
                           .spare = (uint8_t)spare};
    return strcmp(name, arch_name(sm, (char)a->suffix).text) == 0;
}

int archs_parse(struct span text, struct nji_arch out[MAX_ARCHS], uint32_t *count,
                char why[WHY_BYTES])
{
    uint32_t lines = count_char(text, '\n');
    if (lines == 0 || lines > MAX_ARCHS || text.data[text.bytes - 1] != '\n')
        return fail(why, "arch list has %u lines (1 to %d)", lines, MAX_ARCHS);
    char *copy = copy_text(text), *at = copy;
    int rc = copy ? 0 : fail(why, "no memory for the arch list");
    for (uint32_t i = 0; i < lines && rc == 0; i++) {
        if (!parse_arch(cut(&at, '\n'), &out[i]))
            rc = fail(why, "arch list, line %u: malformed", i + 1);
        else if (i && out[i - 1].sm >= out[i].sm)
            rc = fail(why, "arch list, line %u: sm_%u is not in order", i + 1, out[i].sm);
    }
    *count = lines;
    free(copy);
    return rc;
}

struct arch_name arch_name(uint32_t sm, char suffix)
{
    struct arch_name n;
    snprintf(n.text, sizeof(n.text), "sm_%u%.1s", sm, suffix ? (char[]){suffix, 0} : "");
    return n;
}
