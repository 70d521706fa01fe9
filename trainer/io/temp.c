/* SPDX-License-Identifier: Apache-2.0
 *
 * temp.c: see temp.h.
 */
#include "io/temp.h"

#include <sys/stat.h>

#include "base/temp_name.h"
#include "io/unfinished.h"

static int new_folder(const char *temp)
{
    return mkdir(temp, 0777);
}

static int make_file(const char *temp)
{
    return unfinished_make(temp, temp_new_file);
}

static int make_folder(const char *temp)
{
    return unfinished_make(temp, new_folder);
}

int temp_file(const char *path, char *temp, size_t bytes)
{
    return temp_make(path, temp, bytes, make_file);
}

int temp_folder(const char *path, char *temp, size_t bytes)
{
    return temp_make(path, temp, bytes, make_folder);
}
