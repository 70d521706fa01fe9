/* SPDX-License-Identifier: Apache-2.0
 *
 * cached_teacher.c: see cached_teacher.h.
 */
#include "run/cached_teacher.h"

#include "base/plural.h"
#include "formats/safetensors.h"
#include "formats/tensor_hash.h"
#include "io/error.h"
#include "io/model_folder.h"
#include "io/waits.h"
#include "model/model_open.h"
#include "net/tables.h"
#include "teacher/cache_shard.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* ---- what the hidden states depend on, besides passages and weights ---- */

/* Hash the frequencies of rotations, some of which depend on the length of sequences. */
static int rotation_of(const struct model_config *c, int seq_len, uint64_t *out)
{
    const size_t bytes = tables_bytes(c);
    void *tables = calloc(bytes + 1, 1);
    if (!tables)
        return fail(NJ_E_NOMEM, "no host memory for %zu bytes of tables; free some", bytes);
    tables_fill(c, seq_len, tables);
    *out = XXH3_64bits(tables, bytes);
    free(tables);
    return 0;
}

/* Hash config.json as the folder of a cache has it. */
static int config_of(const char *dir, uint64_t *out)
{
    char path[PATH_BYTES + 16], block[1 << 14];
    XXH3_state_t state;
    size_t n;
    XXH3_INITSTATE(&state);
    XXH3_64bits_reset(&state);
    snprintf(path, sizeof path, "%s/config.json", dir);
    FILE *f = fopen(path, "rbe");
    if (!f)
        return fail(NJ_E_IO, "%s: it cannot be read; make the cache again with `nojit cache`",
                    path);
    while ((n = fread(block, 1, sizeof block, f)) > 0)
        XXH3_64bits_update(&state, block, n);
    const bool failed = ferror(f) != 0;
    fclose(f);
    if (failed)
        return fail(NJ_E_IO, "%s: it cannot be read; check the disk", path);
    *out = XXH3_64bits_digest(&state);
    return 0;
}

/* ---- a teacher ---- */

static int refuse_option(const char *dir, const char *option, const char *why)
{
    return fail(NJ_E_ARG,
                "--teacher %s is a cache of hidden states: %s; leave --%s out, or name the model",
                dir, why, option);
}

static int check_options(const struct run *r)
{
    const struct settings *s = r->s;
    const char *dir = cache_dir(r->cache);
    if (s->teacher_dtype != TEACHER_AUTO)
        return refuse_option(dir, "teacher-dtype", "they were computed in the type that it has");
    if (s->teacher_shard)
        return refuse_option(dir, "teacher-shard", "no layer of the teacher runs");
    if (s->on_policy > 0)
        return refuse_option(dir, "on-policy",
                             "it has none for answers that are yet to be written");
    return 0;
}

static int check_facts(const struct run *r)
{
    const struct cache_facts *facts = cache_facts(r->cache);
    const char *dir = cache_dir(r->cache), *type = tensor_type_torch(facts->type);
    struct model_config c;
    uint64_t config, rotation;
    if (strcmp(type, run_dtype_name(r)) != 0)
        return fail(NJ_E_ARG,
                    "%s: its hidden states are %s and this run computes in %s; use --dtype %s, or "
                    "make a cache with --dtype %s",
                    dir, type, run_dtype_name(r), type, run_dtype_name(r));
    TRY(config_of(dir, &config));
    if (config != facts->config)
        return fail(NJ_E_FORMAT,
                    "%s/config.json: it is not the one that the cache was made with; make the "
                    "cache again with `nojit cache`",
                    dir);
    TRY(source_config(dir, &c));
    TRY(rotation_of(&c, r->options.seq_len, &rotation));
    if (rotation != facts->rotation)
        return fail(NJ_E_ARG,
                    "%s: the rotations of this teacher depend on --seq-len, and with %d they are "
                    "not those of the cache; make another cache with this --seq-len",
                    dir, r->options.seq_len);
    return 0;
}

static bool names_cache(const struct run *r)
{
    return r->teacher[0] != '\0' && cache_is_there(r->teacher);
}

static int open_cache(struct run *r)
{
    wait_begin("reading the list of %s", r->teacher);
    const int rc = cache_open(r->teacher, &r->cache);
    wait_end();
    if (rc != 0)
        return rc;
    r->options.teacher_cache = r->cache;
    return check_options(r);
}

int run_open_cache(struct run *r)
{
    bool cached = run_reads(r) && names_cache(r);
    if (r->group->place.size > 1)
        TRY(group_share(r->group, &cached, sizeof cached));
    if (!cached)
        return 0;
    TRY(open_cache(r));
    return check_facts(r);
}

int run_plan_cache(struct run *r)
{
    return names_cache(r) ? open_cache(r) : 0;
}

/* ---- whether it has all that the data needs ---- */

struct lack {
    struct passage_set seen; /* passages of the data that the cache lacks */
    int64_t all;             /* number of passages of the data */
};

static int count_batch(const struct run *r, const struct batch *b, int32_t *at, struct lack *l)
{
    const struct passage_rows rows = passages_of(b, at);
    struct passage p = {0};
    for (; passage_next(&rows, &p); l->all++)
        if (!cache_has(r->cache, p.key)) {
            const int added = passage_set_add(&l->seen, p.key);
            if (added < 0)
                return added;
        }
    return 0;
}

/* Look up one pass of a source, which continues afterwards where it was. */
static int count_source(const struct run *r, struct batch_source *from, struct lack *l)
{
    const struct train_options *o = &r->options;
    int32_t *at = calloc((size_t)o->batch_size * (size_t)o->seq_len, sizeof *at);
    struct data_state start;
    struct batch b;
    int rc = at ? 0 : fail(NJ_E_NOMEM, "no host memory for a batch; free some");
    batches_tell(from, &start);
    batches_seek(from, &(struct data_state){0});
    for (int64_t row = 0; rc == 0 && row < batches_rows(from); row += o->batch_size) {
        rc = batches_next(from, &b);
        if (rc == 0)
            rc = count_batch(r, &b, at, l);
    }
    batches_seek(from, &start);
    free(at);
    return rc > 0 ? 0 : rc;
}

/* A command line that is being written. */
struct command_text {
    const struct settings *s;
    bool held_out; /* --data is read as --eval-data of the run that fills the cache */
    char text[700];
    size_t used; /* bytes that it takes, also of those that have no room */
};

static void add_text(struct command_text *c, const char *text)
{
    const size_t room = c->used < sizeof c->text ? sizeof c->text - c->used : 0;
    c->used += (size_t)snprintf(c->text + (sizeof c->text - room), room, "%s", text);
}

/* Add a word as a shell reads it. */
static void add_word(struct command_text *c, const char *dashes, const char *word)
{
    const bool quote = strpbrk(word, " \t\"$&'()*;<>?[\\]`{|}") != NULL;
    add_text(c, " ");
    add_text(c, dashes);
    add_text(c, quote ? "'" : "");
    for (; *word; word++)
        add_text(c, *word == '\'' ? "'\\''" : (char[2]){*word});
    add_text(c, quote ? "'" : "");
}

/* Add an option that says what the passages of the data are. */
static void add_option(void *user, const struct setting *setting)
{
    static const char *const names[] = {
        "data",  "eval-data",     "fields",           "packing",       "overlong", "tokenizer",
        "split", "template-date", "train-on-prompts", "skip-unusable", "seq-len",  "dtype"};
    struct command_text *c = user;
    bool counts = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        counts = counts || strcmp(names[i], setting->name) == 0;
    if (!counts || !settings_given(c->s, setting->name))
        return;
    const bool data = strcmp(setting->name, "data") == 0;
    add_word(c, "--", data && c->held_out ? "eval-data" : setting->name);
    for (size_t i = 0; i < setting->count && strcmp(setting->value[i], "true") != 0; i++)
        add_word(c, "", setting->value[i]);
}

static int refuse_lack(const struct run *r, const struct lack *l, bool held_out)
{
    const struct command_info *cache = commands;
    struct command_text c = {.s = r->s, .held_out = held_out};
    const bool each = r->s->data_weights.count > 0 && r->s->data.count > 1;
    while (cache->bit != CMD_CACHE)
        cache++;
    add_word(&c, "--", "teacher");
    add_word(&c, "", cache_facts(r->cache)->source);
    add_word(&c, "--", "out");
    add_word(&c, "", cache_dir(r->cache));
    settings_visit(cache, r->s, add_option, &c);
    return fail(NJ_E_ARG,
                "%s: it lacks %zu of %lld passage%s of the data; add them%s: nojit cache%s%s",
                cache_dir(r->cache), l->seen.count, (long long)l->all, plural(l->all),
                each ? ", with one --data at a time" : "", c.text,
                c.used < sizeof c.text ? "" : " ... (cut: give all options of this run)");
}

int run_check_cache(struct run *r, bool held_out)
{
    struct lack lack = {0};
    if (!r->cache || !group_leads(r->group))
        return 0;
    wait_begin("looking up the passages of the data");
    int rc = r->s->data.count > 0 ? count_source(r, batches_alone(r->batches), &lack) : 0;
    if (rc == 0 && r->eval_batches)
        rc = count_source(r, batches_alone(r->eval_batches), &lack);
    wait_end();
    if (rc == 0 && lack.seen.count > 0)
        rc = refuse_lack(r, &lack, held_out);
    passage_set_free(&lack.seen);
    return rc;
}

/* ---- a cache that is made ---- */

int cache_facts_plan(const struct run *r, struct cache_facts *out)
{
    struct model_config c;
    TRY(source_config(r->student, &c));
    TRY(config_check_length(&c, r->options.seq_len, r->student));
    const bool f16 = nj_context_device(r->ctx)->lp_is_f16;
    *out = (struct cache_facts){.hidden_size = c.hidden_size, .vocab_size = c.vocab_size};
    out->type = r->options.dtype == NJ_F32 ? NJ_TYPE_F32 : f16 ? NJ_TYPE_F16 : NJ_TYPE_BF16;
    snprintf(out->source, sizeof out->source, "%s", r->s->student);
    return rotation_of(&c, r->options.seq_len, &out->rotation);
}

static int head_hash(const char *dir, uint64_t *out)
{
    struct tensors w;
    struct tensor_hashes hashes;
    TRY(source_tensors(dir, &w));
    const int rc = tensor_hashes_begin(&w, &hashes);
    for (size_t i = 0; rc == 0 && i < w.count; i++)
        for (size_t chunk = 0; chunk < tensor_chunks(&w.tensor[i]); chunk++)
            tensor_hashes_chunk(&hashes, i, chunk, NULL, NULL);
    if (rc == 0) {
        *out = tensor_hashes_value(&hashes);
        tensor_hashes_end(&hashes);
    }
    tensors_close(&w);
    return rc;
}

/* Write all but shards into a folder. */
static int fill_folder(struct run *r, const char *dir, struct cache_facts *facts)
{
    TRY(engine_save_head(r->engine, dir));
    TRY(head_hash(dir, &facts->head));
    TRY(config_of(dir, &facts->config));
    return cache_facts_write(dir, facts);
}

/* Create the folder; it is there, whole, or it is not. */
static int create(struct run *r, struct cache_facts *facts)
{
    struct folder folder;
    TRY(folder_begin(&folder, r->s->out));
    const int rc = fill_folder(r, folder.temp, facts);
    if (rc != 0) {
        folder_abort(&folder);
        return rc;
    }
    return folder_commit(&folder);
}

/* Refuse a cache of another model, or of one that computes otherwise. */
static int compare(struct run *r, const struct cache_facts *own, const struct cache_facts *there)
{
    const char *dir = r->s->out;
    const char *what = own->teacher != there->teacher           ? "another teacher"
                       : own->hidden_size != there->hidden_size ? "another teacher"
                       : own->type != there->type               ? "another --dtype"
                       : own->rotation != there->rotation       ? "another --seq-len"
                       : own->config != there->config           ? "another config.json"
                                                                : NULL;
    if (!what)
        return 0;
    return fail(NJ_E_ARG, "--out %s is a cache of %s, made with %s; name another folder", dir,
                there->source, what);
}

/* Find the hash of the config.json that this teacher's cache would have. */
static int own_config(struct run *r, uint64_t *out)
{
    char path[PATH_BYTES + 16];
    struct folder folder;
    snprintf(path, sizeof path, "%s/" CACHE_CONFIG, r->s->out);
    TRY(folder_begin(&folder, path));
    int rc = source_write_config(r->student, folder.temp, engine_student(r->engine),
                                 tensor_type_torch(engine_type(r->engine)));
    if (rc == 0)
        rc = config_of(folder.temp, out);
    folder_abort(&folder);
    return rc;
}

int cache_folder_take(struct run *r, struct cache_facts *facts, struct teacher_cache **out)
{
    const char *dir = r->s->out;
    facts->teacher = engine_student_hash(r->engine);
    if (!cache_is_there(dir)) {
        const int rc = create(r, facts);
        if (rc != 0 && !cache_is_there(dir)) /* unless another process was faster */
            return rc;
    }
    cache_remove_partial(dir);
    TRY(cache_open(dir, out));
    TRY(own_config(r, &facts->config));
    TRY(compare(r, facts, cache_facts(*out)));
    *facts = *cache_facts(*out);
    return 0;
}
