/* SPDX-License-Identifier: Apache-2.0
 *
 * graph.c: captured work. Capture is thread-local, so that other threads may go on using the
 * driver.
 */
#include "backend.h"

int nj_cuda_graph_begin(nj_stream *s)
{
    struct nj_cuda *cu = nj_cuda_of(s->ctx);
    TRY(nj_cuda_enter(s->ctx));
    const int rc =
        cu->driver.cuStreamBeginCapture(s->handle, NJ_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    return nj_cuda_check(s->ctx, rc, "nj_graph_begin");
}

int nj_cuda_graph_end(nj_stream *s, nj_graph *g)
{
    struct nj_cuda *cu = nj_cuda_of(s->ctx);
    void *graph = NULL;
    TRY(nj_cuda_enter(s->ctx));
    TRY(nj_cuda_check(s->ctx, cu->driver.cuStreamEndCapture(s->handle, &graph), "nj_graph_end"));
    const int rc =
        nj_cuda_check(s->ctx, cu->driver.cuGraphInstantiateWithFlags(&g->handle, graph, 0),
                      "nj_graph_end: making the graph executable");
    cu->driver.cuGraphDestroy(graph);
    return rc;
}

int nj_cuda_graph_launch(nj_graph *g, nj_stream *s)
{
    struct nj_cuda *cu = nj_cuda_of(s->ctx);
    TRY(nj_cuda_enter(s->ctx));
    s->ctx->last_key = "a graph";
    return nj_cuda_check(s->ctx, cu->driver.cuGraphLaunch(g->handle, s->handle), "nj_graph_launch");
}

void nj_cuda_graph_destroy(nj_graph *g)
{
    if (nj_cuda_enter(g->ctx) == 0)
        nj_cuda_of(g->ctx)->driver.cuGraphExecDestroy(g->handle);
}
