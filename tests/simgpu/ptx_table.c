/* SPDX-License-Identifier: Apache-2.0
 *
 * ptx_table.c: ptx_table FOLDER CUBIN...: the table that the simulated driver finds PTX by: a line for
 * each cubin: the hash of its bytes, tab, FOLDER/NAME.ptx.
 */
#define XXH_INLINE_ALL
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static int print_row(const char *folder, const char *path)
{
    FILE *f = fopen(path, "rb");
    XXH3_state_t *state = XXH3_createState();
    unsigned char part[1 << 16];
    size_t bytes;
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    if (!f || !state)
        return -1;
    XXH3_64bits_reset(state);
    while ((bytes = fread(part, 1, sizeof part, f)) > 0)
        XXH3_64bits_update(state, part, bytes);
    const int failed = ferror(f);
    fclose(f);
    printf("%016llx\t%s/%.*s.ptx\n", (unsigned long long)XXH3_64bits_digest(state), folder,
           (int)(strlen(name) - strlen(".cubin")), name);
    XXH3_freeState(state);
    return failed ? -1 : 0;
}

int main(int argc, char **argv)
{
    for (int i = 2; i < argc; i++)
        if (strlen(argv[i]) < strlen(".cubin") || print_row(argv[1], argv[i]) != 0) {
            fprintf(stderr, "ptx_table: %s: cannot be read\n", argv[i]);
            return 1;
        }
    return fflush(stdout) != 0;
}
