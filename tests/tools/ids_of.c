/* SPDX-License-Identifier: Apache-2.0
 *
 * ids-of: prints the ids of texts, a line for each, for a comparison with other programs.
 *
 *   ids-of MODEL [whole | spans] <TEXTS
 * TEXTS: before each text a line with its number of bytes. With `spans`, a text is cut at each position at which it
 * may be.
 */
#include "io/error.h"
#include "text/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int print_ids(const struct tokenizer *t, const char *text, size_t bytes, bool spans)
{
    int32_t *ids = NULL;
    size_t count = 0, capacity = 0, length;
    int rc = bytes == 0 ? tokenizer_encode(t, text, 0, &ids, &count, &capacity) : 0;
    for (size_t at = 0; at < bytes && rc == 0; at += length) {
        length = spans ? tokenizer_cut(t, text + at, bytes - at, 1) : bytes;
        rc = tokenizer_encode(t, text + at, length, &ids, &count, &capacity);
    }
    for (size_t i = 0; i < count && rc == 0; i++)
        printf(i > 0 ? " %d" : "%d", (int)ids[i]);
    printf("\n");
    free(ids);
    return rc;
}

static int print_texts(const struct tokenizer *t, bool spans)
{
    size_t bytes;
    while (scanf("%zu", &bytes) == 1 && getchar() == '\n') {
        char *text = malloc(bytes + 1);
        int rc = text ? 0 : fail(NJ_E_NOMEM, "no memory for %zu bytes", bytes);
        if (rc == 0 && fread(text, 1, bytes, stdin) != bytes)
            rc = fail(NJ_E_FORMAT, "a text is cut short");
        if (rc == 0)
            rc = print_ids(t, text, bytes, spans);
        free(text);
        if (rc != 0)
            return rc;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct tokenizer t;
    if (argc < 2) {
        fprintf(stderr, "usage: ids-of MODEL [whole | spans] <TEXTS\n");
        return 2;
    }
    int rc = tokenizer_open(argv[1], &t);
    if (rc == 0 && t.vocab_size == 0)
        rc = fail(NJ_E_UNSUPPORTED, "%s", t.refusal);
    if (rc == 0)
        rc = print_texts(&t, argc > 2 && strcmp(argv[2], "spans") == 0);
    if (rc != 0)
        fprintf(stderr, "ids-of: %s\n", fail_text());
    tokenizer_close(&t);
    return rc != 0;
}
