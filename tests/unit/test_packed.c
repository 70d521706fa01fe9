/* SPDX-License-Identifier: Apache-2.0
 *
 * test_packed.c: files packed by gzip and Zstandard read like the unpacked files; truncated, damaged and hostile ones
 * are refused; blocks of Snappy and LZ4 are unpacked, never beyond their ends.
 */
#include "data/data_file.h"
#include "rows_fixture.h"

#include <zlib.h>
#include <zstd.h>

static const char lines[] = "{\"text\": \"ab\"}\n{\"prompt\": \"ab\", \"completion\": \"a\"}\n";
static const char want[] = "ab{<|endoftext|>}ab{a<|endoftext|>}";

static size_t gzip(const void *in, size_t bytes, unsigned char *out, size_t room)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)in;
    z.avail_in = (uInt)bytes;
    z.next_out = out;
    z.avail_out = (uInt)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return room - z.avail_out;
}

/* Pack the lines as two concatenated streams, like those of appended files. */
static size_t pack(bool zstd, unsigned char *out, size_t room)
{
    const size_t half = strcspn(lines, "\n") + 1, rest = sizeof lines - 1 - half;
    if (!zstd) {
        const size_t first = gzip(lines, half, out, room);
        return first + gzip(lines + half, rest, out + first, room - first);
    }
    const size_t first = ZSTD_compress(out, room, lines, half, 3);
    return first + ZSTD_compress(out + first, room - first, lines + half, rest, 3);
}

static void packed_lines_are_read(void **state)
{
    (void)state;
    static const char *const names[] = {"a.jsonl.gz", "a.JSONL.ZST"};
    char text[512];
    unsigned char packed[512];
    struct tokenizer t = open_golden("qwen2", NULL, NULL);
    for (int k = 0; k < 2; k++) {
        write_bytes(at(names[k]), packed, pack(k == 1, packed, sizeof packed));
        assert_string_equal(as_text(at(names[k]), &plain, &t, text, sizeof text), want);
    }
    write_bytes(at("a.txt.gz"), packed, gzip("ab", 2, packed, sizeof packed));
    assert_string_equal(as_text(at("a.txt.gz"), &plain, &t, text, sizeof text),
                        "ab{<|endoftext|>}");
    tokenizer_close(&t);
}

static int open_packed(const char *name, const void *bytes, size_t count)
{
    struct tokenizer t = open_golden("qwen2", NULL, NULL);
    struct data *d;
    write_bytes(at(name), bytes, count);
    const char *path = at(name);
    const struct data_options o = {
        .paths = &path, .path_count = 1, .seq_len = 8, .batch_size = 1, .vocab_size = t.vocab_size};
    const int rc = data_open(&o, &t, &d);
    if (!rc)
        data_close(d);
    tokenizer_close(&t);
    return rc;
}

static void damaged_packed_files_are_refused(void **state)
{
    (void)state;
    unsigned char packed[512];
    for (int k = 0; k < 2; k++) {
        const char *name = k ? "b.jsonl.zst" : "b.jsonl.gz";
        const size_t bytes = pack(k == 1, packed, sizeof packed);
        check_refused(open_packed(name, packed, bytes - 3), NJ_E_FORMAT,
                      "its compressed data end too early", name);
        packed[0] ^= 1;
        check_refused(open_packed(name, packed, bytes), NJ_E_FORMAT,
                      ": cannot be unpacked: ", name);
    }
    check_refused(open_packed("c.gz", packed, 8), NJ_E_UNSUPPORTED,
                  "c.gz: of packed files only .txt and .jsonl are read", "no name");
    check_refused(open_packed("c.u16.gz", packed, 8), NJ_E_UNSUPPORTED, "of packed files only",
                  "tokens");
    check_refused(open_packed("c.jsonl.xz", packed, 8), NJ_E_UNSUPPORTED,
                  "data packed so are not read", "xz");
    check_refused(open_packed("c.txt.gz", packed, gzip("", 0, packed, sizeof packed)), NJ_E_FORMAT,
                  "there is no token in it", "nothing");
}

/* 320 MiB of zeros are packed in 16 KiB. */
static void lines_that_unpack_to_too_much_are_refused(void **state)
{
    (void)state;
    enum { MIB = 1 << 20, FRAMES = 320 };
    unsigned char frame[256];
    char *zeros = calloc(1, MIB);
    const size_t bytes = ZSTD_compress(frame, sizeof frame, zeros, MIB, 3);
    struct data_file f;
    int rc = NJ_OK;
    FILE *out = fopen(at("trap.txt.zst"), "wb");
    for (int i = 0; i < FRAMES; i++)
        assert_int_equal(fwrite(frame, 1, bytes, out), bytes);
    fclose(out);
    free(zeros);
    check_ok(data_file_open(&f, at("trap.txt.zst")), "open");
    check_ok(data_file_unpack(&f, BYTES_ZSTD), "unpack");
    while (!rc && !data_file_ended(&f)) {
        rc = data_file_fill(&f, MIB);
        data_file_skip(&f, f.have);
    }
    check_refused(rc, NJ_E_FORMAT, "unpacks to over 268435456 bytes", "trap");
    data_file_close(&f);
}

static const struct {
    const char *what;
    enum packing_of_bytes kind;
    const char *in;
    size_t bytes;
    const char *out; /* NULL: refused */
    size_t room;
} blocks[] = {
    {"a literal", BYTES_SNAPPY,
     "\x03\x08"
     "abc",
     5, "abc", 3},
    {"a copy of itself", BYTES_SNAPPY,
     "\x09\x04"
     "ab\x11\x02",
     6, NULL, 9},
    {"a copy that runs on", BYTES_SNAPPY,
     "\x07\x04"
     "ab\x05\x02",
     6, "abababa", 7},
    {"a copy by two bytes", BYTES_SNAPPY,
     "\x05\x04"
     "ab\x0a\x02\x00",
     7, "ababa", 5},
    {"a copy from before the start", BYTES_SNAPPY,
     "\x06\x04"
     "ab\x01\x03",
     6, NULL, 6},
    {"a literal beyond the end", BYTES_SNAPPY,
     "\x08\x1c"
     "abc",
     5, NULL, 8},
    {"more than was declared", BYTES_SNAPPY,
     "\x02\x08"
     "abc",
     5, NULL, 2},
    {"a length that does not end", BYTES_SNAPPY, "\xff\xff\xff\xff\xff\xff", 6, NULL, 4},
    {"LZ4's literals", BYTES_LZ4,
     "\x30"
     "abc",
     4, "abc", 3},
    {"LZ4's copy", BYTES_LZ4,
     "\x20"
     "ab\x02\x00\x10"
     "c",
     7, "abababc", 7},
    {"LZ4's copy of nothing", BYTES_LZ4,
     "\x20"
     "ab\x00\x00\x10"
     "c",
     7, NULL, 7},
    {"LZ4's length without its end", BYTES_LZ4, "\xf0\xff", 2, NULL, 300},
    {"LZ4's copy beyond the room", BYTES_LZ4,
     "\x2f"
     "ab\x02\x00\x80\x10"
     "c",
     8, NULL, 7},
    {"plain bytes", BYTES_PLAIN, "abc", 3, "abc", 3},
    {"too few plain bytes", BYTES_PLAIN, "ab", 2, NULL, 3},
    {"gzip that is none", BYTES_GZIP, "abc", 3, NULL, 3},
    {"Zstandard that is none", BYTES_ZSTD, "abc", 3, NULL, 3},
};

static void blocks_are_unpacked(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        /* Buffers have exact sizes, so that a sanitizer sees a byte too far. */
        char *in = malloc(blocks[i].bytes), *out = calloc(1, blocks[i].room);
        memcpy(in, blocks[i].in, blocks[i].bytes);
        const bool good =
            unpack_block(blocks[i].kind, in, blocks[i].bytes, out, blocks[i].room) == NJ_OK;
        if (good != (blocks[i].out != NULL) ||
            (good && memcmp(out, blocks[i].out, blocks[i].room) != 0))
            fail_msg("%s: %s", blocks[i].what, good ? "was unpacked" : "was refused");
        free(in);
        free(out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_lines_are_read),
        cmocka_unit_test(damaged_packed_files_are_refused),
        cmocka_unit_test(lines_that_unpack_to_too_much_are_refused),
        cmocka_unit_test(blocks_are_unpacked),
    };
    return cmocka_run_group_tests_name("packed", tests, scratch_begin, scratch_end);
}
