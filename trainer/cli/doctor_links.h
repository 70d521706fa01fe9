/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor_links.h: what the links of a run are, and how much they should carry.
 */
#ifndef NOJIT_TRAINER_DOCTOR_LINKS_H
#define NOJIT_TRAINER_DOCTOR_LINKS_H

#include <stdbool.h>
#include <stddef.h>

#include "nojit.h"

/* Limits for a slow link: percent of the expected speed, or GB/s where nothing is expected. */
enum { SLOW_PERCENT = 70, SLOW_GB = 10 };

/* Links of a rank, in the form that ranks exchange. */
struct rank_links {
    struct nj_links gpu;
    int adapters; /* number of network adapters of its host */
    float network_gb;
};

/* Links of a run. */
struct run_links {
    int ranks, on_host; /* number of ranks, and of those on the host that has most */
    bool several_hosts, peers;
    int sm;
    const struct rank_links *rank;
    size_t stride; /* bytes from one rank's links to the next's */
};

/* Expected GB/s in each direction, as `doctor` counts them; 0: not known. */
struct expectation {
    char link[96];
    double exchange_gb, gather_gb;
};

/* Describe the network of this host: its RDMA ports that are up, else its fastest Ethernet. */
void links_network(struct rank_links *out);
void links_expect(const struct run_links *r, struct expectation *out);
/* Write the first reason why links are slow, with what to do about it. */
void links_advice(const struct run_links *r, char *out, size_t bytes);

#endif
