/* SPDX-License-Identifier: Apache-2.0
 *
 * fileio.c: reads files whole; writes through a temporary file, so that a reader sees the old or
 * the new content.
 */
#include "image/fileio.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/temp_name.h"

int file_read(const char *path, struct span *out, char why[WHY_BYTES])
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = NULL;
    struct stat st;
    int rc = -1;
    if (!f)
        return fail(why, "cannot open %s: %s", path, strerror(errno));
    if (fstat(fileno(f), &st) || !S_ISREG(st.st_mode)) {
        fail(why, "%s is not a regular file", path);
        goto done;
    }
    size_t bytes = (size_t)st.st_size;
    data = malloc(bytes + 1);
    if (!data) {
        fail(why, "no memory for the %zu bytes of %s", bytes, path);
        goto done;
    }
    if (fread(data, 1, bytes, f) != bytes) {
        fail(why, "cannot read %s: %s", path, ferror(f) ? strerror(errno) : "it became shorter");
        goto done;
    }
    data[bytes] = 0;
    *out = (struct span){data, bytes};
    data = NULL;
    rc = 0;
done:
    free(data);
    fclose(f);
    return rc;
}

void file_free(struct span *file)
{
    union {
        const uint8_t *read;
        void *owned;
    } data = {.read = file->data};
    free(data.owned);
    *file = (struct span){0};
}

static bool same_content(const char *path, struct span content)
{
    char why[WHY_BYTES];
    struct span old;
    if (file_read(path, &old, why))
        return false;
    bool same = old.bytes == content.bytes && !memcmp(old.data, content.data, old.bytes);
    file_free(&old);
    return same;
}

int file_write(const char *path, struct span content, char why[WHY_BYTES])
{
    char temporary[4096];
    if (same_content(path, content))
        return 0;
    const int fd = temp_make(path, temporary, sizeof(temporary), temp_new_file);
    FILE *f = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (!f)
        return fail(why, "cannot create %s: %s", path, strerror(errno));
    bool written = fwrite(content.data, 1, content.bytes, f) == content.bytes && !fflush(f) &&
                   !fsync(fileno(f));
    written = !fclose(f) && written;
    if (written && !rename(temporary, path))
        return 0;
    fail(why, "cannot write %s: %s", path, strerror(errno));
    unlink(temporary);
    return -1;
}
