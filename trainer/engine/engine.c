/* SPDX-License-Identifier: Apache-2.0
 *
 * engine.c: opens and closes an engine: checks that the models fit together, prepares every GEMM, allocates the
 * arenas and loads the weights.
 */
#include "engine/engine.h"

#include "base/check.h"
#include "base/checked.h"
#include "base/try.h"
#include "io/error.h"
#include "model/model_open.h"
#include "net/fp8.h"
#include "net/quant.h"
#include "net/student_fp8.h"
#include "net/tables.h"
#include "nojit_ops.h"
#include "state/cost.h"
#include "state/engine_struct.h"
#include "state/ranks.h"
#include "step/graphs.h"
#include "step/micro_step.h"
#include "weights/adapters.h"
#include "weights/matrix_weights.h"
#include "weights/weights.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef void say_fn(void *user, const char *line);

/* Check that the vocabularies fit. vocab: a smaller restriction, which the caller has reported; 0: none. */
static int check_pair(const struct model_config *s, const struct model_config *t, int vocab,
                      say_fn *say, void *user)
{
    const int smaller = config_common_vocab(s, t);
    char line[160];
    TRY(config_check_pair(s, t));
    snprintf(
        line, sizeof line,
        "vocabularies of %d (student) and %d (teacher) differ by padding; both are restricted to "
        "%d tokens",
        s->vocab_size, t->vocab_size, smaller);
    if (s->vocab_size != t->vocab_size && (vocab == 0 || vocab == smaller) && say)
        say(user, line);
    return 0;
}

/* which: 0 student, 1 teacher */
static int read_config(const struct engine *e, int which, const char *dir, struct model_config *out)
{
    if (!e->o.given)
        return source_config(dir, out);
    *out = e->o.given[which];
    return 0;
}

static int longest(const struct train_options *o)
{
    return o->decode_positions > o->seq_len ? o->decode_positions : o->seq_len;
}

static int read_models(struct engine *e, const char *student_dir, const char *teacher_dir,
                       say_fn *say, void *user)
{
    struct model_config teacher;
    e->student_dir = strdup(student_dir);
    if (!e->student_dir)
        return fail(NJ_E_NOMEM, "no host memory for a path; free some");
    TRY(read_config(e, 0, student_dir, &e->student.c));
    TRY(config_check_length(&e->student.c, longest(&e->o), student_dir));
    e->student.balance = train_balance(&e->o, &e->student.c) / (float)e->o.grad_accum;
    TRY(net_layout(&e->student, &e->o.lora, e->o.student_types, &e->lora));
    TRY(student_fp8_choose(&e->student, e->o.student_fp8, train_rows(&e->o)));
    if (!teacher_dir)
        return 0;
    TRY(read_config(e, 1, teacher_dir, &teacher));
    TRY(config_check_length(&teacher, e->o.seq_len, teacher_dir));
    TRY(check_pair(&e->student.c, &teacher, e->o.vocab, say, user));
    return plan_teacher(&teacher, &e->o, &e->teacher);
}

static int check_budget(const struct engine *e)
{
    const double gib = 1.0 / (1 << 30);
    size_t budget = nj_context_budget(e->ctx);
    if (e->o.memory_bytes > 0 && e->o.memory_bytes < budget)
        budget = e->o.memory_bytes;
    if (plan_fits(&e->plan, &e->o, budget))
        return 0;
    if (e->plan.total_bytes <= budget)
        return plan_check_array(&e->plan, &e->o);
    const size_t logits =
        plan_bytes(&e->plan, REGION_HEAD_LOGITS) + plan_bytes(&e->plan, REGION_TEACHER_LOGITS);
    return fail(
        NJ_E_NOMEM,
        "this run needs %.2f GiB of device memory and %.2f GiB are available; activations take "
        "%.2f "
        "GiB and logits %.2f GiB: lower the batch size (and raise gradient accumulation), the "
        "sequence length or, where logits take memory, the head chunk; `nojit plan` says what fits",
        (double)e->plan.total_bytes * gib, (double)budget * gib,
        (double)plan_bytes(&e->plan, REGION_ACTIVATIONS) * gib, (double)logits * gib);
}

size_t memory_taken(nj_context *ctx, size_t before)
{
    const struct nj_device_info *d = nj_context_device(ctx);
    const size_t now = nj_context_budget(ctx);
    const bool told = d->sm > 0 && !d->managed && !d->integrated && before != SIZE_MAX;
    return told && now < before ? before - now : 0;
}

static void connect_nets(struct engine *e)
{
    struct memory *m = &e->mem;
    net_connect(&e->student, m->weights, m->grad);
    quant_connect(&e->student, m->expanded);
    e->student.inv_freq = m->inv_freq;
    e->lora.grad = m->grad;
    e->lora.w = m->trained;
    teacher_connect(&e->teacher, e->o.comm);
}

/* Lay out both arenas, and set the pointers into them. */
static void lay_out(struct engine *e, struct carve device, void *host)
{
    struct plan again = {0};
    plan_layout(&e->student, &e->teacher, &e->o, device, host, &e->mem, &again);
    const size_t carved = again.total_bytes + e->o.workspace_bytes;
    CHECK(device.cells != NULL || carved == e->plan.total_bytes);
    CHECK(again.host_bytes == e->plan.host_bytes);
    connect_nets(e);
}

/* Prepare the GEMMs. The code that will run says which it needs. Trying them takes a workspace and at most as much
 * memory as their operands: less than the stream and the arena, so they are tried before those are allocated. The
 * layout says which arrays there are; its addresses have no memory, as nothing is read or written there. */
static int prepare(struct engine *e)
{
    const size_t limit = e->plan.cells.limit;
    const size_t device = limit > 0 ? size_mul(CARVE_CELLS, limit) : e->plan.total_bytes;
    const size_t bytes = size_add(device, e->plan.host_bytes);
    char *nowhere =
        mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (nowhere == MAP_FAILED)
        return fail(
            NJ_E_NOMEM,
            "%zu bytes of address space cannot be reserved: %s; raise the limit (ulimit -v)", bytes,
            strerror(errno));
    struct work w = {.ctx = e->ctx, .prepare = true};
    e->cells = e->plan.cells;
    for (int i = 0; limit > 0 && i < CARVE_CELLS; i++)
        carve_place(&e->cells, i, nowhere + (size_t)i * limit);
    lay_out(e, (struct carve){.base = nowhere, .cells = limit > 0 ? &e->cells : NULL},
            nowhere + device);
    micro_step(&w, e, e->shape.chunks > 1 ? 2 : 1, e->shape.train);
    if (e->teacher.schedule.runs_ahead) {
        teacher_forward(&w, &e->teacher, &e->mem.rows, 1); /* in evaluations */
        teacher_forward(&w, &e->teacher, &e->mem.rows, teacher_batches(&e->teacher));
    }
    w.add = true;
    if (e->shape.micro > 1)
        micro_step(&w, e, 1, true);
    w.add = false;
    if (e->mem.decoder.rows > 0)
        decoder_prepare(&w, &e->mem.decoder);
    munmap(nowhere, bytes);
    return w.rc == 0 ? 0 : engine_fail(e, w.rc, "preparing GEMMs");
}

static int allocate_cells(struct engine *e)
{
    int rc = 0;
    e->cells = e->plan.cells;
    e->allocated = true;
    for (int i = 0; i < CARVE_CELLS && rc == 0; i++) {
        const size_t bytes = carve_cell_bytes(&e->cells, i);
        void *piece = NULL;
        if (bytes == 0)
            continue;
        rc = nj_alloc(e->ctx, NJ_MEM_DEVICE, bytes, &piece);
        carve_place(&e->cells, i, piece);
    }
    return rc;
}

/* Return whether the device arena is shared: ranks that are processes transfer from and to all memory that they
 * plan. */
static bool is_shared(const struct engine *e)
{
    return e->shape.rank != RANKS_VIRTUAL;
}

static int allocate_device(struct engine *e, size_t bytes)
{
    if (e->plan.cells.limit > 0)
        return allocate_cells(e);
    return is_shared(e) ? nj_comm_alloc(e->o.comm, bytes, &e->device)
                        : nj_alloc(e->ctx, NJ_MEM_DEVICE, bytes, &e->device);
}

static void free_device(struct engine *e)
{
    if (is_shared(e))
        nj_comm_free(e->o.comm, e->device); /* this waits for nothing */
    else
        nj_free(e->ctx, NJ_MEM_DEVICE, e->device);
    for (int i = 0; i < CARVE_CELLS; i++)
        if (e->allocated && !e->cells.joined[i])
            nj_free(e->ctx, NJ_MEM_DEVICE, e->cells.base[i]);
}

/* Allocate the stream, which keeps the workspace, and both arenas as planned. free_bytes: free device memory before
 * the engine took any; the difference is code that the libraries loaded to try GEMMs. */
static int allocate(struct engine *e, size_t free_bytes)
{
    const size_t arena_bytes = e->plan.total_bytes - e->o.workspace_bytes;
    e->library_bytes = memory_taken(e->ctx, free_bytes);
    int rc = nj_stream_create(e->ctx, &e->stream);
    if (rc == 0)
        rc = nj_event_create(e->ctx, &e->results);
    for (int i = 0; rc == 0 && e->shape.overlapped && i < e->shape.pieces.count; i++)
        rc = nj_event_create(e->ctx, &e->gathered[i]);
    const size_t before = nj_context_budget(e->ctx);
    if (rc == 0)
        rc = allocate_device(e, arena_bytes);
    const size_t taken = memory_taken(e->ctx, before);
    e->allocated_bytes = taken > 0 ? taken + e->o.workspace_bytes : 0;
    if (rc == 0)
        rc = nj_alloc(e->ctx, NJ_MEM_HOST, e->plan.host_bytes, &e->host);
    if (rc != 0)
        return engine_fail(e, rc, "allocating the memory of the plan");
    lay_out(e,
            (struct carve){.base = e->device, .cells = e->plan.cells.limit > 0 ? &e->cells : NULL},
            e->host);
    student_fp8_head_name(&e->student, &e->mem.fp8_head);
    e->chunks_of = calloc((size_t)e->shape.slots, sizeof *e->chunks_of);
    e->scratch = calloc((size_t)e->shape.rows, sizeof *e->scratch);
    e->began = calloc((size_t)e->o.grad_accum + 1, sizeof *e->began);
    if (!e->chunks_of || !e->scratch || !e->began)
        return fail(NJ_E_NOMEM, "no host memory to sort %d tokens; free some", e->shape.rows);
    return step_graphs_open(e);
}

/* Make the plan, and refuse one that does not fit. */
static int plan_run(struct engine *e)
{
    const struct model_config *t = engine_teacher(e);
    e->o.workspace_bytes = nj_gemm_workspace_bytes(e->ctx);
    TRY(plan_make(&e->student.c, t, &e->o, &e->plan));
    plan_shape(&e->student, t, &e->o, &e->shape);
    return check_budget(e);
}

/* Refuse several ranks if GEMMs are refused: the types of the arrays that ranks exchange follow from these, and
 * each rank finds them for itself. */
static int check_refused(const struct engine *e)
{
    static const struct fp8_refusals none[2];
    if (e->o.ranks < 2 || memcmp(none, e->fp8_refused, sizeof none) == 0)
        return 0;
    return fail(NJ_E_UNSUPPORTED, "FP8: cuBLASLt has no right algorithm here for some GEMMs, which "
                                  "one GPU would run in 16 bits; with several, leave FP8 out, or "
                                  "set NOJIT_CUBLASLT to another version");
}

/* Plan the run and prepare its GEMMs. GEMMs without an FP8 algorithm run in T from then on, so their arrays differ,
 * and all is planned anew. */
static int plan_and_prepare(struct engine *e)
{
    struct fp8_refusals before[2];
    do {
        memcpy(before, e->fp8_refused, sizeof before);
        TRY(student_fp8_choose(&e->student, e->o.student_fp8, train_rows(&e->o)));
        TRY(teacher_choose(&e->teacher));
        TRY(plan_run(e));
        TRY(prepare(e));
    } while (memcmp(before, e->fp8_refused, sizeof before) != 0);
    return check_refused(e);
}

static void append_word(char *out, size_t bytes, const char *word)
{
    const size_t used = strlen(out);
    snprintf(out + used, bytes - used, "%s%s", used > 0 ? " " : "", word);
}

static void name_refused(const struct fp8_refusals *f, char *out, size_t bytes)
{
    *out = '\0';
    for (int kind = 0; kind < BLOCK_KINDS; kind++)
        for (int i = 0; i < block_matrices[kind].count; i++)
            if (f->in_block[kind][i])
                append_word(out, bytes, block_matrices[kind].matrix[i].name);
    if (f->logits)
        append_word(out, bytes, "logits");
    if (f->gradients)
        append_word(out, bytes, "gradients");
}

static void say_refused(struct engine *e, say_fn *say, void *user)
{
    static const char *const whose[] = {"student", "teacher"};
    const struct nj_device_info *d = nj_context_device(e->ctx);
    const size_t v = d->gemm_version;
    for (int i = 0; i < 2; i++) {
        char *names = e->fp8_refused_names[i], line[320];
        name_refused(&e->fp8_refused[i], names, sizeof e->fp8_refused_names[i]);
        snprintf(line, sizeof line,
                 "FP8: cuBLASLt %zu.%zu.%zu has no right algorithm on %.100s for these GEMMs of "
                 "the %s, which run in 16 bits: %s",
                 v / 10000, v % 10000 / 100, v % 100, d->name, whose[i], names);
        if (*names && say)
            say(user, line);
    }
}

static int send_tables(struct engine *e, const struct net *n)
{
    tables_fill(&n->c, e->o.seq_len, e->mem.transfer);
    TRY(nj_copy(e->stream, n->inv_freq, e->mem.transfer, tables_bytes(&n->c)));
    return nj_stream_sync(e->stream);
}

/* Return where the student's weights are loaded: in the place of updates, if they are trained. */
static struct updated place_of_student(const struct engine *e)
{
    return net_is_frozen(&e->student) ? (struct updated){e->mem.weights, e->o.dtype}
                                      : engine_updated(e);
}

static int read_teacher(struct engine *e, const char *dir)
{
    const struct net *n = &e->teacher.net;
    const struct updated to = {e->teacher.weights, e->o.dtype};
    TRY(weights_load(e, dir, n, to, matrix_item, &e->teacher_hash));
    return teacher_loaded(&e->teacher, &e->teacher_hash);
}

static int read_files(struct engine *e, const char *student_dir, const char *teacher_dir)
{
    TRY(weights_load(e, student_dir, &e->student, place_of_student(e), matrix_item,
                     &e->student_hash));
    TRY(adapters_load(e, e->o.adapter_dir));
    return teacher_dir ? read_teacher(e, teacher_dir) : 0;
}

/* Take the layers of the teacher that rank 0 shares out as it reads them. */
static int take_layers(struct engine *e)
{
    for (int l = 0; l < e->teacher.net.c.layers; l++)
        TRY(ranks_share_layer(e, l));
    return 0;
}

static int share_models(struct engine *e)
{
    struct work w = engine_work(e);
    const struct updated student = place_of_student(e);
    uint64_t hash[] = {e->student_hash, e->teacher_hash};
    ranks_send(&w, e, student.w, (size_t)e->student.p.count * dtype_bytes(student.T));
    adapters_send(&w, e);
    if (e->teacher.weights_alike > 0)
        ranks_send(&w, e, e->teacher.weights, e->teacher.weights_alike);
    OP(&w, ranks_tell(e, hash, sizeof hash));
    e->student_hash = hash[0];
    e->teacher_hash = hash[1];
    return w.rc == 0 ? 0 : engine_fail(e, w.rc, "sending the weights to all ranks");
}

static int load(struct engine *e, const char *student_dir, const char *teacher_dir)
{
    const bool train = e->shape.train;
    float *state = e->mem.pinned->state;
    TRY(engine_reads(e) ? read_files(e, student_dir, teacher_dir) : take_layers(e));
    TRY(share_models(e));
    bool scaled = e->o.dtype == NJ_LP && nj_context_device(e->ctx)->lp_is_f16;
    state[NJ_STEP_LOSS_SCALE] = scaled ? 65536.0f : 1.0f;
    state[NJ_STEP_GRAD_SCALE] = 1.0f;
    struct work w = engine_work(e);
    if (train)
        OP(&w, weights_round(e));
    OP(&w, send_tables(e, &e->student));
    if (e->teacher.net.inv_freq)
        OP(&w, send_tables(e, &e->teacher.net));
    OP(&w, nj_copy(w.s, e->mem.state, state, NJ_STEP_SLOTS * sizeof *state));
    OP(&w, nj_stream_sync(w.s));
    return w.rc == 0 ? 0 : engine_fail(e, w.rc, "preparing the weights");
}

int engine_create(nj_context *ctx, const char *student_dir, const char *teacher_dir,
                  const struct train_options *o, void (*say)(void *user, const char *line),
                  void *user, struct engine **out)
{
    struct engine *e = calloc(1, sizeof *e);
    *out = NULL;
    if (!e)
        return fail(NJ_E_NOMEM, "no host memory for the engine; free some");
    e->ctx = ctx;
    e->o = *o;
    e->o.cell_bytes = nj_context_device(ctx)->cell_bytes;
    e->o.array_bytes = nj_context_device(ctx)->array_bytes;
    e->graphs = o->use_graph != 0;
    e->o.f8_scales = nj_context_device(ctx)->f8;
    e->student.T = o->dtype;
    e->student.f8_scales = e->o.f8_scales;
    e->student.recompute = (enum recompute)o->recompute;
    e->o.fp8_refused[0] = e->student.fp8_refused = &e->fp8_refused[0];
    e->o.fp8_refused[1] = &e->fp8_refused[1];
    const size_t free_bytes = nj_context_budget(ctx);
    int rc = read_models(e, student_dir, teacher_dir, say, user);
    e->o.objective = objective_with((enum objective)o->objective, e->teacher.form);
    if (rc == 0)
        rc = plan_and_prepare(e);
    if (rc == 0)
        say_refused(e, say, user);
    if (rc == 0 && o->prepared)
        rc = o->prepared(o->prepared_user);
    if (rc == 0)
        rc = allocate(e, free_bytes);
    if (rc == 0)
        rc = load(e, student_dir, teacher_dir);
    if (rc != 0)
        engine_destroy(e);
    else
        *out = e;
    return rc;
}

void engine_destroy(struct engine *e)
{
    if (!e)
        return;
    step_graphs_close(e);
    decode_graphs_free(e->decode);
    if (e->stream && e->device && is_shared(e) && engine_join(e) == 0)
        (void)nj_stream_sync(e->stream);
    for (int i = 0; i < PIECES_MOST; i++)
        nj_event_destroy(e->gathered[i]);
    nj_event_destroy(e->results);
    nj_stream_destroy(e->stream);
    free_device(e);
    nj_free(e->ctx, NJ_MEM_HOST, e->host);
    net_free(&e->student);
    lora_free(&e->lora);
    teacher_close(&e->teacher);
    free(e->student_dir);
    free(e->chunks_of);
    free(e->began);
    free(e->scratch);
    free(e);
}

const struct model_config *engine_student(const struct engine *e)
{
    return &e->student.c;
}

const struct model_config *engine_teacher(const struct engine *e)
{
    return teacher_model_config(&e->teacher);
}

const char *engine_student_fp8(const struct engine *e)
{
    return e->student.fp8_names;
}

const char *engine_fp8_refused(const struct engine *e, bool of_teacher)
{
    return e->fp8_refused_names[of_teacher];
}

int engine_head_chunk(const struct engine *e)
{
    return e->shape.chunk;
}

int64_t engine_trained_parameters(const struct engine *e)
{
    const struct params *p = engine_trained(e);
    int64_t count = 0;
    for (size_t i = 0; i < p->specs; i++)
        count += tensor_elements(&p->spec[i]);
    return count;
}

const struct plan *engine_plan(const struct engine *e)
{
    return &e->plan;
}

uint64_t engine_student_hash(const struct engine *e)
{
    return e->student_hash;
}

uint64_t engine_teacher_hash(const struct engine *e)
{
    return e->teacher_hash;
}

struct step_flops engine_flops(const struct engine *e)
{
    return step_flops_count(&e->student, teacher_net(&e->teacher), &e->o,
                            e->mem.fp8_head.gradients);
}

size_t engine_allocated_bytes(const struct engine *e)
{
    return e->allocated_bytes;
}

size_t engine_step_comm_bytes(const struct engine *e)
{
    return e->step_comm_bytes;
}

size_t engine_library_bytes(const struct engine *e)
{
    return e->library_bytes;
}
