/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor_links.h: what the links of a run are, and how much they should carry.
 */
#ifndef NOJIT_TRAINER_DOCTOR_LINKS_H
#define NOJIT_TRAINER_DOCTOR_LINKS_H

#include <stdbool.h>
#include <stddef.h>

#include "nojit.h"

enum { SLOW_PERCENT = 70, SLOW_GB = 10 }; /* of what is expected, or where nothing is known */

/* Of a rank, as it travels. */
struct rank_links {
    struct nj_links gpu;
    int adapters; /* of its host's network */
    float network_gb;
};

/* Of a run. */
struct run_links {
    int ranks, on_host; /* on the host that has the most */
    bool several_hosts, peers;
    int sm;
    const struct rank_links *rank;
    size_t stride; /* bytes from one rank's to the next's */
};

/* GB/s in each direction, as `doctor` counts them; 0: not known. */
struct expectation {
    char link[96];
    double exchange_gb, gather_gb;
};

/* The network of this host: its RDMA ports that are up, else its fastest Ethernet. */
void links_network(struct rank_links *out);
void links_expect(const struct run_links *r, struct expectation *out);
/* The first thing that makes links slow, with what to do about it. */
void links_advice(const struct run_links *r, char *out, size_t bytes);

#endif
