/* SPDX-License-Identifier: Apache-2.0
 *
 * option_file.c: --config FILE: options from a YAML mapping, or from the receipt of a run that is to be repeated.
 * Names, bounds and near misses are those of the command line; every error names file and line.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "io/error.h"
#include "io/regular.h"
#include "options/options.h"

/* Limits of a file: libyaml takes time quadratic in the depth and in the number of anchors. */
enum { FILE_BYTES = 1 << 20, MAX_DEPTH = 16, MAX_ANCHORS = 100 };

struct reader {
    const struct command_info *c;
    const char *path;
    yaml_document_t doc;
    struct settings *s;
    int depth, anchors, documents;
};

static const char *text(const yaml_node_t *n)
{
    return (const char *)n->data.scalar.value;
}

/* Put file and line before a sentence. */
static int fail_line(const struct reader *r, yaml_mark_t at, int code, const char *sentence)
{
    char what[512];
    snprintf(what, sizeof what, "%s", sentence);
    return fail(code, "%s:%zu: %s", r->path, at.line + 1, what);
}

static int fail_at(const struct reader *r, const yaml_node_t *n, int code, const char *sentence)
{
    return fail_line(r, n->start_mark, code, sentence);
}

/* Copy a value for as long as the settings live. */
static const char *keep(struct settings *s, const char *value)
{
    char **grown = realloc(s->kept, (s->kept_count + 1) * sizeof *grown);
    if (grown == NULL)
        return NULL;
    s->kept = grown;
    char *copy = strdup(value);
    if (copy != NULL)
        s->kept[s->kept_count++] = copy;
    return copy;
}

/* Return whether a value is missing, which asks for the default. */
static bool is_null(const yaml_node_t *n)
{
    return n->type == YAML_SCALAR_NODE && n->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (*text(n) == '\0' || strcmp(text(n), "~") == 0 || strcasecmp(text(n), "null") == 0);
}

/* Return whether a plain 010 stands for a number: 8 in YAML 1.1, 10 in YAML 1.2. */
static bool is_octal(const struct option *o, const yaml_node_t *n)
{
    return (o->kind == OPT_INT || o->kind == OPT_REAL) &&
           n->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && text(n)[0] == '0' &&
           isdigit((unsigned char)text(n)[1]);
}

/* Return whether a tag of the file's own, such as !include, asks for something that no reader does here. */
static bool has_own_tag(const yaml_node_t *n)
{
    static const char standard[] = "tag:yaml.org,2002:";
    return strncmp((const char *)n->tag, standard, sizeof standard - 1) != 0;
}

static int refuse_tag(const struct reader *r, const yaml_node_t *n)
{
    return fail_at(r, n, NJ_E_ARG,
                   "tags (!include and the like) are not read; write the value itself");
}

static int set_scalar(struct reader *r, const struct option_match *m, const yaml_node_t *n)
{
    if (has_own_tag(n))
        return refuse_tag(r, n);
    if (n->type != YAML_SCALAR_NODE)
        return fail_at(r, n, NJ_E_ARG, "a value is expected here, not a list or a mapping");
    if (is_null(n))
        return fail_at(r, n, NJ_E_ARG, "the value is missing; leave the line out for the default");
    if (is_octal(m->o, n))
        return fail_at(r, n, NJ_E_ARG,
                       "a number begins with 0, which YAML 1.1 reads as octal; remove the 0");
    const char *value = keep(r->s, text(n));
    if (value == NULL)
        return fail(NJ_E_NOMEM, "out of memory while reading %s", r->path);
    const int rc = option_set(m, value, r->s);
    return rc != 0 ? fail_at(r, n, rc, fail_text()) : 0;
}

static int set_list(struct reader *r, const struct option_match *m, const yaml_node_t *list)
{
    const yaml_node_item_t *i = list->data.sequence.items.start;
    if (has_own_tag(list))
        return refuse_tag(r, list);
    if (m->o->kind != OPT_LIST && list->data.sequence.items.top - i != 1)
        return fail_at(r, list, NJ_E_ARG, "this option takes one value, not a list");
    for (; i < list->data.sequence.items.top; i++)
        TRY(set_scalar(r, m, yaml_document_get_node(&r->doc, *i)));
    return 0;
}

/* Return whether an option of other projects, with this value, may be ignored. */
static bool is_same(const struct option_match *m, const yaml_node_t *value)
{
    const char *given = is_null(value) ? NULL : value->type == YAML_SCALAR_NODE ? text(value) : "";
    return option_same(m, given);
}

static int set_option(struct reader *r, const struct option_match *m, const yaml_node_t *value)
{
    TRY(value->type == YAML_SEQUENCE_NODE ? set_list(r, m, value) : set_scalar(r, m, value));
    if (m->o->kind == OPT_LIST)
        ((struct path_list *)(void *)((char *)r->s + m->o->offset))->from_file = true;
    return 0;
}

/* Set *named to the option that the pair names; NULL: the pair is ignored. */
static int set_pair(struct reader *r, const yaml_node_t *key, const yaml_node_t *value,
                    const struct option **named)
{
    struct option_match m;
    *named = NULL;
    if (key->type != YAML_SCALAR_NODE)
        return fail_at(r, key, NJ_E_ARG, "the name of an option is expected here");
    if (strcmp(text(key), "<<") == 0)
        return fail_at(r, key, NJ_E_ARG, "merge keys (<<) are not read; write the options out");
    const bool other = option_of_run(r->c, text(key), strlen(text(key)));
    int rc = option_match(r->c, text(key), strlen(text(key)), &m);
    if (rc != 0 && (other || is_same(&m, value)))
        return 0;
    if (rc != 0)
        return fail_at(r, key, rc, fail_text());
    if (strcmp(m.o->name, "config") == 0)
        return fail_at(r, key, NJ_E_ARG, "a file of options cannot name another");
    const bool off =
        m.value != NULL && value->type == YAML_SCALAR_NODE && option_truth(text(value)) == 0;
    *named = off ? NULL : m.o; /* fp16: false says nothing beside bf16: true */
    return set_option(r, &m, value);
}

/* Refuse a second name for an option whose line `seen` has. */
static int check_names(const struct reader *r, const yaml_node_t *key, const struct option *o,
                       size_t *seen)
{
    char sentence[96];
    const size_t before = o != NULL ? seen[o - options] : 0;
    if (o != NULL)
        seen[o - options] = key->start_mark.line + 1;
    if (before == 0)
        return 0;
    snprintf(sentence, sizeof sentence, "the option is named twice: --%s, in line %zu too", o->name,
             before);
    return fail_at(r, key, NJ_E_ARG, sentence);
}

/* Refuse a name that occurs above, whatever it names. */
static int check_twice(struct reader *r, const yaml_node_t *root, const yaml_node_pair_t *pair)
{
    const yaml_node_t *key = yaml_document_get_node(&r->doc, pair->key);
    const yaml_node_pair_t *p = root->data.mapping.pairs.start;
    for (; p < pair; p++) {
        const yaml_node_t *other = yaml_document_get_node(&r->doc, p->key);
        if (other->type == YAML_SCALAR_NODE && key->type == YAML_SCALAR_NODE &&
            strcmp(text(other), text(key)) == 0)
            return fail_at(r, key, NJ_E_ARG, "the option is named twice");
    }
    return 0;
}

static int apply_pairs(struct reader *r, const yaml_node_t *root)
{
    size_t seen[OPTION_ROWS] = {0};
    const yaml_node_pair_t *p = root->data.mapping.pairs.start;
    int rc = 0;
    for (; p < root->data.mapping.pairs.top && rc == 0; p++) {
        const yaml_node_t *key = yaml_document_get_node(&r->doc, p->key);
        const struct option *o = NULL;
        rc = check_twice(r, root, p);
        if (rc == 0)
            rc = set_pair(r, key, yaml_document_get_node(&r->doc, p->value), &o);
        if (rc == 0)
            rc = check_names(r, key, o, seen);
        rc = option_refused(r->s, rc);
    }
    return rc;
}

/* ---- a receipt ---- */

/* Return the value of a key of a mapping, or NULL. */
static const yaml_node_t *find(struct reader *r, const yaml_node_t *mapping, const char *name)
{
    const yaml_node_pair_t *p = mapping->data.mapping.pairs.start;
    for (; p < mapping->data.mapping.pairs.top; p++) {
        const yaml_node_t *key = yaml_document_get_node(&r->doc, p->key);
        if (key->type == YAML_SCALAR_NODE && strcmp(text(key), name) == 0)
            return yaml_document_get_node(&r->doc, p->value);
    }
    return NULL;
}

/* Return whether a repeated run sets this option itself: options for the output and the display. */
static bool is_own(const struct option *o)
{
    static const char *const own[] = {"out",  "log",     "resume", "config",
                                      "json", "dry-run", "verbose"};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (strcmp(o->name, own[i]) == 0)
            return true;
    return false;
}

/* Return whether the receipt has the option's default value. */
static bool is_default(const struct reader *r, const struct option *o, const yaml_node_t *value)
{
    char now[128];
    if (o->kind == OPT_LIST)
        return value->type == YAML_SEQUENCE_NODE &&
               value->data.sequence.items.top == value->data.sequence.items.start;
    return value->type == YAML_SCALAR_NODE &&
           strcmp(text(value), option_text(o, r->s, NULL, 0, now, sizeof now)) == 0;
}

/* Return the batch size that --batch-size auto chose in that run, or otherwise the value itself. */
static const yaml_node_t *chosen(struct reader *r, const yaml_node_t *root, const struct option *o,
                                 const yaml_node_t *value)
{
    const yaml_node_t *applied = find(r, root, "applied");
    const bool open = strcmp(o->name, "batch-size") == 0 && value->type == YAML_SCALAR_NODE &&
                      strcmp(text(value), option_word(o) != NULL ? option_word(o) : "") == 0;
    const yaml_node_t *taken = open && applied != NULL && applied->type == YAML_MAPPING_NODE
                                   ? find(r, applied, "batch_size")
                                   : NULL;
    return taken != NULL ? taken : value;
}

static int repeat_pair(struct reader *r, const yaml_node_t *root, const yaml_node_t *key,
                       const yaml_node_t *value)
{
    struct option_match m;
    if (key->type != YAML_SCALAR_NODE)
        return fail_at(r, key, NJ_E_ARG, "the name of an option is expected here");
    const bool other = option_of_run(r->c, text(key), strlen(text(key)));
    const int rc = option_match(r->c, text(key), strlen(text(key)), &m);
    if (rc != 0)
        return other ? 0 : fail_at(r, key, rc, fail_text());
    if (is_own(m.o) || is_default(r, m.o, value))
        return 0;
    return set_option(r, &m, chosen(r, root, m.o, value));
}

static int apply_receipt(struct reader *r, const yaml_node_t *root, const yaml_node_t *given)
{
    const yaml_node_t *command = find(r, root, "command");
    const yaml_node_pair_t *p = given->data.mapping.pairs.start;
    char sentence[128];
    int rc = 0;
    if (r->c->bit != CMD_PLAN && strcmp(text(command), r->c->name) != 0) {
        snprintf(sentence, sizeof sentence, "the receipt of a `nojit %.20s`, which repeats it",
                 text(command));
        return fail_at(r, command, NJ_E_ARG, sentence);
    }
    for (; p < given->data.mapping.pairs.top && rc == 0; p++) {
        const yaml_node_t *key = yaml_document_get_node(&r->doc, p->key);
        rc = repeat_pair(r, root, key, yaml_document_get_node(&r->doc, p->value));
        rc = option_refused(r->s, rc);
    }
    return rc;
}

static int apply(struct reader *r)
{
    const yaml_node_t *root = yaml_document_get_root_node(&r->doc);
    if (root == NULL)
        return 0;
    if (root->type != YAML_MAPPING_NODE)
        return fail_at(r, root, NJ_E_ARG, "lines of `name: value` are expected");
    const yaml_node_t *given = find(r, root, "options"), *command = find(r, root, "command");
    if (given != NULL && given->type == YAML_MAPPING_NODE && command != NULL &&
        command->type == YAML_SCALAR_NODE)
        return apply_receipt(r, root, given);
    return apply_pairs(r, root);
}

/* ---- the file ---- */

static bool has_anchor(const yaml_event_t *e)
{
    switch (e->type) {
    case YAML_ALIAS_EVENT:
        return true;
    case YAML_SCALAR_EVENT:
        return e->data.scalar.anchor != NULL;
    case YAML_SEQUENCE_START_EVENT:
        return e->data.sequence_start.anchor != NULL;
    case YAML_MAPPING_START_EVENT:
        return e->data.mapping_start.anchor != NULL;
    default:
        return false;
    }
}

static int check_event(struct reader *r, const yaml_event_t *e)
{
    const int type = e->type;
    r->depth += type == YAML_SEQUENCE_START_EVENT || type == YAML_MAPPING_START_EVENT;
    r->depth -= type == YAML_SEQUENCE_END_EVENT || type == YAML_MAPPING_END_EVENT;
    r->documents += type == YAML_DOCUMENT_START_EVENT;
    r->anchors += has_anchor(e);
    const bool nul = type == YAML_SCALAR_EVENT &&
                     memchr(e->data.scalar.value, '\0', e->data.scalar.length) != NULL;
    const char *sentence = r->depth > MAX_DEPTH ? "lists or mappings lie too deep in each other"
                           : r->documents > 1
                               ? "a second document begins here; put all options into one"
                           : r->anchors > MAX_ANCHORS ? "too many anchors and aliases"
                           : nul ? "a NUL character (\\0) cannot be part of an option"
                                 : NULL;
    return sentence != NULL ? fail_line(r, e->start_mark, NJ_E_ARG, sentence) : 0;
}

static int fail_yaml(const struct reader *r, const yaml_parser_t *p)
{
    if (errno == ENOMEM)
        return fail(NJ_E_NOMEM, "out of memory while reading %s", r->path);
    const char *what = p->problem != NULL ? p->problem : "cannot be read";
    return fail(NJ_E_ARG, "%s:%zu: not YAML: %s%s", r->path, p->problem_mark.line + 1, what,
                strstr(what, "cannot start any token") != NULL
                    ? "; indent by spaces, not by tabs, and quote what "
                      "begins with @, ` or %"
                    : "");
}

/* Check the form of the file before the document is built: properties that only its events show, and those that take
 * long to build. */
static int check_form(struct reader *r, yaml_parser_t *p)
{
    int rc = 0, type = YAML_NO_EVENT;
    while (rc == 0 && type != YAML_STREAM_END_EVENT) {
        yaml_event_t e;
        if (!yaml_parser_parse(p, &e))
            return fail_yaml(r, p);
        type = e.type;
        rc = check_event(r, &e);
        yaml_event_delete(&e);
    }
    return rc;
}

static int load(struct reader *r, yaml_parser_t *p)
{
    if (!yaml_parser_load(p, &r->doc))
        return fail_yaml(r, p);
    const int rc = apply(r);
    yaml_document_delete(&r->doc);
    return rc;
}

static int parse(struct reader *r, FILE *f, int (*with)(struct reader *, yaml_parser_t *))
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return fail(NJ_E_NOMEM, "out of memory while reading %s", r->path);
    rewind(f);
    yaml_parser_set_input_file(&parser, f);
    errno = 0;
    const int rc = with(r, &parser);
    yaml_parser_delete(&parser);
    return rc;
}

int option_file_read(const struct command_info *c, const char *path, struct settings *s)
{
    struct reader r = {.c = c, .path = path, .s = s};
    char what[512];
    FILE *f;
    int rc = regular_open(path, FILE_BYTES, "name a YAML file of options", &f);
    if (rc == NJ_E_NOMEM)
        return rc;
    snprintf(what, sizeof what, "%s", fail_text());
    if (rc != 0)
        return fail(NJ_E_ARG, "--config %s", what);
    rc = parse(&r, f, check_form);
    if (rc == 0)
        rc = parse(&r, f, load);
    fclose(f);
    return rc;
}
