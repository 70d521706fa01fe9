/* SPDX-License-Identifier: Apache-2.0
 *
 * falsifier.c: see falsifier.h.
 */
#include "falsifier.h"

#include <string.h>

#include "util.h"

#define TEXT_READER(type, name)                                                                    \
    static void read_##name(void *into, const struct node *n)                                      \
    {                                                                                              \
        ((struct type *)into)->name = n->text;                                                     \
    }
TEXT_READER(falsifier, id)
TEXT_READER(falsifier, claim)
TEXT_READER(falsifier, test)
TEXT_READER(falsifier, open)
TEXT_READER(mutant, file)
TEXT_READER(mutant, replace)
TEXT_READER(mutant, with)

static void check_texts(const char *contract, const struct node *map)
{
    for (int i = 0; i < map->count; i++)
        if (map->items[i]->kind == NODE_SCALAR && map->items[i]->text[0] == '\0' &&
            strcmp(map->keys[i]->text, "with") != 0) /* a mutant may delete */
            problem(contract, map->items[i]->line, "'%s' of a falsifier is empty",
                    map->keys[i]->text);
}

static void read_mutant(void *into, const struct node *n)
{
    static const struct field fields[] = {
        {"file", true, NODE_SCALAR, read_file},
        {"replace", true, NODE_SCALAR, read_replace},
        {"with", true, NODE_SCALAR, read_with},
    };
    struct falsifier *f = into;
    f->mutant.line = n->line;
    node_fields(f->contract, n, "a mutant", fields, 3, &f->mutant);
    check_texts(f->contract, n);
}

bool falsifier_read(const char *contract, const struct node *n, struct falsifier *out)
{
    static const struct field bound[] = {
        {"id", true, NODE_SCALAR, read_id},
        {"claim", true, NODE_SCALAR, read_claim},
        {"test", true, NODE_SCALAR, read_test},
        {"mutant", true, NODE_MAP, read_mutant},
    };
    static const struct field open[] = {
        {"id", true, NODE_SCALAR, read_id},
        {"claim", true, NODE_SCALAR, read_claim},
        {"open", true, NODE_SCALAR, read_open},
    };
    const int before = problem_count();
    *out = (struct falsifier){.contract = contract, .line = n->line};
    if (node_field(n, "open") != NULL)
        node_fields(contract, n, "an open falsifier", open, 3, out);
    else
        node_fields(contract, n, "a falsifier", bound, 4, out);
    if (n->kind == NODE_MAP)
        check_texts(contract, n);
    return problem_count() == before;
}
