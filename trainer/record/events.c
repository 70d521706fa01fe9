/* SPDX-License-Identifier: Apache-2.0
 *
 * events.c: the format of event files: records of a length, its checksum, an Event message and its checksum; the
 * messages are encoded by hand, as they have only five fields.
 */
#include "record/events.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/grow.h"
#include "io/error.h"

/* Field numbers and wire types of tensorflow/core/util/event.proto and framework/summary.proto. */
enum { WIRE_VARINT = 0, WIRE_8_BYTES = 1, WIRE_BYTES = 2, WIRE_4_BYTES = 5 };
enum { EVENT_WALL_TIME = 1, EVENT_STEP = 2, EVENT_VERSION = 3, EVENT_SUMMARY = 5 };
enum { EVENT_SESSION_LOG = 7, SESSION_STATUS = 1, SESSION_START = 1 };
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SIMPLE = 2 };

uint32_t events_checksum(const void *data, size_t bytes)
{
    const uint8_t *p = data;
    uint32_t crc = ~0u;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (0x82f63b78u & (0u - (crc & 1u)));
    }
    crc = ~crc;
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

static size_t put_little(uint8_t *to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to[i] = (uint8_t)(value >> (8 * i));
    return (size_t)bytes;
}

static size_t put_varint(uint8_t *to, uint64_t value)
{
    size_t n = 0;
    for (; value > 127; value >>= 7)
        to[n++] = (uint8_t)(value | 128);
    to[n++] = (uint8_t)value;
    return n;
}

static size_t put_key(uint8_t *to, int field, int wire)
{
    return put_varint(to, (uint64_t)(field << 3 | wire));
}

/* Write one record: an event at `step` whose last field is `field`, holding `bytes` bytes. */
static int put_event(struct events *e, int64_t step, int field, const void *data, size_t bytes)
{
    uint8_t head[64], record[12], tail[4];
    struct timespec now;
    double seconds;
    uint64_t bits;
    clock_gettime(CLOCK_REALTIME, &now);
    seconds = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    memcpy(&bits, &seconds, sizeof bits);
    size_t n = put_key(head, EVENT_WALL_TIME, WIRE_8_BYTES);
    n += put_little(head + n, bits, 8);
    n += put_key(head + n, EVENT_STEP, WIRE_VARINT);
    n += put_varint(head + n, (uint64_t)step);
    n += put_key(head + n, field, WIRE_BYTES);
    n += put_varint(head + n, bytes);

    uint8_t *event = malloc(n + bytes);
    if (event == NULL)
        return fail(NJ_E_NOMEM, "out of memory while writing %s", e->path);
    memcpy(event, head, n);
    memcpy(event + n, data, bytes);
    put_little(record, n + bytes, 8);
    put_little(record + 8, events_checksum(record, 8), 4);
    put_little(tail, events_checksum(event, n + bytes), 4);
    const bool written = fwrite(record, 1, sizeof record, e->file) == sizeof record &&
                         fwrite(event, 1, n + bytes, e->file) == n + bytes &&
                         fwrite(tail, 1, sizeof tail, e->file) == sizeof tail &&
                         fflush(e->file) == 0;
    free(event);
    return written ? 0 : fail(NJ_E_IO, "%s: cannot be written: %s", e->path, strerror(errno));
}

/* Create a file with a new name in e->path, which must be a folder and not a link to one; e->path is then the path of
 * the file. */
static int open_new(struct events *e, const char *host)
{
    const size_t length = strlen(e->path);
    const int at = open(e->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int fd = -1;
    if (at < 0)
        return fail(NJ_E_IO, "%s: not a folder, or a link to one: %s; move it away", e->path,
                    strerror(errno));
    for (int n = 0; n < 100 && fd < 0 && (n == 0 || errno == EEXIST); n++) {
        snprintf(e->path + length, sizeof e->path - length, "/events.out.tfevents.%lld.%s.%ld.%d",
                 (long long)time(NULL), host, (long)getpid(), n);
        fd = openat(at, e->path + length + 1, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    const int error = errno;
    close(at);
    if (fd < 0)
        return fail(NJ_E_IO, "%s: cannot be written: %s", e->path, strerror(error));
    e->file = fdopen(fd, "wb");
    if (e->file == NULL)
        close(fd);
    return e->file != NULL ? 0 : fail(NJ_E_NOMEM, "out of memory for %s", e->path);
}

int events_open(struct events *e, const char *dir, int64_t first)
{
    static const char version[] = "brain.Event:2";
    uint8_t start[2];
    char host[64] = "";
    memset(e, 0, sizeof *e);
    snprintf(e->path, sizeof e->path, "%s/runs", dir);
    if (mkdir(e->path, 0777) != 0 && errno != EEXIST)
        return fail(NJ_E_IO, "%s: %s", e->path, strerror(errno));
    if (gethostname(host, sizeof host - 1) != 0)
        snprintf(host, sizeof host, "host");
    TRY(open_new(e, host));
    int rc = put_event(e, first, EVENT_VERSION, version, sizeof version - 1);
    size_t n = put_key(start, SESSION_STATUS, WIRE_VARINT);
    n += put_varint(start + n, SESSION_START);
    if (rc == 0 && first > 0)
        rc = put_event(e, first, EVENT_SESSION_LOG, start, n);
    return rc;
}

void events_begin(struct events *e, int64_t step)
{
    e->step = step;
    e->bytes = 0;
}

int events_scalar(struct events *e, const char *name, double value)
{
    uint8_t head[32];
    const size_t length = strlen(name);
    const float number = (float)value;
    uint32_t bits;
    if (!isfinite(number))
        return 0;
    memcpy(&bits, &number, sizeof bits);
    /* value { tag: name, simple_value: number }; names are shorter than 120 bytes */
    size_t n = put_key(head, SUMMARY_VALUE, WIRE_BYTES);
    n += put_varint(head + n, 2 + length + 5);
    n += put_key(head + n, VALUE_TAG, WIRE_BYTES);
    n += put_varint(head + n, length);
    if (!GROW(e->summary, e->capacity, e->bytes + n + length + 5))
        return fail(NJ_E_NOMEM, "out of memory while writing %s", e->path);
    memcpy(e->summary + e->bytes, head, n);
    memcpy(e->summary + e->bytes + n, name, length);
    e->bytes += n + length;
    e->bytes += put_key(e->summary + e->bytes, VALUE_SIMPLE, WIRE_4_BYTES);
    e->bytes += put_little(e->summary + e->bytes, bits, 4);
    return 0;
}

int events_end(struct events *e)
{
    return e->bytes == 0 ? 0 : put_event(e, e->step, EVENT_SUMMARY, e->summary, e->bytes);
}

int events_close(struct events *e)
{
    FILE *f = e->file;
    e->file = NULL;
    free(e->summary);
    e->summary = NULL;
    e->bytes = e->capacity = 0;
    if (f != NULL && fclose(f) != 0)
        return fail(NJ_E_IO, "%s: cannot be written: %s", e->path, strerror(errno));
    return 0;
}
