/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs softcap on the best device there is and checks it against the formula.
 */
#include <math.h>
#include <stdio.h>

#include "nojit_ops.h"

enum { N = 1003 };
static const float cap = 30;

static int run(nj_context *ctx, nj_stream *s, float *host)
{
    float *x = NULL, *y = NULL;
    int err = nj_alloc(ctx, NJ_MEM_DEVICE, N * sizeof *x, (void **)&x);
    if (!err)
        err = nj_alloc(ctx, NJ_MEM_DEVICE, N * sizeof *y, (void **)&y);
    if (!err)
        err = nj_copy(s, x, host, N * sizeof *x);
    if (!err)
        err = nj_softcap(s, NJ_F32, &(struct nj_softcap){.y = y, .x = x, .n = N, .cap = cap});
    if (!err)
        err = nj_copy(s, host, y, N * sizeof *y);
    if (!err)
        err = nj_stream_sync(s);
    nj_free(ctx, NJ_MEM_DEVICE, x);
    nj_free(ctx, NJ_MEM_DEVICE, y);
    return err;
}

int main(void)
{
    nj_context *ctx = NULL;
    nj_stream *s = NULL;
    float host[N], worst = 0;
    for (int i = 0; i < N; i++)
        host[i] = 0.2f * (float)(i - N / 2);
    int err = nj_forbid_jit();
    if (!err)
        err = nj_context_create(&ctx, NULL);
    if (!err)
        err = nj_stream_create(ctx, &s);
    if (!err)
        err = run(ctx, s, host);
    if (err) {
        fprintf(stderr, "own-kernel: %s\n",
                ctx != NULL ? nj_context_error(ctx) : nj_error_text(err));
        return 1;
    }
    for (int i = 0; i < N; i++) {
        const float error = fabsf(host[i] - cap * tanhf(0.2f * (float)(i - N / 2) / cap));
        worst = error > worst || error != error ? error : worst;
    }
    printf("softcap on %s: worst error %.1e\n", nj_context_device(ctx)->name, worst);
    nj_stream_destroy(s);
    nj_context_destroy(ctx);
    return worst <= 1e-4f ? 0 : 1;
}
