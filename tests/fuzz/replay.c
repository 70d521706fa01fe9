/* SPDX-License-Identifier: Apache-2.0
 *
 * replay.c: runs a target over the files of a folder, without libFuzzer. A file whose name begins
 * with `valid` must be accepted, any other one is named after its defect and must be refused.
 */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of a file in a block of their size, so that a read past the end is one past the block. */
static uint8_t *read_file(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "rb");
    FUZZ_CHECK(f && fseek(f, 0, SEEK_END) == 0);
    *bytes = (size_t)ftell(f);
    uint8_t *data = malloc(*bytes + (*bytes == 0));
    rewind(f);
    FUZZ_CHECK(data && fread(data, 1, *bytes, f) == *bytes);
    fclose(f);
    return data;
}

static int is_input(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

int main(int argc, char **argv)
{
    struct dirent **entry = NULL;
    int passed = 0, failed = 0;
    const int count = argc == 2 ? scandir(argv[1], &entry, is_input, alphasort) : -1;
    if (count <= 0) {
        fprintf(stderr, "usage: %s FOLDER (with a file at least)\n", argv[0]);
        return 2;
    }
    for (int i = 0; i < count; i++) {
        char path[1024];
        size_t bytes;
        snprintf(path, sizeof path, "%s/%s", argv[1], entry[i]->d_name);
        fprintf(stderr, "%s\n", path); /* first: a crash ends the program */
        uint8_t *data = read_file(path, &bytes);
        LLVMFuzzerTestOneInput(data, bytes);
        free(data);
        const int wanted = strncmp(entry[i]->d_name, "valid", 5) == 0;
        if (fuzz_accepted != wanted)
            fprintf(stderr, "  was %s\n", fuzz_accepted ? "accepted" : "refused");
        *(fuzz_accepted == wanted ? &passed : &failed) += 1;
        free(entry[i]);
    }
    free(entry);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
