/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor_gpus.c: see doctor_gpus.h. Every rank times the two transfers of a training step and says who it is; rank 0
 * prints a table of all.
 */
#include "cli/doctor_gpus.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"
#include "cli/doctor_links.h"
#include "cli/gpu_code.h"
#include "io/error.h"
#include "io/json_text.h"
#include "record/progress.h"
#include "run/run.h"
#include "run/run_ranks.h"

enum { PROBE_BYTES = 64 << 20, REPEATS = 9, PEERS_MOST = 64 };

/* Findings of a rank, in the form that ranks exchange. */
struct row {
    char host[64], gpu[64], arch[16];
    uint64_t memory_bytes, peers; /* peers: bit i: the GPU reaches GPU i of its host */
    int32_t ordinal, sm;
    struct rank_links links;
    float exchange_ms, gather_ms, unused;
};
_Static_assert(sizeof(struct row) % 16 == 0, "transfers are of multiples of 16 bytes");

struct probe {
    struct run *r;
    int ranks;
    size_t each; /* bytes from each rank to each other */
    nj_stream *s;
    nj_event *from, *to;
    char *sent, *received;
    struct row *rows; /* findings of all ranks, pinned */
};

static int open_probe(struct probe *p, struct run *r)
{
    nj_context *ctx = r->ctx;
    const int ranks = r->group->place.size;
    *p = (struct probe){.r = r, .ranks = ranks, .each = PROBE_BYTES / (size_t)ranks / 16 * 16};
    const size_t bytes = p->each * (size_t)ranks, all = sizeof *p->rows * (size_t)ranks;
    TRY(nj_stream_create(ctx, &p->s));
    TRY(nj_event_create(ctx, &p->from));
    TRY(nj_event_create(ctx, &p->to));
    /* Not from nj_comm_alloc(): kernels fill a link sooner than copy engines, which must first agree. */
    TRY(nj_alloc(ctx, NJ_MEM_DEVICE, bytes, (void **)&p->sent));
    TRY(nj_alloc(ctx, NJ_MEM_DEVICE, bytes, (void **)&p->received));
    return nj_alloc(ctx, NJ_MEM_HOST, all, (void **)&p->rows);
}

static void close_probe(struct probe *p)
{
    nj_context *ctx = p->r->ctx;
    nj_free(ctx, NJ_MEM_HOST, p->rows);
    nj_free(ctx, NJ_MEM_DEVICE, p->received);
    nj_free(ctx, NJ_MEM_DEVICE, p->sent);
    nj_event_destroy(p->to);
    nj_event_destroy(p->from);
    nj_stream_destroy(p->s);
}

/* ---- measuring ---- */

static int exchange(struct probe *p)
{
    return nj_all_to_all(p->r->comm, p->s, p->received, p->sent, p->each);
}

static int gather(struct probe *p)
{
    return nj_all_gather(p->r->comm, p->s, p->received, p->sent, p->each);
}

static int by_time(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Measure the median time, after one transfer that does not count. */
static int measure(struct probe *p, int (*transfer)(struct probe *p), float *ms)
{
    float each[REPEATS];
    TRY(transfer(p));
    for (int i = 0; i < REPEATS; i++) {
        TRY(nj_event_record(p->from, p->s));
        TRY(transfer(p));
        TRY(nj_event_record(p->to, p->s));
        TRY(nj_event_elapsed_ms(p->from, p->to, &each[i]));
    }
    qsort(each, REPEATS, sizeof *each, by_time);
    *ms = each[REPEATS / 2];
    return 0;
}

static void describe(struct row *row, struct run *r)
{
    const struct nj_device_info *d = nj_context_device(r->ctx);
    memset(row, 0, sizeof *row);
    (void)gethostname(row->host, sizeof row->host - 1);
    snprintf(row->gpu, sizeof row->gpu, "%.63s", d->name);
    snprintf(row->arch, sizeof row->arch, "%s", d->arch);
    row->memory_bytes = d->memory_bytes;
    row->ordinal = run_ordinal(r);
    row->sm = d->sm;
    links_network(&row->links);
    for (int i = 0; i < PEERS_MOST; i++)
        row->peers |= (uint64_t)nj_gpu_reaches(r->ctx, i) << i;
}

/* Send the findings of each rank to all. */
static int share(struct probe *p)
{
    const size_t each = sizeof *p->rows;
    TRY(nj_copy(p->s, p->sent, p->rows, each));
    TRY(nj_all_gather(p->r->comm, p->s, p->received, p->sent, each));
    TRY(nj_copy(p->s, p->rows, p->received, each * (size_t)p->ranks));
    return nj_stream_sync(p->s);
}

static int probe_all(struct probe *p)
{
    describe(p->rows, p->r);
    int rc = measure(p, exchange, &p->rows->exchange_ms);
    if (rc == 0)
        rc = measure(p, gather, &p->rows->gather_ms);
    nj_gpu_links(p->r->ctx, &p->rows->links.gpu); /* read again, since the GPU is awake now */
    return rc != 0 ? rc : share(p);
}

/* ---- printing ---- */

/* Return the rate in each direction, of the slowest rank. */
static double rate(const struct probe *p, float slowest)
{
    const double bytes = (double)p->each * (p->ranks - 1);
    return slowest > 0 ? bytes / (double)slowest / 1e6 : 0;
}

/* Return the number of ranks on the host of a rank; *reached: its GPU reaches the GPUs of all of them. */
static int beside(const struct probe *p, int rank, bool *reached)
{
    int count = 0;
    *reached = true;
    for (int i = 0; i < p->ranks; i++) {
        if (strcmp(p->rows[i].host, p->rows[rank].host) != 0)
            continue;
        count++;
        *reached = *reached && (i == rank || (p->rows[rank].peers >> p->rows[i].ordinal & 1));
    }
    return count;
}

static struct run_links links_of(const struct probe *p)
{
    struct run_links l = {.ranks = p->ranks,
                          .peers = true,
                          .sm = p->rows[0].sm,
                          .rank = &p->rows[0].links,
                          .stride = sizeof *p->rows};
    for (int i = 0; i < p->ranks; i++) {
        bool reached;
        const int count = beside(p, i, &reached);
        l.on_host = count > l.on_host ? count : l.on_host;
        l.several_hosts = l.several_hosts || count < p->ranks;
        l.peers = l.peers && reached;
    }
    return l;
}

/* Findings about all ranks together. */
struct findings {
    char ranks[160];
    float exchange_ms, gather_ms; /* times of the slowest rank */
    double exchange_gb, gather_gb;
    struct expectation expected;
    bool fast;
    char advice[256]; /* advice if the links are not fast */
    struct gpu_code
        code; /* code of NCCL on rank 0: other ranks have the same version, and GPUs of the same arch */
    const struct gpu_arch *runs; /* part of it that these GPUs run; NULL: none */
};

/* Return whether links are fast. If nothing is expected, the limit is a rate below which a step waits for its links. */
static bool is_fast(double gb, double expected)
{
    return gb >= (expected > 0 ? expected * SLOW_PERCENT / 100 : SLOW_GB);
}

static void find(const struct probe *p, struct findings *out)
{
    *out = (struct findings){0};
    gpu_code_read(nj_context_device(p->r->ctx)->comm_library, &out->code);
    out->runs = gpu_code_for(&out->code, p->rows[0].sm);
    run_ranks_text(p->r, out->ranks, sizeof out->ranks);
    for (int i = 0; i < p->ranks; i++) {
        const struct row *row = &p->rows[i];
        out->exchange_ms =
            row->exchange_ms > out->exchange_ms ? row->exchange_ms : out->exchange_ms;
        out->gather_ms = row->gather_ms > out->gather_ms ? row->gather_ms : out->gather_ms;
    }
    out->exchange_gb = rate(p, out->exchange_ms);
    out->gather_gb = rate(p, out->gather_ms);
    const struct run_links links = links_of(p);
    links_expect(&links, &out->expected);
    out->fast = is_fast(out->exchange_gb, out->expected.exchange_gb) &&
                is_fast(out->gather_gb, out->expected.gather_gb);
    if (!out->fast)
        links_advice(&links, out->advice, sizeof out->advice);
}

static void print_row(const struct row *row, int rank)
{
    char size[32], peers[4 * PEERS_MOST] = "", gpu[64], host[64];
    size_t used = 0;
    for (int i = 0; i < PEERS_MOST; i++)
        if (row->peers >> i & 1)
            used += (size_t)snprintf(peers + used, sizeof peers - used, " %d", i);
    snprintf(gpu, sizeof gpu, "%s", row->gpu);
    snprintf(host, sizeof host, "%s", row->host);
    make_printable(gpu);
    make_printable(host);
    printf("rank %-4d  GPU %d of %s: %s, %s, %s; peer access to%s\n", rank, (int)row->ordinal, host,
           gpu, row->arch, bytes_text((double)row->memory_bytes, size, sizeof size),
           used > 0 ? peers : " none");
}

static void print_verdict(const struct findings *f)
{
    const struct expectation *e = &f->expected;
    if (e->exchange_gb <= 0)
        printf("expected   unknown: libnvidia-ml.so.1 and the network say nothing\n");
    else if (e->exchange_gb == e->gather_gb)
        printf("expected   %s: about %.0f GB/s\n", e->link, e->gather_gb);
    else
        printf("expected   %s: about %.1f GB/s, %.1f GB/s\n", e->link, e->exchange_gb,
               e->gather_gb);
    if (f->fast)
        printf("verdict    the links are as fast as expected\n");
    else if (e->exchange_gb > 0)
        printf("verdict    slow, below %d %% of that: %s\n", SLOW_PERCENT, f->advice);
    else
        printf("verdict    slow, below %d GB/s: %s\n", SLOW_GB, f->advice);
}

/* Print NCCL's code; a library without any would not be NCCL's own. */
static void print_code(const struct probe *p, const struct findings *f)
{
    const struct nj_device_info *d = nj_context_device(p->r->ctx);
    char archs[256];
    if (f->code.count == 0)
        printf("NCCL code  unknown: no GPU code is found in %s\n", d->comm_library);
    else if (f->runs)
        printf("NCCL code  for %s; that for sm_%d runs here\n",
               gpu_code_text(&f->code, archs, sizeof archs), f->runs->sm);
    else
        printf("NCCL code  none for sm_%d, only for %s: the driver would have to compile it, which "
               "nojit does not allow; install an NCCL that has it\n",
               d->sm, gpu_code_text(&f->code, archs, sizeof archs));
}

static void print_text(const struct probe *p, const struct findings *f)
{
    printf("ranks      %s\n", f->ranks);
    print_code(p, f);
    for (int i = 0; i < p->ranks; i++)
        print_row(&p->rows[i], i);
    printf("exchange   64 MiB per rank in %.2f ms: %.1f GB/s in each direction\n",
           (double)f->exchange_ms, f->exchange_gb);
    printf("gather     64 MiB per rank in %.2f ms: %.1f GB/s in each direction\n",
           (double)f->gather_ms, f->gather_gb);
    print_verdict(f);
}

static json_t *row_json(const struct row *row)
{
    json_t *peers = json_array();
    for (int i = 0; i < PEERS_MOST; i++)
        if (row->peers >> i & 1)
            json_array_append_new(peers, json_integer(i));
    return json_pack("{s:o, s:i, s:o, s:s, s:I, s:o}", "host", json_c_text(row->host), "gpu",
                     (int)row->ordinal, "device", json_c_text(row->gpu), "arch", row->arch,
                     "memory_bytes", (json_int_t)row->memory_bytes, "peers", peers);
}

/* Return the code as JSON. runs is false also if nothing is known, since archs is empty then. */
static json_t *code_json(const struct findings *f)
{
    json_t *archs = json_array();
    char text[16];
    for (int i = 0; i < f->code.count; i++) {
        struct gpu_code one = {.count = 1, .arch = {f->code.arch[i]}};
        json_array_append_new(archs, json_string(gpu_code_text(&one, text, sizeof text)));
    }
    return json_pack("{s:o, s:b}", "archs", archs, "runs", f->runs != NULL);
}

static int print_json(const struct probe *p, const struct findings *f)
{
    json_memory_begin();
    json_t *rows = json_array();
    for (int i = 0; i < p->ranks; i++)
        json_array_append_new(rows, row_json(&p->rows[i]));
    json_t *root =
        json_pack("{s:o, s:s, s:f, s:f, s:s, s:f, s:f, s:b}", "ranks", rows, "shared_by", f->ranks,
                  "exchange_gb_per_second", f->exchange_gb, "gather_gb_per_second", f->gather_gb,
                  "link", f->expected.link, "exchange_gb_expected", f->expected.exchange_gb,
                  "gather_gb_expected", f->expected.gather_gb, "fast", f->fast);
    if (root != NULL && !f->fast)
        json_object_set_new(root, "problem", json_string(f->advice));
    if (root != NULL)
        json_object_set_new(root, "nccl_code", code_json(f));
    char *text = root != NULL ? json_dumps(root, JSON_REAL_PRECISION(6)) : NULL;
    json_decref(root);
    const int rc = json_memory_end() || text == NULL ? fail(NJ_E_NOMEM, "out of memory") : 0;
    if (rc == 0)
        puts(text);
    free(text);
    return rc;
}

static int print_all(const struct probe *p)
{
    struct findings f;
    find(p, &f);
    if (p->r->s->json)
        return print_json(p, &f);
    print_text(p, &f);
    return 0;
}

/* ---- ranks ---- */

static int check_rank(struct run *r)
{
    struct probe p;
    int rc = open_probe(&p, r);
    if (rc == 0)
        rc = probe_all(&p);
    if (rc != 0)
        return fail_context(rc, r->ctx, "trying the links between GPUs");
    if (group_leads(r->group))
        rc = print_all(&p);
    close_probe(&p);
    return rc != 0 ? rc : group_finish(r->group);
}

int doctor_gpus(const struct settings *s)
{
    struct group g;
    struct run r;
    int gpus, rc = 0;
    if (s->device == (int)NJ_DEVICE_CPU || s->device == (int)NJ_DEVICE_VULKAN)
        return fail(NJ_E_ARG, "--gpus: %s has no links to check; leave --device out",
                    s->device == (int)NJ_DEVICE_CPU ? "a CPU" : "the Vulkan backend");
    rc = run_gpus(s, &gpus);
    if (rc == 0)
        rc = group_find(&g, "doctor", gpus);
    if (rc != 0 || g.parent)
        return rc;
    if (g.place.size == 1)
        return fail(NJ_E_ARG, "--gpus: there is one GPU here, and no link to check");
    rc = run_open(&r, s, &g, false);
    if (rc == 0)
        rc = check_rank(&r);
    if (rc != 0)
        group_fail(&g, rc);
    run_close(&r);
    return rc;
}
