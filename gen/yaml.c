/* SPDX-License-Identifier: Apache-2.0
 *
 * yaml.c: libyaml events to nodes, and table-driven reading of maps; see yaml.h.
 */
#include "yaml.h"

#include "util.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

enum { MAX_DEPTH = 16 };

struct loader {
    const char *path;
    yaml_parser_t parser;
    yaml_event_t event; /* current event */
    bool have_event;
};

static bool next_event(struct loader *l)
{
    if (l->have_event)
        yaml_event_delete(&l->event);
    l->have_event = yaml_parser_parse(&l->parser, &l->event) != 0;
    if (!l->have_event)
        problem(l->path, (int)l->parser.problem_mark.line + 1, "not YAML: %s",
                l->parser.problem ? l->parser.problem : "cannot be read");
    return l->have_event;
}

static struct node *read_node(struct loader *l, int depth);

static void append(struct node *n, int *capacity, struct node *key, struct node *item)
{
    if (n->count == *capacity) {
        int grown = *capacity ? 2 * *capacity : 8;
        struct node **items = keep((size_t)grown * sizeof *items);
        struct node **keys = keep((size_t)grown * sizeof *keys);
        if (n->count > 0) {
            memcpy(items, n->items, (size_t)n->count * sizeof *items);
            memcpy(keys, n->keys, (size_t)n->count * sizeof *keys);
        }
        n->items = items;
        n->keys = keys;
        *capacity = grown;
    }
    n->keys[n->count] = key;
    n->items[n->count++] = item;
}

static void check_twice(struct loader *l, const struct node *map, const struct node *key)
{
    for (int i = 0; i < map->count; i++)
        if (strcmp(map->keys[i]->text, key->text) == 0)
            problem(l->path, key->line, "'%s' is given twice; it is on line %d already", key->text,
                    map->keys[i]->line);
}

/* Fill a list or a map from the events after its start up to its end. */
static struct node *read_items(struct loader *l, struct node *n, int depth)
{
    yaml_event_type_t end = n->kind == NODE_MAP ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
    int capacity = 0;
    for (;;) {
        if (!next_event(l))
            return NULL;
        if (l->event.type == end)
            return n;
        struct node *key = NULL, *item = read_node(l, depth + 1);
        if (item == NULL)
            return NULL;
        if (n->kind == NODE_MAP) {
            key = item;
            if (key->kind != NODE_SCALAR) {
                problem(l->path, key->line, "a field's name must be a word");
                return NULL;
            }
            check_twice(l, n, key);
            if (!next_event(l) || (item = read_node(l, depth + 1)) == NULL)
                return NULL;
        }
        append(n, &capacity, key, item);
    }
}

/* Read the node that starts with the current event. */
static struct node *read_node(struct loader *l, int depth)
{
    const yaml_event_t *e = &l->event;
    struct node *n = keep(sizeof *n);
    n->line = (int)e->start_mark.line + 1;
    if (depth > MAX_DEPTH) {
        problem(l->path, n->line, "nested more than %d deep", MAX_DEPTH);
        return NULL;
    }
    if (e->type == YAML_SCALAR_EVENT) {
        n->kind = NODE_SCALAR;
        n->text = keep_text((const char *)e->data.scalar.value, e->data.scalar.length);
        n->plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
        return n;
    }
    if (e->type == YAML_ALIAS_EVENT) {
        problem(l->path, n->line, "YAML aliases are not used here; write the value out");
        return NULL;
    }
    n->kind = e->type == YAML_MAPPING_START_EVENT ? NODE_MAP : NODE_LIST;
    return read_items(l, n, depth);
}

static struct node *read_document(struct loader *l)
{
    const bool begun = next_event(l); /* stream */
    if (!begun || !next_event(l))     /* document */
        return NULL;
    if (l->event.type == YAML_STREAM_END_EVENT) {
        problem(l->path, 1, "the file is empty");
        return NULL;
    }
    if (!next_event(l))
        return NULL;
    struct node *root = read_node(l, 0);
    /* End of document, and the event after it. */
    if (root == NULL || !next_event(l) || !next_event(l))
        return NULL;
    if (l->event.type != YAML_STREAM_END_EVENT) {
        problem(l->path, (int)l->event.start_mark.line + 1, "one document a file, please");
        return NULL;
    }
    return root;
}

struct node *yaml_load(const char *path)
{
    struct loader l = {.path = path};
    struct node *root = NULL;
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        problem(path, 0, "cannot be opened: %s", strerror(errno));
        return NULL;
    }
    if (!yaml_parser_initialize(&l.parser)) {
        problem(path, 0, "cannot be read: out of memory");
        goto done;
    }
    yaml_parser_set_input_file(&l.parser, f);
    root = read_document(&l);
    if (l.have_event)
        yaml_event_delete(&l.event);
    yaml_parser_delete(&l.parser);
done:
    fclose(f);
    return root;
}

const struct node *node_field(const struct node *map, const char *name)
{
    for (int i = 0; map->kind == NODE_MAP && i < map->count; i++)
        if (strcmp(map->keys[i]->text, name) == 0)
            return map->items[i];
    return NULL;
}

bool node_is_null(const struct node *n)
{
    return n->kind == NODE_SCALAR && n->plain &&
           (strcmp(n->text, "null") == 0 || strcmp(n->text, "~") == 0);
}

bool node_int(const struct node *n, int64_t *out)
{
    if (n->kind != NODE_SCALAR || n->text[0] == '\0')
        return false;
    char *end;
    errno = 0;
    long long value = strtoll(n->text, &end, 10);
    if (errno != 0 || *end != '\0')
        return false;
    *out = value;
    return true;
}

bool node_double(const struct node *n, double *out)
{
    if (n->kind != NODE_SCALAR || n->text[0] == '\0' ||
        strspn(n->text, "0123456789+-.eE") != strlen(n->text))
        return false;
    char *end;
    errno = 0;
    double value = strtod(n->text, &end);
    if (*end != '\0' || (errno == ERANGE && (value > 1 || value < -1)))
        return false;
    *out = value;
    return true;
}

static const char *kind_words(int kinds)
{
    static const char *const words[] = {
        [NODE_SCALAR] = "a single value",
        [NODE_LIST] = "a list",
        [NODE_MAP] = "a map",
        [NODE_SCALAR | NODE_MAP] = "a single value or a map",
        [NODE_LIST | NODE_MAP] = "a list or a map",
        [NODE_SCALAR | NODE_LIST] = "a single value or a list",
        [NODE_SCALAR | NODE_LIST | NODE_MAP] = "a value",
    };
    return words[kinds];
}

static void check_names(const char *file, const struct node *map, const struct field *fields,
                        int count)
{
    const char *names[32];
    for (int i = 0; i < count; i++)
        names[i] = fields[i].name;
    for (int i = 0; i < map->count; i++) {
        const struct node *key = map->keys[i];
        int f = 0;
        while (f < count && strcmp(names[f], key->text) != 0)
            f++;
        if (f < count)
            continue;
        const char *meant = near_miss(key->text, names, count);
        if (meant != NULL)
            problem(file, key->line, "unknown field '%s'; did you mean '%s'?", key->text, meant);
        else
            problem(file, key->line, "unknown field '%s'", key->text);
    }
}

void node_fields(const char *file, const struct node *map, const char *what,
                 const struct field *fields, int count, void *into)
{
    if (map->kind != NODE_MAP) {
        problem(file, map->line, "%s must be a map of fields", what);
        return;
    }
    check_names(file, map, fields, count);
    for (int f = 0; f < count; f++) {
        const struct node *value = node_field(map, fields[f].name);
        if (value == NULL) {
            if (fields[f].required)
                problem(file, map->line, "%s lacks the field '%s'", what, fields[f].name);
        } else if (!(value->kind & (unsigned)fields[f].kinds)) {
            problem(file, value->line, "'%s' must be %s", fields[f].name,
                    kind_words(fields[f].kinds));
        } else {
            fields[f].read(into, value);
        }
    }
}
