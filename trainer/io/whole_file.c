/* SPDX-License-Identifier: Apache-2.0
 *
 * whole_file.c: see whole_file.h.
 */
#include "io/whole_file.h"

#include <errno.h>
#include <libgen.h>
#include <string.h>
#include <unistd.h>

#include "io/error.h"
#include "io/model_folder.h"
#include "io/temp.h"
#include "io/unfinished.h"

static int refuse(const struct whole_file *w, int error)
{
    return fail(NJ_E_IO, "%s: cannot be written: %s", w->path, strerror(error));
}

int whole_file_begin(struct whole_file *w, const char *path)
{
    w->f = NULL;
    w->must_be_new = false;
    if (snprintf(w->path, sizeof w->path, "%s", path) >= (int)sizeof w->path)
        return fail(NJ_E_IO, "%.80s...: the path is too long; use a shorter one", path);
    const int fd = temp_file(path, w->temp, sizeof w->temp);
    if (fd < 0)
        return refuse(w, errno);
    w->f = fdopen(fd, "wb");
    if (w->f != NULL)
        return 0;
    close(fd);
    unlink(w->temp);
    unfinished_done(w->temp);
    return fail(NJ_E_NOMEM, "out of memory for %s", path);
}

/* Give the file its final name. Unlike rename(), link() does not replace a file that appeared in
 * the meantime; some file systems have no links. */
static int give_name(const struct whole_file *w)
{
    const int linked = w->must_be_new ? link(w->temp, w->path) : -1;
    if (linked != 0 && w->must_be_new && errno == EEXIST)
        return -1;
    return linked == 0 ? unlink(w->temp) : rename(w->temp, w->path);
}

int whole_file_end(struct whole_file *w, int rc)
{
    if (rc == 0 && (fflush(w->f) != 0 || fsync(fileno(w->f)) != 0))
        rc = refuse(w, errno);
    if (rc == 0 && ferror(w->f)) /* an earlier write failed, and its errno is gone */
        rc = refuse(w, EIO);
    if (fclose(w->f) != 0 && rc == 0)
        rc = refuse(w, errno);
    if (rc == 0 && give_name(w) != 0)
        rc = refuse(w, errno);
    w->f = NULL;
    if (rc != 0)
        unlink(w->temp);
    unfinished_done(w->temp);
    if (rc != 0)
        return rc;
    return folder_flush_names(dirname(w->temp));
}
