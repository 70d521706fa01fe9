/* SPDX-License-Identifier: Apache-2.0
 *
 * greeting.c: see greeting.h.
 */
#include "ranks/greeting.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "io/error.h"

/* Head of a greeting; the name of the run and the names and values of the identity follow it,
 * each with a NUL. Head and name are the same from version 2 on, as frames are, so that versions
 * can refuse each other with a sentence. */
struct head {
    char magic[7];
    unsigned char version;
    uint32_t rank, size, bytes; /* bytes: size of the part after the head */
    unsigned char secret[SECRET_BYTES];
};
static const char magic[7] = "nojitrk";
enum { VERSION = 2 };

static struct head head_of(const char *data)
{
    struct head h;
    memcpy(&h, data, sizeof h);
    return h;
}

static char *put(char *at, const char *text)
{
    const size_t bytes = strlen(text) + 1;
    memcpy(at, text, bytes);
    return at + bytes;
}

char *greeting_make(const struct place *p, const char *run, const struct identity *ids,
                    size_t count, size_t *bytes)
{
    struct head h = {.version = VERSION, .rank = (uint32_t)p->rank, .size = (uint32_t)p->size};
    size_t text = strlen(run) + 1;
    for (size_t i = 0; i < count; i++)
        text += strlen(ids[i].name) + 1 + strlen(ids[i].value) + 1;
    char *data = malloc(sizeof h + text);
    if (!data)
        return NULL;
    *bytes = sizeof h + text;
    h.bytes = (uint32_t)text;
    memcpy(h.magic, magic, sizeof magic);
    memcpy(h.secret, p->secret, sizeof h.secret);
    memcpy(data, &h, sizeof h);
    char *at = put(data + sizeof h, run);
    for (size_t i = 0; i < count; i++)
        at = put(put(at, ids[i].name), ids[i].value);
    return data;
}

size_t greeting_bytes(const char *data, size_t have)
{
    if (memcmp(data, magic, have < sizeof magic ? have : sizeof magic) != 0)
        return 0;
    if (have < sizeof(struct head))
        return sizeof(struct head);
    const struct head h = head_of(data);
    const size_t whole = sizeof h + h.bytes;
    if (h.bytes == 0 || whole > GREETING_BYTES || (have >= whole && data[whole - 1] != 0))
        return 0;
    return whole;
}

bool greeting_trusted(const char *own, const char *data)
{
    const struct head a = head_of(own), b = head_of(data);
    volatile unsigned char differ = 0;
    for (int i = 0; i < SECRET_BYTES; i++)
        differ |= a.secret[i] ^ b.secret[i];
    return differ == 0;
}

const char *greeting_run(const char *data)
{
    return data + sizeof(struct head);
}

int greeting_rank(const char *own, const char *data, int *rank)
{
    const struct head h = head_of(data), first = head_of(own);
    *rank = (int)h.rank;
    if (h.version != first.version)
        return fail(NJ_E_ARG,
                    "rank %u greets by version %d of the protocol of ranks but rank 0 has version "
                    "%d; install the same nojit on all hosts",
                    h.rank, h.version, first.version);
    if (h.size != first.size)
        return fail(NJ_E_ARG,
                    "rank %u counts %u ranks but rank 0 counts %u; start all by one launcher",
                    h.rank, h.size, first.size);
    if (h.rank == 0 || h.rank >= h.size)
        return fail(NJ_E_ARG,
                    "a process says that it is rank %u of %u; ranks that connect are 1 to %u",
                    h.rank, h.size, first.size - 1);
    return 0;
}

/* Return the next text of a greeting; "" at its end, which is a NUL. */
static const char *next_text(const char **at, const char *end)
{
    const char *text = *at;
    if (text == end)
        return "";
    *at = text + strlen(text) + 1;
    return text;
}

int greeting_compare(const char *own, const char *data)
{
    const char *a = greeting_run(own), *a_end = a + head_of(own).bytes;
    const char *b = greeting_run(data), *b_end = b + head_of(data).bytes;
    const unsigned rank = head_of(data).rank;
    next_text(&a, a_end);
    next_text(&b, b_end);
    while (a < a_end || b < b_end) {
        const char *name = next_text(&a, a_end), *other = next_text(&b, b_end);
        const char *value = next_text(&a, a_end), *theirs = next_text(&b, b_end);
        if (strcmp(name, other) != 0)
            return fail(NJ_E_ARG,
                        "rank %u compares '%.100s' where rank 0 compares '%.100s'; start "
                        "the same nojit with the same options everywhere",
                        rank, other, name);
        if (strcmp(value, theirs) != 0)
            return fail(NJ_E_ARG,
                        "%.100s is '%.300s' on rank %u but '%.300s' on rank 0; it must be "
                        "the same on all ranks",
                        name, theirs, rank, value);
    }
    return 0;
}
