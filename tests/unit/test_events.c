/* SPDX-License-Identifier: Apache-2.0
 *
 * test_events.c: event files, read back by a reader that shares no code with the writer.
 */
#include "record/events.h"
#include "unit.h"

#include <glob.h>
#include <math.h>
#include <stdbool.h>

struct scalar {
    int64_t step;
    char tag[32];
    float value;
};

struct file {
    char version[32];
    int64_t restart; /* step at which a session starts, or -1 */
    struct scalar scalar[64];
    size_t count, records;
};

/* CRC-32C by polynomial division, with reflected bytes. */
static uint32_t reflect(uint32_t v, int bits)
{
    uint32_t out = 0;
    for (int i = 0; i < bits; i++)
        out |= ((v >> i) & 1u) << (bits - 1 - i);
    return out;
}

static uint32_t crc32c(const uint8_t *p, size_t n)
{
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < n; i++) {
        crc ^= reflect(p[i], 8) << 24;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 0x80000000u ? (crc << 1) ^ 0x1edc6f41u : crc << 1;
    }
    return reflect(crc, 32) ^ 0xffffffffu;
}

static uint32_t unmasked(uint32_t masked)
{
    const uint32_t rotated = masked - 0xa282ead8u;
    return (rotated >> 17) | (rotated << 15);
}

static uint64_t little(const uint8_t *p, int n)
{
    uint64_t v = 0;
    for (int i = n - 1; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

struct message {
    const uint8_t *at, *end;
};

static uint64_t varint(struct message *m)
{
    uint64_t v = 0;
    for (int shift = 0;; shift += 7) {
        assert_true(m->at < m->end && shift < 64);
        const uint8_t byte = *m->at++;
        v |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return v;
    }
}

struct piece {
    int field, wire;
    uint64_t number;       /* value of a varint or of a fixed-width field */
    struct message inside; /* content of a bytes field */
};

static bool next(struct message *m, struct piece *out)
{
    if (m->at == m->end)
        return false;
    const uint64_t key = varint(m);
    *out = (struct piece){.field = (int)(key >> 3), .wire = (int)(key & 7)};
    const int width = out->wire == 1 ? 8 : out->wire == 5 ? 4 : 0;
    if (width > 0) {
        assert_true(m->end - m->at >= width);
        out->number = little(m->at, width);
        m->at += width;
    } else {
        assert_true(out->wire == 0 || out->wire == 2);
        out->number = varint(m);
    }
    if (out->wire == 2) {
        assert_true(out->number <= (uint64_t)(m->end - m->at));
        out->inside = (struct message){m->at, m->at + out->number};
        m->at += out->number;
    }
    return true;
}

static void copy_text(char *to, size_t bytes, struct message m)
{
    assert_true((size_t)(m.end - m.at) < bytes);
    memcpy(to, m.at, (size_t)(m.end - m.at));
    to[m.end - m.at] = '\0';
}

static void read_value(struct file *f, int64_t step, struct message m)
{
    struct scalar *s = &f->scalar[f->count++];
    struct piece p;
    s->step = step;
    while (next(&m, &p)) {
        if (p.field == 1 && p.wire == 2)
            copy_text(s->tag, sizeof s->tag, p.inside);
        if (p.field == 2 && p.wire == 5) {
            const uint32_t bits = (uint32_t)p.number;
            memcpy(&s->value, &bits, sizeof bits);
        }
    }
}

static void read_event(struct file *f, struct message m)
{
    struct piece p, inner;
    int64_t step = 0;
    bool timed = false;
    while (next(&m, &p)) {
        if (p.field == 1) {
            double seconds;
            memcpy(&seconds, &p.number, sizeof seconds);
            timed = seconds > 1.6e9 && seconds < 1e10;
        } else if (p.field == 2) {
            step = (int64_t)p.number;
        } else if (p.field == 3) {
            copy_text(f->version, sizeof f->version, p.inside);
        } else if (p.field == 5) {
            while (next(&p.inside, &inner))
                read_value(f, step, inner.inside);
        } else if (p.field == 7) {
            assert_true(next(&p.inside, &inner) && inner.field == 1 && inner.number == 1);
            f->restart = step;
        }
    }
    assert_true(timed);
}

static void read_file(const char *path, struct file *f)
{
    size_t size;
    uint8_t *bytes = (uint8_t *)read_bytes(path, &size);
    memset(f, 0, sizeof *f);
    f->restart = -1;
    for (size_t at = 0; at < size; f->records++) {
        assert_true(size - at >= 16);
        const uint64_t n = little(bytes + at, 8);
        assert_true(n <= size - at - 16);
        assert_int_equal(unmasked((uint32_t)little(bytes + at + 8, 4)), crc32c(bytes + at, 8));
        assert_int_equal(unmasked((uint32_t)little(bytes + at + 12 + n, 4)),
                         crc32c(bytes + at + 12, n));
        read_event(f, (struct message){bytes + at + 12, bytes + at + 12 + n});
        at += 16 + n;
    }
    free(bytes);
}

/* Return the path of the newest file in NAME/runs. */
static const char *newest(const char *name, size_t expected)
{
    static char path[512];
    glob_t found;
    char pattern[600];
    snprintf(pattern, sizeof pattern, "%s/runs/events.out.tfevents.*", at(name));
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, expected);
    snprintf(path, sizeof path, "%s", found.gl_pathv[expected - 1]);
    globfree(&found);
    return path;
}

static void checksums_of_events_are_those_of_the_format(void **state)
{
    (void)state;
    assert_int_equal(crc32c((const uint8_t *)"123456789", 9), 0xe3069283u);
    assert_int_equal(unmasked(events_checksum("123456789", 9)), 0xe3069283u);
    const uint8_t zeros[32] = {0};
    assert_int_equal(unmasked(events_checksum(zeros, sizeof zeros)), 0x8a9136aau);
}

static void scalars_of_events_come_back(void **state)
{
    (void)state;
    struct events e;
    struct file f;
    check_ok(events_open(&e, make_folder("plain"), 0), "open");
    for (int64_t step = 1; step <= 300; step += 299) {
        events_begin(&e, step);
        check_ok(events_scalar(&e, "loss", 1.5 / (double)step), "loss");
        check_ok(events_scalar(&e, "kd_loss", NAN), "NaN");
        check_ok(events_scalar(&e, "lr", -2e-5), "lr");
        check_ok(events_end(&e), "end");
    }
    events_begin(&e, 301);
    check_ok(events_scalar(&e, "loss", (double)INFINITY), "infinite");
    check_ok(events_end(&e), "nothing to write");
    check_ok(events_close(&e), "close");

    read_file(newest("plain", 1), &f);
    assert_string_equal(f.version, "brain.Event:2");
    assert_int_equal(f.restart, -1);
    assert_int_equal(f.records, 3);
    assert_int_equal(f.count, 4);
    const struct scalar want[] = {
        {1, "loss", 1.5f}, {1, "lr", -2e-5f}, {300, "loss", 0.005f}, {300, "lr", -2e-5f}};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(f.scalar[i].step, want[i].step);
        assert_string_equal(f.scalar[i].tag, want[i].tag);
        assert_true(fabsf(f.scalar[i].value - want[i].value) < 1e-9f);
    }
}

/* A resumed run opens a second file, which says at which step it continues. */
static void a_resumed_run_goes_on_in_its_events(void **state)
{
    (void)state;
    struct events e;
    struct file f;
    const char *folder = make_folder("resumed");
    for (int64_t first = 0; first <= 21; first += 21) {
        check_ok(events_open(&e, folder, first), "open");
        events_begin(&e, first + 1);
        check_ok(events_scalar(&e, "loss", 1), "loss");
        check_ok(events_end(&e), "end");
        check_ok(events_close(&e), "close");
    }
    read_file(newest("resumed", 2), &f);
    assert_int_equal(f.restart, 21);
    assert_int_equal(f.count, 1);
}

static void events_that_cannot_be_written_are_refused(void **state)
{
    (void)state;
    struct events e;
    write_text(at("file"), "");
    check_refused(events_open(&e, at("file"), 0), NJ_E_IO, "file/runs", "a file is no folder");
    check_refused(events_open(&e, at("none"), 0), NJ_E_IO, "none/runs", "no folder");
    check_ok(events_close(&e), "close after a failure");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksums_of_events_are_those_of_the_format),
        cmocka_unit_test(scalars_of_events_come_back),
        cmocka_unit_test(a_resumed_run_goes_on_in_its_events),
        cmocka_unit_test(events_that_cannot_be_written_are_refused),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
