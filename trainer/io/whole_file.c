/* SPDX-License-Identifier: Apache-2.0
 *
 * whole_file.c: see whole_file.h.
 */
#include "io/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <string.h>
#include <unistd.h>

#include "io/error.h"
#include "io/model_folder.h"

/* Above every process number: in a container that was killed, the next one may have the same. */
enum { PROCESSES = 1 << 22, TRIES = 100 };

static int refuse(const struct whole_file *w)
{
    return fail(NJ_E_IO, "%s: cannot be written: %s", w->path, strerror(errno));
}

int whole_file_begin(struct whole_file *w, const char *path)
{
    int fd = -1;
    w->f = NULL;
    if (snprintf(w->path, sizeof w->path, "%s", path) >= (int)sizeof w->path)
        return fail(NJ_E_IO, "%.80s...: the path is too long; use a shorter one", path);
    for (long n = 0; n < TRIES && fd < 0 && (n == 0 || errno == EEXIST); n++) {
        snprintf(w->temp, sizeof w->temp, "%s.tmp-%ld", path, (long)getpid() + n * PROCESSES);
        fd = open(w->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); /* follows no link */
    }
    if (fd < 0)
        return refuse(w);
    w->f = fdopen(fd, "wb");
    if (w->f != NULL)
        return 0;
    close(fd);
    unlink(w->temp);
    return fail(NJ_E_NOMEM, "out of memory for %s", path);
}

int whole_file_end(struct whole_file *w, int err)
{
    if (!err && (ferror(w->f) || fflush(w->f) != 0 || fsync(fileno(w->f)) != 0))
        err = refuse(w);
    if (fclose(w->f) != 0 && !err)
        err = refuse(w);
    if (!err && rename(w->temp, w->path) != 0)
        err = refuse(w);
    w->f = NULL;
    if (err) {
        unlink(w->temp);
        return err;
    }
    return folder_flush_names(dirname(w->temp));
}
