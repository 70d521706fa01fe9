/* SPDX-License-Identifier: Apache-2.0
 *
 * yaml.h: a YAML file as a tree of nodes that know their lines. Aliases, several documents and
 * fields given twice are refused here; what a node means is decided by who reads it.
 */
#ifndef GEN_YAML_H
#define GEN_YAML_H

#include <stdbool.h>
#include <stdint.h>

enum node_kind { NODE_SCALAR = 1, NODE_LIST = 2, NODE_MAP = 4 };

struct node {
    enum node_kind kind;
    int line;
    const char *text; /* text of a scalar */
    bool plain;       /* not quoted */
    int count;
    struct node **items; /* items of a list; values of a map */
    struct node **keys;  /* keys of a map, which are scalars */
};

/* Load a file; NULL after problem() if it cannot be read or is not YAML. */
struct node *yaml_load(const char *path);

/* Return a field of a map, or NULL. */
const struct node *node_field(const struct node *map, const char *name);
bool node_is_null(const struct node *n);
/* Convert a scalar to a number; false (nothing reported) if it is not one. */
bool node_int(const struct node *n, int64_t *out);
bool node_double(const struct node *n, double *out);

/* A field of a map. node_fields() checks for unknown and missing names, then reads the fields in the table's order. */
struct field {
    const char *name;
    bool required;
    int kinds; /* allowed node_kinds, or-ed */
    void (*read)(void *into, const struct node *value);
};
void node_fields(const char *file, const struct node *map, const char *what,
                 const struct field *fields, int count, void *into);

#endif
