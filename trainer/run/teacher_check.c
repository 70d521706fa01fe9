/* SPDX-License-Identifier: Apache-2.0
 *
 * teacher_check.c: what --teacher-dtype costs a teacher: an engine whose student is the teacher as it is and
 * whose teacher is the same, rounded, evaluates the first batches. Its divergence is the reverse one
 * at temperature 1, KL(student || teacher).
 */
#include "run/teacher_check.h"

#include "io/error.h"
#include "run/teacher_types.h"

enum { TOKENS = 16384 };

/* Return the number of batches, for a number of tokens or an epoch: repeated rows would add nothing. */
static int64_t batches_of(const struct run *r)
{
    const int64_t size = r->options.batch_size, batch = size * r->options.seq_len;
    const int64_t most = (TOKENS + batch - 1) / batch;
    const int64_t epoch = (data_windows(r->data) + size - 1) / size;
    return epoch < most ? epoch : most;
}

static int measure(struct run *r, struct eval_result *out)
{
    struct train_options o = r->options;
    struct engine *e = NULL;
    o.steps = 0;
    o.objective = OBJECTIVE_KL;
    o.temperature = o.kd_ratio = o.beta = 1;
    o.recompute = o.decode_rows = 0;
    o.student_fp8 = 0; /* a teacher may be too small for it */
    o.lora = (struct lora_config){0};
    o.adapter_dir = NULL;
    o.given = NULL;
    o.eval_batches = batches_of(r);
    int rc = engine_create(r->ctx, r->teacher, r->teacher, &o, NULL, NULL, &e);
    if (rc == 0)
        rc = engine_eval(e, batches_alone(r->batches), out);
    engine_destroy(e);
    return rc;
}

int run_check_teacher(struct run *r)
{
    struct teacher_check *check = &r->teacher_check;
    const char *name = run_teacher_dtype(r, "");
    struct eval_result e;
    struct data_state start;
    if (data_tokens(r->data) == 0) {
        progress_say(&r->progress, "%s teacher: accuracy check skipped: there is no --data", name);
        return 0;
    }
    batches_tell(r->batches, &start);
    int rc = measure(r, &e);
    batches_seek(batches_alone(r->batches), &start);
    if (rc == NJ_E_NOMEM) {
        progress_say(&r->progress, "%s teacher: accuracy check skipped: %s", name, fail_text());
        return 0;
    }
    if (rc != 0)
        return rc;
    *check = (struct teacher_check){e.kd_loss, e.agreement, e.valid_tokens};
    progress_say(&r->progress,
                 "%s teacher: KL(%s || %s) %.6f nats/token, %.2f %% top-1 agreement, on "
                 "%lld tokens",
                 name, run_dtype_name(r), name, check->kl, 100 * check->agreement,
                 (long long)check->tokens);
    return 0;
}
