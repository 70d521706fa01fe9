/* SPDX-License-Identifier: Apache-2.0
 *
 * run_ranks.c: see run_ranks.h.
 */
#include "run/run_ranks.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/plural.h"
#include "io/error.h"
#include "io/real_path.h"
#include "model/model_open.h"
#include "model/tensor_names.h"
#include "options/options.h"
#include "run/binary_hash.h"

/* Count the GPUs in a process of its own: ranks are forked before CUDA is initialized. */
static int count_gpus(void)
{
    int status = 0;
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        const int count = nj_gpu_count();
        _exit(count < 255 ? count : 255);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return 0;
    return WEXITSTATUS(status);
}

/* Refuse virtual ranks in several processes: those of --gpus are counted before they exist, those of a launcher once
 * they have met. */
static int check_virtual(const struct settings *s, int processes)
{
    return processes == 1 || s->virtual_ranks <= 1
               ? 0
               : fail(NJ_E_ARG,
                      "--virtual-ranks is for one process; leave it out, as %d share this run",
                      processes);
}

int run_gpus(const struct settings *s, int *out)
{
    *out = (int)s->gpus;
    if (s->gpus != GPUS_ALL)
        return check_virtual(s, *out);
    *out = s->device == (int)NJ_DEVICE_CPU || s->device == (int)NJ_DEVICE_VULKAN ? 0 : count_gpus();
    return *out > 0
               ? check_virtual(s, *out)
               : fail(NJ_E_NO_DEVICE, "--gpus all: no GPU can be used here; see `nojit doctor`");
}

int run_ordinal(const struct run *r)
{
    const struct place *p = &r->group->place;
    /* The only GPU that it is shown. */
    const bool own = r->group->supervisor < 0 && nj_gpu_count() == 1;
    return own ? 0 : p->local_rank;
}

/* ---- meeting ---- */

static int comm_failed(const struct run *r, int rc)
{
    return fail_context(rc, r->ctx, "connecting the GPUs");
}

/* Make one transfer: NCCL connects ranks by their first transfers, and takes memory for it. This comes before plans
 * are compared with the remaining memory. */
static int transfer_once(struct run *r)
{
    const size_t each = 16, all = each * (size_t)r->group->place.size;
    nj_stream *s = NULL;
    void *to = NULL;
    /* After a failure nothing is freed: a stream may wait forever. */
    TRY(nj_stream_create(r->ctx, &s));
    TRY(nj_comm_alloc(r->comm, 2 * all, &to));
    TRY(nj_all_to_all(r->comm, s, to, (char *)to + all, each));
    TRY(nj_all_gather(r->comm, s, to, (char *)to + all, each));
    TRY(nj_broadcast(r->comm, s, to, each, 0));
    TRY(nj_stream_sync(s));
    nj_comm_free(r->comm, to);
    nj_stream_destroy(s);
    return 0;
}

/* ---- settings that all ranks must share ---- */

/* Find the first line that differs; names are options, or words such as "data". */
static int compare(const char *own, const char *first)
{
    enum { SHOWN = 300 };
    while (*own != '\0' || *first != '\0') {
        const int n = (int)strcspn(own, "\n"), m = (int)strcspn(first, "\n");
        if (n != m || strncmp(own, first, (size_t)n) != 0)
            return fail(NJ_E_ARG,
                        "'%.*s' here, but '%.*s' on rank 0; give all ranks the same options and "
                        "files",
                        n < SHOWN ? n : SHOWN, own, m < SHOWN ? m : SHOWN, first);
        own += n + (own[n] == '\n');
        first += m + (first[m] == '\n');
    }
    return 0;
}

int run_compare(struct run *r, const char *lines)
{
    char *first = group_leads(r->group) ? strdup(lines) : NULL;
    int rc = group_share_text(r->group, &first);
    if (rc == 0 && first != NULL)
        rc = compare(lines, first);
    free(first);
    return rc;
}

static int compare_options(struct run *r)
{
    char *lines = options_of_ranks(r->group->command, r->s);
    const int rc = lines != NULL ? run_compare(r, lines)
                                 : fail(NJ_E_NOMEM, "no memory for the options of this rank");
    free(lines);
    return rc;
}

/* Write a name for the run. Jobs that a launcher runs side by side, and that write into folders of one name, are
 * distinguished by the places of these folders and by the launcher's name of the job. Another host may have the
 * folder elsewhere, or not at all. */
static void name_run(const struct run *r, char *name, size_t bytes)
{
    const struct place *p = &r->group->place;
    char out[PATH_BYTES] = "";
    if (r->s->out != NULL && p->local_size == p->size)
        real_path(r->s->out, out, sizeof out);
    else if (r->s->out != NULL)
        snprintf(out, sizeof out, "%s", r->s->out);
    snprintf(name, bytes, "%s\n%s", out, p->job);
}

/* Print a line on rank 0 only: nobody sees the progress of the others. */
static void say(void *run, const char *line)
{
    struct run *r = run;
    if (group_leads(r->group))
        progress_say(&r->progress, "%s", line);
    else
        fprintf(stderr, "nojit %s: %s\n", r->group->command, line);
}

static int meet(struct run *r, void *id, size_t bytes)
{
    const struct nj_device_info *d = nj_context_device(r->ctx);
    char version[32], build[20], name[PATH_BYTES + JOB_BYTES];
    snprintf(version, sizeof version, "%zu", d->comm_version);
    snprintf(build, sizeof build, "%016llx", (unsigned long long)binary_hash());
    name_run(r, name, sizeof name);
    const struct identity ids[] = {{"the version of nojit", NOJIT_VERSION},
                                   {"the build of nojit (binary_hash)", build},
                                   {"the backend", d->backend},
                                   {"the architecture of the GPU", d->arch},
                                   {"the version of NCCL", version},
                                   {"the version of cuBLASLt", d->gemm_build}};
    return group_meet(r->group, (struct meeting){.run = name,
                                                 .ids = ids,
                                                 .count = sizeof ids / sizeof *ids,
                                                 .payload = id,
                                                 .bytes = bytes,
                                                 .say = say,
                                                 .user = r});
}

int run_join(struct run *r)
{
    const struct place *p = &r->group->place;
    unsigned char id[NJ_COMM_ID_BYTES];
    int seconds, silence;
    if (p->size == 1)
        return 0;
    TRY(launcher_seconds(&seconds, &silence));
    int rc = nj_comm_id(r->ctx, id); /* this opens the library on each rank */
    if (rc != 0)
        return comm_failed(r, rc);
    rc = meet(r, id, sizeof id);
    if (rc == 0)
        rc = compare_options(r);
    if (rc != 0)
        return rc;
    const size_t before = nj_context_budget(r->ctx);
    group_expect(r->group, "connecting the GPUs", seconds, "NOJIT_CONNECT_TIMEOUT");
    rc = nj_comm_create(r->ctx, id, p->rank, p->size, &r->comm);
    if (rc == 0)
        rc = transfer_once(r);
    group_done(r->group);
    r->comm_bytes = memory_taken(r->ctx, before);
    return rc != 0 ? comm_failed(r, rc) : 0;
}

void run_rank_options(const struct settings *s, int rank, int size, struct train_options *out)
{
    out->ranks = size > 1 ? size : (int)s->virtual_ranks;
    out->rank = size > 1 ? rank : RANKS_VIRTUAL;
    if (s->grad_accum == 0)
        out->grad_accum = out->ranks;
}

int run_check_ranks(const struct settings *s, const struct train_options *o)
{
    const int refused = check_virtual(s, o->rank == RANKS_VIRTUAL ? 1 : o->ranks);
    if (refused || !s->teacher_shard)
        return refused;
    if (s->teacher == NULL)
        return fail(NJ_E_ARG, "--teacher-shard needs --teacher");
    if (o->rank == RANKS_VIRTUAL)
        return fail(NJ_E_ARG,
                    "--teacher-shard needs several ranks that are processes of their own; add "
                    "--gpus N, use a launcher, or leave it out");
    return 0;
}

/* Estimate the memory of NCCL: a line through what was measured with NCCL 2.28 on two GPUs (docs/scaling.md) and
 * what NVIDIA/nccl #1685 reports for eight, all H100 on NVLink: code and buffers of collectives, then of transfers
 * by kernels with each other GPU. Copy engines take less (docs/several-gpus.md), but a plan does not know whether
 * they will be used. */
size_t run_comm_estimate(const struct train_options *o)
{
    const size_t collectives = 1193000000, peer = 450000000;
    return o->rank == RANKS_VIRTUAL ? 0 : collectives + peer * (size_t)(o->ranks - 1);
}

const char *run_ranks_text(const struct run *r, char *buffer, size_t bytes)
{
    const struct place *p = &r->group->place;
    const struct nj_device_info *d = nj_context_device(r->ctx);
    const int virtual_ranks = (int)r->s->virtual_ranks;
    char taken[32];
    buffer[0] = '\0';
    if (virtual_ranks > 1)
        snprintf(buffer, bytes, "%d virtual ranks on one device", virtual_ranks);
    if (p->size > 1)
        snprintf(buffer, bytes, "%d ranks, %d on this host (%s)", p->size, p->local_size,
                 p->launcher);
    if (p->size > 1 && d->comm_version > 0)
        snprintf(buffer + strlen(buffer), bytes - strlen(buffer), ", NCCL %zu.%zu.%zu with %s",
                 d->comm_version / 10000, d->comm_version / 100 % 100, d->comm_version % 100,
                 bytes_text((double)r->comm_bytes, taken, sizeof taken));
    return buffer;
}

/* ---- facts that rank 0 has read ---- */

struct models {
    struct model_config config[2]; /* configurations of student and teacher */
    struct lora_config lora;
    int vocab;
    size_t types; /* bytes of teacher_types */
    char types_text[sizeof(((struct run *)0)->teacher_types_text)];
};

static int describe(const struct run *r, struct models *out)
{
    struct tensor_spec *spec = NULL;
    const bool has_teacher = r->teacher[0] != '\0';
    int rc = source_config(r->student, &out->config[0]);
    if (rc == 0 && has_teacher)
        rc = source_config(r->teacher, &out->config[1]);
    if (rc == 0 && r->teacher_types)
        rc = tensor_specs(&out->config[1], &spec, &out->types);
    free(spec);
    out->lora = r->options.lora;
    out->vocab = r->vocab;
    memcpy(out->types_text, r->teacher_types_text, sizeof out->types_text);
    return rc;
}

static int take_models(struct run *r, const struct models *m)
{
    r->options.lora = m->lora;
    r->vocab = m->vocab;
    memcpy(r->teacher_types_text, m->types_text, sizeof m->types_text);
    if (m->types == 0)
        return 0;
    r->options.teacher_types = r->teacher_types = malloc(m->types);
    return r->teacher_types ? 0 : fail(NJ_E_NOMEM, "no memory for %zu types of tensors", m->types);
}

int run_share_models(struct run *r)
{
    struct models m = {0};
    if (r->group->place.size == 1 || r->s->every_rank_reads)
        return 0;
    int rc = group_leads(r->group) ? describe(r, &m) : 0;
    if (rc == 0)
        rc = group_share(r->group, &m, sizeof m);
    if (rc == 0 && !group_leads(r->group))
        rc = take_models(r, &m);
    if (rc == 0 && m.types > 0)
        rc = group_share(r->group, r->teacher_types, m.types);
    memcpy(r->config, m.config, sizeof r->config);
    r->options.given = r->config;
    return rc;
}

/* ---- choices of rank 0 ---- */

static int read_text(FILE *f, char **out)
{
    size_t bytes = 0;
    char block[4096];
    FILE *to = open_memstream(out, &bytes);
    if (to == NULL)
        return fail(NJ_E_NOMEM, "no memory for the GEMM algorithms");
    for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;)
        fwrite(block, 1, n, to);
    return fclose(to) == 0 ? 0 : fail(NJ_E_NOMEM, "no memory for the GEMM algorithms");
}

/* Get rank 0's table as text, by way of a file, which is its only form. */
static int gemms_of_rank_0(struct run *r, const char *path, char **text)
{
    if (nj_gemm_table_write(r->ctx, path) != 0)
        return fail_context(NJ_E_IO, r->ctx, "GEMM algorithms for the other ranks");
    FILE *f = fopen(path, "r");
    if (f == NULL) { /* no algorithms were chosen */
        *text = strdup("");
        return *text != NULL ? 0 : fail(NJ_E_NOMEM, "no memory for the GEMM algorithms");
    }
    const int rc = read_text(f, text);
    fclose(f);
    return rc;
}

static int take_gemms(struct run *r, const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    if (*text == '\0')
        return 0;
    const int failed = f == NULL || fputs(text, f) < 0;
    if ((f != NULL && fclose(f) != 0) || failed || nj_gemm_table_read(r->ctx, path) < 0)
        return fail(NJ_E_IO, "%s: the GEMM algorithms of rank 0 cannot be kept here", path);
    return 0;
}

int run_share_gemms(struct run *r)
{
    const char *place = getenv("TMPDIR");
    char dir[PATH_BYTES], path[PATH_BYTES + 16], *text = NULL;
    if (r->group->place.size == 1)
        return 0;
    snprintf(dir, sizeof dir, "%s/nojit-XXXXXX", place != NULL && *place ? place : "/tmp");
    if (mkdtemp(dir) == NULL)
        return fail(NJ_E_IO, "%s: no temporary folder can be made; set TMPDIR", dir);
    snprintf(path, sizeof path, "%s/gemm.txt", dir);
    int rc = group_leads(r->group) ? gemms_of_rank_0(r, path, &text) : 0;
    if (rc == 0)
        rc = group_share_text(r->group, &text);
    if (rc == 0 && !group_leads(r->group))
        rc = take_gemms(r, path, text);
    free(text);
    (void)remove(path);
    (void)remove(dir);
    return rc;
}
