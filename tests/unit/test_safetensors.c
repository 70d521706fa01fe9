/* SPDX-License-Identifier: Apache-2.0
 *
 * test_safetensors.c: files that are read and files that are refused, the content hash, writing, 16-bit conversions.
 */
#include "base/float16.h"
#include "formats/safetensors.h"
#include "hash_tensors.h"
#include "unit.h"

#include <fcntl.h>
#include <math.h>
#include <omp.h>
#include <signal.h>
#include <sys/resource.h>

/* Write a file with `data` bytes of data and a header whose length is given as `declared`, or correctly if that is
 * 0. */
static void write_tensors(const char *path, const char *header, uint64_t declared, size_t data)
{
    static unsigned char bytes[1 << 16];
    const size_t length = strlen(header);
    const uint64_t prefix = declared ? declared : length;
    memcpy(bytes, &prefix, 8);
    memcpy(bytes + 8, header, length);
    for (size_t i = 0; i < data; i++)
        bytes[8 + length + i] = (unsigned char)i;
    write_bytes(path, bytes, 8 + length + data);
}

#define A4 "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}"

static const struct {
    const char *name, *header;
    uint64_t declared;
    size_t data;
    int code;
    const char *part;
} malformed[] = {
    {"header longer than file", "{" A4 "}", 4096, 4, NJ_E_FORMAT, "a header of 4096 bytes"},
    {"header over 100 MB", "{" A4 "}", 200u << 20, 4, NJ_E_FORMAT, "format allows"},
    {"header of 2^64 - 1", "{" A4 "}", UINT64_MAX, 4, NJ_E_FORMAT, "a header of 1844674407"},
    {"not JSON", "{\"a\":[}", 0, 4, NJ_E_FORMAT, "header:1: "},
    {"not an object", "[1,2,3,4]", 0, 4, NJ_E_FORMAT, "not a JSON object"},
    {"duplicate name", "{" A4 "," A4 "}", 0, 4, NJ_E_FORMAT, "duplicate"},
    {"unknown dtype", "{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[4],\"data_offsets\":[0,4]}}", 0, 4,
     NJ_E_UNSUPPORTED, "tensor a is F8_E4M3"},
    {"no dtype", "{\"a\":{\"shape\":[4],\"data_offsets\":[0,4]}}", 0, 4, NJ_E_FORMAT,
     "dtype is missing"},
    {"entry is a number", "{\"a\":1234567}", 0, 4, NJ_E_FORMAT, "dtype is missing"},
    {"no shape", "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 0, 4, NJ_E_FORMAT,
     "shape is not a list"},
    {"rank 5", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1],\"data_offsets\":[0,4]}}", 0, 4,
     NJ_E_UNSUPPORTED, "has 5 dimensions"},
    {"negative size", "{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 0, 4,
     NJ_E_FORMAT, "dimension 0"},
    {"fractional size", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,4]}}", 0, 4,
     NJ_E_FORMAT, "dimension 0"},
    {"product overflows",
     "{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,4]}}", 0, 4,
     NJ_E_FORMAT, "shape is too large"},
    {"bytes overflow",
     "{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387905],\"data_offsets\":[0,4]}}", 0, 4,
     NJ_E_FORMAT, "shape is too large"},
    {"shape against offsets", "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 0,
     4, NJ_E_FORMAT, "has 4 bytes, its shape asks for 8"},
    {"no offsets", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 0, 4, NJ_E_FORMAT, "data_offsets"},
    {"one offset", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 0, 4,
     NJ_E_FORMAT, "data_offsets"},
    {"offsets reversed", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 0, 4,
     NJ_E_FORMAT, "data_offsets"},
    {"negative offset", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}", 0, 4,
     NJ_E_FORMAT, "data_offsets"},
    {"cut short", "{" A4 "}", 0, 3, NJ_E_FORMAT,
     "ends at byte 4 of the tensors, but the file has 3 bytes of them"},
    {"trailing bytes", "{" A4 "}", 0, 5, NJ_E_FORMAT, "1 bytes after the last tensor"},
    {"data without tensors", "{\"__metadata__\":{}}", 0, 8, NJ_E_FORMAT,
     "8 bytes after the last tensor"},
    {"overlap", "{" A4 ",\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[2,6]}}", 0, 6,
     NJ_E_FORMAT, "a and b overlap"},
    {"same place twice", "{" A4 ",\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
     0, 4, NJ_E_FORMAT, "overlap"},
    {"hole", "{" A4 ",\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[6,10]}}", 0, 10,
     NJ_E_FORMAT, "2 bytes before tensor b belong to none"},
    {"empty name", "{\"\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 0, 4,
     NJ_E_UNSUPPORTED, "tensor name is 0 bytes long"},
};

static void malformed_safetensors_are_refused(void **state)
{
    (void)state;
    make_folder("bad");
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        struct tensors w;
        write_tensors(at("bad/model.safetensors"), malformed[i].header, malformed[i].declared,
                      malformed[i].data);
        check_refused(st_open(at("bad"), &w), malformed[i].code, malformed[i].part,
                      malformed[i].name);
        assert_null(w.tensor);
        assert_null(w.map);
    }
}

static void short_and_missing_safetensors_are_refused(void **state)
{
    (void)state;
    struct tensors w;
    make_folder("short");
    check_refused(st_open(at("short"), &w), NJ_E_IO, "neither model.safetensors", "empty folder");
    check_refused(st_open(at("nowhere"), &w), NJ_E_IO, "neither", "missing folder");
    write_text(at("short/pytorch_model.bin"), "x");
    check_refused(st_open(at("short"), &w), NJ_E_UNSUPPORTED, "safe_serialization", "pickle");
    write_text(at("short/model.safetensors"), "1234567");
    check_refused(st_open(at("short"), &w), NJ_E_FORMAT, "7 bytes, too short", "7 bytes");
    write_text(at("short/model.safetensors"), "");
    check_refused(st_open(at("short"), &w), NJ_E_FORMAT, "0 bytes, too short", "empty file");
    unlink(at("short/model.safetensors"));
    make_folder("short/model.safetensors");
    check_refused(st_open(at("short"), &w), NJ_E_IO, "not a regular file", "folder as file");
}

/* ---- what is accepted ---- */

enum { TENSORS = 4 };
static const struct st_declared declared[TENSORS] = {
    {"model.b", NJ_TYPE_BF16, 2, {3, 5}},
    {"model.a", NJ_TYPE_F32, 1, {7}},
    {"model.scalar", NJ_TYPE_F32, 0, {0}},
    {"model.c", NJ_TYPE_F16, 2, {1 << 11, 1 << 11}}, /* two chunks of the hash and a bit more */
};

/* Return byte i of tensor t. */
static unsigned char byte_of(int t, size_t i)
{
    return (unsigned char)(i * 31 + i / 251 + (size_t)t * 77);
}

static void write_model(const char *dir, int64_t shard_bytes)
{
    struct st_folder_writer *w;
    static unsigned char bytes[10000];
    check_ok(st_folder_begin(dir, declared, TENSORS, shard_bytes, &w), "begin");
    for (int t = 0; t < TENSORS; t++) {
        const size_t size = st_declared_bytes(&declared[t]);
        for (size_t at_byte = 0; at_byte < size;) {
            size_t n = size - at_byte < sizeof bytes ? size - at_byte : sizeof bytes;
            for (size_t i = 0; i < n; i++)
                bytes[i] = byte_of(t, at_byte + i);
            check_ok(st_folder_data(w, bytes, n), "data");
            at_byte += n;
        }
    }
    check_ok(st_folder_end(w), "end");
}

static void written_safetensors_read_back(void **state)
{
    (void)state;
    struct tensors w;
    make_folder("one");
    write_model(at("one"), INT64_MAX);
    check_ok(st_open(at("one"), &w), "open");
    assert_int_equal(w.count, TENSORS);
    assert_string_equal(w.tensor[0].name, "model.a");
    assert_string_equal(w.tensor[3].name, "model.scalar");
    assert_null(tensors_find(&w, "model.d"));
    assert_null(tensors_find(&w, ""));
    for (int t = 0; t < TENSORS; t++) {
        const struct tensor *found = tensors_find(&w, declared[t].name);
        assert_non_null(found);
        assert_int_equal(found->dtype, declared[t].dtype);
        assert_int_equal(found->rank, declared[t].rank);
        assert_int_equal(found->bytes, st_declared_bytes(&declared[t]));
        for (size_t i = 0; i < found->bytes; i++)
            assert_int_equal(((const unsigned char *)found->data)[i], byte_of(t, i));
    }
    uint64_t header;
    FILE *file = fopen(at("one/model.safetensors"), "rb");
    assert_int_equal(fread(&header, 8, 1, file), 1);
    fclose(file);
    assert_int_equal(header % 8, 0);
    tensors_close(&w);
}

static uint64_t hash_of(const char *dir)
{
    struct tensors w;
    check_ok(st_open(dir, &w), dir);
    const uint64_t hash = hash_tensors(&w);
    tensors_close(&w);
    return hash;
}

static void the_hash_of_safetensors_is_of_their_content(void **state)
{
    (void)state;
    make_folder("whole");
    make_folder("cut");
    write_model(at("whole"), INT64_MAX);
    write_model(at("cut"), 40);
    assert_int_equal(access(at("cut/model-00003-of-00003.safetensors"), F_OK), 0);
    const uint64_t hash = hash_of(at("whole"));
    assert_true(hash == hash_of(at("cut")));
    const int threads = omp_get_max_threads();
    for (int n = 1; n <= 5; n++) {
        omp_set_num_threads(n);
        assert_true(hash == hash_of(at("whole")));
    }
    omp_set_num_threads(threads);

    /* The last byte of the data, then one byte of a name in the header. */
    const struct {
        long from_end;
        const char *what;
    } changes[] = {{1, "data"}, {5000000, "data"}};
    for (int i = 0; i < 2; i++) {
        FILE *file = fopen(at("whole/model.safetensors"), "r+b");
        fseek(file, -changes[i].from_end, SEEK_END);
        int c = fgetc(file);
        fseek(file, -changes[i].from_end, SEEK_END);
        fputc(c ^ 1, file);
        fclose(file);
        assert_true(hash != hash_of(at("whole")));
    }
    make_folder("h1");
    make_folder("h2");
    make_folder("h3");
    write_tensors(at("h1/model.safetensors"),
                  "{\"a\":{\"dtype\":\"F16\",\"shape\":[2,1],\"data_offsets\":[0,4]}}", 0, 4);
    write_tensors(at("h2/model.safetensors"),
                  "{\"a\":{\"dtype\":\"F16\",\"shape\":[1,2],\"data_offsets\":[0,4]}}", 0, 4);
    write_tensors(at("h3/model.safetensors"),
                  "{\"a\":{\"dtype\":\"BF16\",\"shape\":[2,1],\"data_offsets\":[0,4]}}", 0, 4);
    assert_true(hash_of(at("h1")) != hash_of(at("h2")));
    assert_true(hash_of(at("h1")) != hash_of(at("h3")));
}

/* ---- shards ---- */

#define S1 "\"a\":\"s1.safetensors\""
#define S2 "\"b\":\"s2.safetensors\""

static void broken_shards_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *index;
        int code;
        const char *part;
    } cases[] = {
        {"{\"weight_map\":{" S1 "," S2 "}}", 0, ""},
        {"{\"metadata\":{\"total_size\":8},\"weight_map\":{" S1 "," S2 "}}", 0, ""},
        {"{\"metadata\":{\"total_size\":9},\"weight_map\":{" S1 "," S2 "}}", 0, ""},
        {"{\"weight_map\":{" S1 "," S2 ",\"c\":\"s2.safetensors\"}}", NJ_E_FORMAT,
         "tensor c is not in s2.safetensors"},
        {"{\"weight_map\":{\"a\":\"s2.safetensors\",\"b\":\"s1.safetensors\"}}", NJ_E_FORMAT,
         "is not in s"},
        {"{\"weight_map\":{" S1 "," S2 ",\"c\":\"s3.safetensors\"}}", NJ_E_IO,
         "s3.safetensors: No"},
        {"{\"weight_map\":{" S1 ",\"x\":\"s2.safetensors\"}}", NJ_E_FORMAT, "tensor x is not in"},
        {"{\"weight_map\":{" S1 ",\"b\":\"more.safetensors\"}}", NJ_E_FORMAT,
         "in a shard but not in the index"},
        {"{\"weight_map\":{" S1 ",\"a2\":\"same.safetensors\"}}", NJ_E_FORMAT,
         "tensor a is in two files"},
        {"{\"weight_map\":{\"a\":\"../s1.safetensors\"}}", NJ_E_FORMAT,
         "a name in the same folder"},
        {"{\"weight_map\":{\"a\":1}}", NJ_E_FORMAT, "a name in the same folder"},
        {"{\"weight_map\":{}}", NJ_E_FORMAT, "weight_map is missing or empty"},
        {"[]", NJ_E_FORMAT, "weight_map is missing or empty"},
        {"{", NJ_E_FORMAT, "index.json:1: "},
    };
    const char *b = "{\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
    make_folder("shards");
    write_tensors(at("shards/s1.safetensors"), "{" A4 "}", 0, 4);
    write_tensors(at("shards/same.safetensors"), "{" A4 "}", 0, 4);
    write_tensors(at("shards/s2.safetensors"), b, 0, 4);
    write_tensors(at("shards/more.safetensors"),
                  "{\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                  "\"z\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
                  0, 8);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tensors w;
        write_text(at("shards/model.safetensors.index.json"), cases[i].index);
        int rc = st_open(at("shards"), &w);
        if (cases[i].code)
            check_refused(rc, cases[i].code, cases[i].part, cases[i].index);
        else
            check_ok(rc, cases[i].index);
        tensors_close(&w);
    }
}

/* ---- writing that fails ---- */

static int entries(const char *dir)
{
    char command[600], text[16] = "";
    snprintf(command, sizeof command, "ls -A '%s' | wc -l", dir);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_non_null(fgets(text, sizeof text, pipe));
    pclose(pipe);
    return (int)strtol(text, NULL, 10);
}

static void the_writer_of_safetensors_counts_bytes(void **state)
{
    (void)state;
    const struct st_declared one = {"a", NJ_TYPE_F32, 1, {2}};
    const float data[3] = {1, 2, 3};
    struct st_writer *w;
    make_folder("count");
    check_ok(st_write_begin(at("count/x.safetensors"), &one, 1, &w), "begin");
    check_refused(st_write_data(w, data, 12), NJ_E_ARG, "more are written", "too much");
    check_ok(st_write_data(w, data, 4), "part");
    check_refused(st_write_end(w), NJ_E_ARG, "8 bytes of data were declared, 4 written", "short");
    assert_int_equal(entries(at("count")), 0);
    check_ok(st_write_begin(at("count/x.safetensors"), &one, 1, &w), "begin");
    assert_int_equal(access(at("count/x.safetensors"), F_OK), -1);
    st_write_abort(w);
    st_write_abort(NULL);
    assert_int_equal(entries(at("count")), 0);
}

static void integers_are_written_and_read(void **state)
{
    (void)state;
    const uint64_t keys[2][2] = {{1, UINT64_MAX}, {3, 4}};
    const int32_t ids[3] = {-1, 7, INT32_MAX};
    const struct st_declared two[] = {{"key", (enum nj_tensor_type)ST_U64, 2, {2, 2}},
                                      {"ids", (enum nj_tensor_type)ST_I32, 1, {3}}};
    struct st_writer *w;
    struct tensors read;
    make_folder("integers");
    check_ok(st_write_begin(at("integers/x.safetensors"), two, 2, &w), "begin");
    check_ok(st_write_data(w, keys, sizeof keys), "keys");
    check_ok(st_write_data(w, ids, sizeof ids), "ids");
    check_ok(st_write_end(w), "end");
    check_refused(st_open_file(at("integers/x.safetensors"), &read), NJ_E_UNSUPPORTED,
                  "tensor ids is I32", "as weights");
    check_ok(st_open_file_parts(at("integers/x.safetensors"), &read), "as parts");
    const struct tensor *key = tensors_find(&read, "key"), *id = tensors_find(&read, "ids");
    assert_int_equal(key->dtype, ST_U64);
    assert_int_equal(key->bytes, sizeof keys);
    assert_memory_equal(key->data, keys, sizeof keys);
    assert_memory_equal(id->data, ids, sizeof ids);
    tensors_close(&read);
}

static void a_full_disk_leaves_no_safetensors(void **state)
{
    (void)state;
    const struct st_declared big = {"a", NJ_TYPE_F32, 1, {1 << 20}};
    static float data[1 << 20];
    struct rlimit before, limit;
    struct st_writer *w;
    make_folder("full");
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    limit = before;
    limit.rlim_cur = 1 << 20;
    setrlimit(RLIMIT_FSIZE, &limit);
    int began = st_write_begin(at("full/x.safetensors"), &big, 1, &w);
    int wrote = began ? began : st_write_data(w, data, sizeof data);
    /* The first error is kept if the caller ends the file after it. */
    int ended = began ? began : st_write_end(w);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(began, 0);
    assert_int_equal(wrote, NJ_E_IO);
    check_refused(ended, NJ_E_IO, "x.safetensors: cannot write it: File too large", "full");
    assert_int_equal(entries(at("full")), 0);

    check_refused(st_write_begin("/proc/x.safetensors", &big, 1, &w), NJ_E_IO,
                  "/proc/x.safetensors: cannot write it", "unwritable folder");
    assert_null(w);
    check_refused(st_write_begin(at("none/x.safetensors"), &big, 1, &w), NJ_E_IO, "No such file",
                  "missing folder");
}

/* A process whose memory may grow by less than the file can still read it back. */
static void reading_back_needs_no_memory(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* sanitizers reserve more than any limit */
#else
    const struct st_declared big = {"a", NJ_TYPE_F32, 1, {1 << 22}};
    static float data[1 << 22];
    struct rlimit before, limit;
    struct st_writer *w;
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld", &pages), 1);
    fclose(f);
    make_folder("memory");
    check_ok(st_write_begin(at("memory/x.safetensors"), &big, 1, &w), "begin");
    check_ok(st_write_data(w, data, sizeof data), "data");
    getrlimit(RLIMIT_AS, &before);
    limit = before;
    limit.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (1 << 22);
    setrlimit(RLIMIT_AS, &limit);
    const int rc = st_write_end(w);
    setrlimit(RLIMIT_AS, &before);
    check_ok(rc, "read back");
    assert_int_equal(entries(at("memory")), 1);
#endif
}

static void aborted_shards_are_removed(void **state)
{
    (void)state;
    struct st_folder_writer *w;
    unsigned char data[64] = {0};
    make_folder("aborted");
    check_ok(st_folder_begin(at("aborted"), declared, TENSORS, 40, &w), "begin");
    check_ok(st_folder_data(w, data, 30), "first");
    check_ok(st_folder_data(w, data, 32), "second");
    assert_true(entries(at("aborted")) > 0);
    check_refused(st_folder_end(w), NJ_E_ARG, "less data than was declared", "short");
    assert_int_equal(entries(at("aborted")), 0);
}

/* ---- 16-bit numbers ---- */

/* Return the value of a 16-bit pattern by its definition. */
static double value_of(uint16_t x, int exponent_bits)
{
    const int fraction_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = x >> fraction_bits & ((1 << exponent_bits) - 1);
    const int fraction = x & ((1 << fraction_bits) - 1);
    const double sign = x & 0x8000 ? -1 : 1;
    if (exponent == (1 << exponent_bits) - 1)
        return fraction ? (double)NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, 1 - bias - fraction_bits);
    return sign * ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

struct half {
    const char *name;
    int exponent_bits;
    uint16_t (*narrow)(float);
    float (*widen)(uint16_t);
};
static const struct half halves[] = {{"bf16", 8, bf16_from_f32, f32_from_bf16},
                                     {"f16", 5, f16_from_f32, f32_from_f16}};

static void all_bit_patterns_survive_safetensors(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++)
        for (uint32_t x = 0; x < 65536; x++) {
            const struct half *h = &halves[k];
            const double want = value_of((uint16_t)x, h->exponent_bits);
            const float got = h->widen((uint16_t)x);
            const uint16_t back = h->narrow(got);
            int good = isnan(want)
                           ? isnan(got) && isnan(h->widen(back)) && (back & 0x8000) == (x & 0x8000)
                           : got == want && back == x;
            if (!good)
                fail_msg("%s %#x: value %.9g, want %.9g, back %#x", h->name, x, (double)got, want,
                         back);
        }
}

/* Numbers between two neighbours: below the middle, at it (to even), above it. */
static void halfway_numbers_go_to_even(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++)
        for (uint32_t x = 0; x < 65535; x++) {
            const struct half *h = &halves[k];
            const double low = value_of((uint16_t)x, h->exponent_bits);
            const double high = value_of((uint16_t)(x + 1), h->exponent_bits);
            if (isnan(low) || isnan(high) || isinf(low) || isinf(high) || x == 0x7fff)
                continue;
            const float middle = (float)((low + high) / 2);
            const uint16_t even = (uint16_t)(x & 1 ? x + 1 : x);
            const int good = h->narrow(middle) == even &&
                             h->narrow(nextafterf(middle, (float)low)) == x &&
                             h->narrow(nextafterf(middle, (float)high)) == x + 1;
            if (!good)
                fail_msg("%s between %#x and %#x: the middle %.9g becomes %#x", h->name, x, x + 1,
                         (double)middle, h->narrow(middle));
        }
}

static void numbers_too_large_become_infinite(void **state)
{
    (void)state;
    assert_int_equal(f16_from_f32(65519.996f), 0x7bff);
    assert_int_equal(f16_from_f32(65520.0f), 0x7c00);
    assert_int_equal(f16_from_f32(-1e30f), 0xfc00);
    assert_int_equal(f16_from_f32(-INFINITY), 0xfc00);
    assert_int_equal(f16_from_f32(0x1p-25f), 0);
    assert_int_equal(f16_from_f32(0x1.000002p-25f), 1);
    assert_int_equal(bf16_from_f32(3.4028235e38f), 0x7f80);
    assert_int_equal(bf16_from_f32(0x1.fep127f), 0x7f7f);
    assert_int_equal(bf16_from_f32(-0.0f), 0x8000);
}

static void tensors_convert_between_types(void **state)
{
    (void)state;
    /* One byte before the data makes it unaligned, as it may be in a file. */
    static const float values[4] = {1.0f, -2.5f, 0.1f, 70000.0f};
    unsigned char f32[17], bf16[9], f16[9];
    memcpy(f32 + 1, values, sizeof values);
    for (int i = 0; i < 4; i++) {
        uint16_t x = bf16_from_f32(values[i]), y = f16_from_f32(values[i]);
        memcpy(bf16 + 1 + 2 * i, &x, 2);
        memcpy(f16 + 1 + 2 * i, &y, 2);
    }
    const struct tensor tensors[] = {
        {.dtype = NJ_TYPE_F32, .rank = 1, .shape = {4}, .data = f32 + 1, .bytes = 16},
        {.dtype = NJ_TYPE_BF16, .rank = 1, .shape = {4}, .data = bf16 + 1, .bytes = 8},
        {.dtype = NJ_TYPE_F16, .rank = 1, .shape = {4}, .data = f16 + 1, .bytes = 8},
    };
    for (int t = 0; t < 3; t++) {
        float wide[3], want[3];
        uint16_t half[3];
        for (int i = 0; i < 3; i++) {
            float x = values[i + 1];
            want[i] = t == 0   ? x
                      : t == 1 ? f32_from_bf16(bf16_from_f32(x))
                               : f32_from_f16(f16_from_f32(x));
        }
        tensor_to_f32(&tensors[t], 1, 3, wide);
        assert_memory_equal(wide, want, sizeof want);
        for (int to_f16 = 0; to_f16 < 2; to_f16++) {
            tensor_to_16(&tensors[t], 1, 3, to_f16, half);
            for (int i = 0; i < 3; i++)
                assert_int_equal(half[i], to_f16 ? f16_from_f32(want[i]) : bf16_from_f32(want[i]));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malformed_safetensors_are_refused),
        cmocka_unit_test(short_and_missing_safetensors_are_refused),
        cmocka_unit_test(written_safetensors_read_back),
        cmocka_unit_test(the_hash_of_safetensors_is_of_their_content),
        cmocka_unit_test(broken_shards_are_refused),
        cmocka_unit_test(the_writer_of_safetensors_counts_bytes),
        cmocka_unit_test(integers_are_written_and_read),
        cmocka_unit_test(a_full_disk_leaves_no_safetensors),
        cmocka_unit_test(reading_back_needs_no_memory),
        cmocka_unit_test(aborted_shards_are_removed),
        cmocka_unit_test(all_bit_patterns_survive_safetensors),
        cmocka_unit_test(halfway_numbers_go_to_even),
        cmocka_unit_test(numbers_too_large_become_infinite),
        cmocka_unit_test(tensors_convert_between_types),
    };
    return cmocka_run_group_tests_name("safetensors", tests, scratch_begin, scratch_end);
}
