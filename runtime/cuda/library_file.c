/* SPDX-License-Identifier: Apache-2.0
 *
 * library_file.c: what can be known of a library before any of its code runs: who could have changed
 * it, the name that it gives itself, and its build id.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "library.h"

/* Limits of the walk. A link within a path that has a link is followed again, so there are more steps than links. */
enum { MAX_DEPTH = 16, MAX_LINKS = 256, MAX_SEGMENTS = 64, MAX_DYNAMIC = 256, NOTE_BYTES = 4096 };

/* ---- who could have changed it ---- */

/* A file that is being checked. named: the user named it, and so vouches for its owner. */
struct way {
    int named, depth, links;
    char *why;
    size_t bytes;
};

/* Return whether an owner is trusted: root, the user, or someone who can change the system's root or this program
 * anyway. */
static int is_owner_trusted(uid_t owner)
{
    struct stat info;

    return owner == 0 || owner == geteuid() || (stat("/", &info) == 0 && owner == info.st_uid) ||
           (stat("/proc/self/exe", &info) == 0 && owner == info.st_uid);
}

/* Return whether others can write to a file. A group with the number of its only user, as most systems give each
 * user one, has no other members. */
static int can_others_write(const struct stat *s)
{
    return (s->st_mode & S_IWOTH) ||
           ((s->st_mode & S_IWGRP) && s->st_gid != 0 && s->st_gid != s->st_uid);
}

static int check_way(struct way *w, const char *path, int strict);

/* Follow a link from the folder that holds it. */
static int follow(struct way *w, const char *link, int strict)
{
    char target[PATH_MAX], path[PATH_MAX];
    const ssize_t n = readlink(link, target, sizeof target - 1);
    const int folder = (int)(strrchr(link, '/') - link);
    int safe;

    if (n <= 0 || w->depth == MAX_DEPTH || w->links++ == MAX_LINKS)
        return snprintf(w->why, w->bytes, "%.300s: too many links", link), 0;
    target[n] = '\0';
    if (snprintf(path, sizeof path, "%.*s/%s", folder, link, target) >= (int)sizeof path)
        return snprintf(w->why, w->bytes, "%.300s leads to a path that is too long", link), 0;
    w->depth++;
    safe = check_way(w, target[0] == '/' ? target : path, strict);
    w->depth--;
    return safe;
}

/* Check one folder or file. strict: nobody else may add files either, as all may in a folder like /tmp. */
static int check_step(struct way *w, const char *path, int strict)
{
    struct stat info;

    if (lstat(path, &info) != 0)
        return snprintf(w->why, w->bytes, "%.300s: %s", path, strerror(errno)), 0;
    if (!w->named && !is_owner_trusted(info.st_uid))
        return snprintf(w->why, w->bytes,
                        "%.300s belongs to user %u, neither to root nor to you; if you trust it, "
                        "name the library by NOJIT_CUBLASLT",
                        path, info.st_uid),
               0;
    if (S_ISLNK(info.st_mode))
        return follow(w, path, strict);
    if (can_others_write(&info) && (strict || !(info.st_mode & S_ISVTX)))
        return snprintf(w->why, w->bytes, "others can write to %.300s", path), 0;
    return 1;
}

/* Check each folder from the root on, then the file. The folder of the file is checked strictly, since a library
 * loads others from there. */
static int check_way(struct way *w, const char *path, int strict)
{
    char step[PATH_MAX];

    for (size_t i = 0; path[i]; i++) {
        if (path[i] != '/')
            continue;
        snprintf(step, sizeof step, "%.*s", i > 0 ? (int)i : 1, path);
        if (!check_step(w, step, strict && !strchr(path + i + 1, '/')))
            return 0;
    }
    return check_step(w, path, strict);
}

int nj_library_is_safe(const char *path, int named, char *why, size_t bytes)
{
    struct way way = {.named = named, .why = why, .bytes = bytes};
    char here[PATH_MAX], whole[PATH_MAX];

    if (path[0] == '/')
        return check_way(&way, path, 1);
    if (!getcwd(here, sizeof here) ||
        snprintf(whole, sizeof whole, "%s/%s", here, path) >= (int)sizeof whole)
        return snprintf(why, bytes, "%.300s: the path is too long", path), 0;
    return check_way(&way, whole, 1);
}

int nj_loader_is_safe(char *why, size_t bytes)
{
    const char *at = getenv("LD_LIBRARY_PATH");
    char folder[PATH_MAX], reason[400];

    while (at && *at) {
        const int n = (int)strcspn(at, ":;");

        snprintf(folder, sizeof folder, "%.*s/.", n > 0 ? n : 1, n > 0 ? at : ".");
        if (access(folder, F_OK) == 0 && !nj_library_is_safe(folder, 1, reason, sizeof reason))
            return snprintf(why, bytes, "loader search skipped: LD_LIBRARY_PATH contains %.*s: %s",
                            n, at, reason),
                   0;
        at += n + (at[n] != '\0');
    }
    return 1;
}

/* ---- contents of a library file ---- */

struct image {
    int fd, count;
    Elf64_Phdr segment[MAX_SEGMENTS];
};

static int read_at(int fd, uint64_t off, void *out, size_t bytes)
{
    return off <= INT64_MAX && pread(fd, out, bytes, (off_t)off) == (ssize_t)bytes;
}

static int read_segments(struct image *m)
{
    Elf64_Ehdr h;

    if (!read_at(m->fd, 0, &h, sizeof h) || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 ||
        h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_ident[EI_DATA] != ELFDATA2LSB ||
        h.e_phentsize != sizeof *m->segment || h.e_phnum > MAX_SEGMENTS)
        return 0;
    m->count = h.e_phnum;
    return read_at(m->fd, h.e_phoff, m->segment, sizeof *m->segment * h.e_phnum);
}

/* Return the file offset of an address, or an offset beyond all files if it has none. */
static uint64_t file_offset(const struct image *m, uint64_t address)
{
    for (int i = 0; i < m->count; i++) {
        const Elf64_Phdr *p = &m->segment[i];

        if (p->p_type == PT_LOAD && address >= p->p_vaddr && address - p->p_vaddr < p->p_filesz)
            return p->p_offset + (address - p->p_vaddr);
    }
    return UINT64_MAX;
}

static void read_soname(const struct image *m, const Elf64_Phdr *p, char *out, size_t bytes)
{
    uint64_t name = 0, strings = 0;
    Elf64_Dyn d;

    for (uint64_t i = 0; i < MAX_DYNAMIC && (i + 1) * sizeof d <= p->p_filesz; i++) {
        if (!read_at(m->fd, p->p_offset + i * sizeof d, &d, sizeof d) || d.d_tag == DT_NULL)
            break;
        if (d.d_tag == DT_SONAME)
            name = d.d_un.d_val;
        if (d.d_tag == DT_STRTAB)
            strings = file_offset(m, d.d_un.d_ptr);
    }
    if (!name || !read_at(m->fd, strings + name, out, bytes))
        out[0] = '\0';
    out[bytes - 1] = '\0';
}

static void read_build(const struct image *m, const Elf64_Phdr *p, char *out, size_t bytes)
{
    const size_t align = p->p_align == 8 ? 8 : 4;
    unsigned char notes[NOTE_BYTES];
    const size_t end = p->p_filesz < sizeof notes ? p->p_filesz : sizeof notes;
    Elf64_Nhdr n;

    if (!read_at(m->fd, p->p_offset, notes, end))
        return;
    for (size_t at = 0; at + sizeof n <= end;) {
        memcpy(&n, notes + at, sizeof n);
        const size_t name = at + sizeof n, data = name + ((n.n_namesz + align - 1) & -align);

        if (n.n_namesz > end || n.n_descsz > end || data + n.n_descsz > end)
            return;
        if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 && !memcmp(notes + name, "GNU", 4))
            for (size_t i = 0; i < n.n_descsz && 2 * i + 3 <= bytes; i++)
                snprintf(out + 2 * i, 3, "%02x", notes[data + i]);
        at = data + ((n.n_descsz + align - 1) & -align);
    }
}

int nj_library_describe(const char *path, struct nj_library_file *out)
{
    struct image m = {.fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
    int rc;

    memset(out, 0, sizeof *out);
    if (m.fd < 0)
        return 0;
    rc = read_segments(&m);
    for (int i = 0; i < m.count && rc != 0; i++) {
        if (m.segment[i].p_type == PT_DYNAMIC)
            read_soname(&m, &m.segment[i], out->soname, sizeof out->soname);
        if (m.segment[i].p_type == PT_NOTE)
            read_build(&m, &m.segment[i], out->build, sizeof out->build);
    }
    close(m.fd);
    return rc;
}
