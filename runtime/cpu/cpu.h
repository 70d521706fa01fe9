/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu.h: what the files of the CPU backend share: cpu.c, and cpu_comm.c, its communicators.
 */
#ifndef NOJIT_CPU_H
#define NOJIT_CPU_H

#include "../internal.h"

int nj_cpu_comm_id(nj_context *ctx, unsigned char *id);
int nj_cpu_comm_create(nj_comm *c, const unsigned char *id);
void nj_cpu_comm_destroy(nj_comm *c);
int nj_cpu_transfer(nj_comm *c, nj_stream *s, const struct nj_transfer *t);

#endif
