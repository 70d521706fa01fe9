/* SPDX-License-Identifier: Apache-2.0
 *
 * ancestor.c: see ancestor.h.
 */
#include "ranks/ancestor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GENERATIONS = 64 };

static FILE *open_of(long pid, const char *what)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/%s", pid, what);
    return fopen(path, "r");
}

/* Return 1 or 0; -1: the process belongs to another user, or is gone. */
static int was_started_with(long pid, const char *variable)
{
    const size_t length = strlen(variable);
    char *entry = NULL;
    size_t room = 0;
    int found = 0;
    FILE *f = open_of(pid, "environ");
    if (f == NULL)
        return -1;
    while (!found && getdelim(&entry, &room, '\0', f) > 0)
        found = strncmp(entry, variable, length) == 0 && entry[length] == '=';
    free(entry);
    fclose(f);
    return found;
}

/* Return the parent of a process; 0: it has none, or is gone. */
static long parent_of(long pid)
{
    char line[256];
    long parent = 0;
    FILE *f = open_of(pid, "status");
    while (f != NULL && parent == 0 && fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, "PPid:", 5) == 0)
            parent = strtol(line + 5, NULL, 10);
    if (f != NULL)
        fclose(f);
    return parent;
}

long ancestor_without(const char *variable)
{
    long pid = getppid();
    for (int i = 0; i < GENERATIONS && pid > 0; i++) {
        const int has = was_started_with(pid, variable);
        if (has <= 0)
            return has == 0 ? pid : 0;
        pid = parent_of(pid);
    }
    return 0;
}
