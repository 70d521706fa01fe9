/* SPDX-License-Identifier: Apache-2.0
 *
 * tokenizer_fixture.h: model folders made from the tokenizers in tests/golden, with optional edits.
 */
#ifndef NOJIT_TESTS_TOKENIZER_FIXTURE_H
#define NOJIT_TESTS_TOKENIZER_FIXTURE_H

#include "text/tokenizer.h"
#include "unit.h"

#include <stdbool.h>

static inline char *read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s: cannot be read; run from the root of the tree", path);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    const size_t bytes = (size_t)ftell(file);
    char *text = malloc(bytes + 1);
    assert_non_null(text);
    rewind(file);
    assert_int_equal(fread(text, 1, bytes, file), bytes);
    text[bytes] = '\0';
    fclose(file);
    return text;
}

/* Replace the first `from`, which must exist, in a text from malloc. */
static inline char *edit_text(char *text, const char *from, const char *to)
{
    const char *place = strstr(text, from);
    if (!place)
        fail_msg("nothing to edit: %s", from);
    const size_t head = (size_t)(place - text), tail = strlen(place + strlen(from));
    char *edited = malloc(head + strlen(to) + tail + 1);
    assert_non_null(edited);
    memcpy(edited, text, head);
    memcpy(edited + head, to, strlen(to));
    memcpy(edited + head + strlen(to), place + strlen(from), tail + 1);
    free(text);
    return edited;
}

/* Make a folder with a golden tokenizer, with `from` replaced by `to` (NULL: unchanged). */
static inline const char *tokenizer_folder(const char *golden, const char *from, const char *to)
{
    char path[128];
    snprintf(path, sizeof path, "tests/golden/tokenizer-%s.json", golden);
    char *text = read_text(path);
    if (from)
        text = edit_text(text, from, to);
    remove_tree(at("model"));
    make_folder("model");
    write_text(at("model/tokenizer.json"), text);
    free(text);
    return at("model");
}

static inline struct tokenizer open_golden(const char *golden, const char *from, const char *to)
{
    struct tokenizer t;
    check_ok(tokenizer_open(tokenizer_folder(golden, from, to), &t), golden);
    if (strcmp(t.kind, "bpe") != 0)
        fail_msg("%s: %s", golden, t.refusal);
    return t;
}

#endif
