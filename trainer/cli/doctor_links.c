/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor_links.c: see doctor_links.h. A link carries what its lanes do, less a share for packets and for the way that
 * NCCL takes: of 2 x H200 270 of 450 GB/s were measured over NVLink; others report 54 of 63 over PCIe 5.0 with peer
 * access, about 15 of 31.5 through the host's memory, and 22 to 25 of 31.5 over both halves of a Spark's cable.
 */
#include "cli/doctor_links.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double nvlink_share = 0.6, peer_share = 0.8, host_share = 0.45, network_share = 0.8;
/* Limits. A GPU with fewer NVLinks is bridged to some of the others rather than connected to all by a switch. */
enum { SWITCHED_NVLINKS = 12, WORD_BYTES = 64, PATH_MOST = 512 };

/* ---- rates ---- */

static double nvlink_gb(int sm)
{
    return sm >= 100 ? 50 : 25;
}

/* Return the GB/s of a PCIe link in each direction, net of the encoding. */
static double pcie_gb(int generation, int lanes)
{
    static const double lane[] = {0, 0.25, 0.5, 0.985, 1.969, 3.938, 7.563};
    const int known = (int)(sizeof lane / sizeof *lane);
    return generation > 0 && generation < known ? lane[generation] * lanes : 0;
}

/* ---- the network ---- */

static void read_word(const char *path, char out[WORD_BYTES])
{
    FILE *f = fopen(path, "re");
    out[0] = '\0';
    if (f == NULL)
        return;
    if (fgets(out, WORD_BYTES, f) == NULL)
        out[0] = '\0';
    fclose(f);
}

static double read_number(const char *folder, const char *name)
{
    char path[PATH_MOST + 2 * WORD_BYTES], word[WORD_BYTES];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    read_word(path, word);
    return strtod(word, NULL);
}

/* Return the rate of a device, from "32.0 GT/s PCIe" and "4". */
static double pcie_of(const char *device)
{
    const double speed = read_number(device, "current_link_speed");
    const double lanes = read_number(device, "current_link_width");
    return speed * lanes / 8 * (speed < 8 ? 0.8 : 128.0 / 130);
}

static double port_gb(const char *port)
{
    char path[PATH_MOST + WORD_BYTES], state[WORD_BYTES];
    snprintf(path, sizeof path, "%s/state", port);
    read_word(path, state);
    return strstr(state, "ACTIVE") != NULL ? read_number(port, "rate") / 8 : 0;
}

/* Call `of` with each entry of a folder. */
static void each_entry(const char *folder, void (*of)(const char *path, struct rank_links *out),
                       struct rank_links *out)
{
    char path[PATH_MOST];
    DIR *d = opendir(folder);
    if (d == NULL)
        return;
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.' &&
            (size_t)snprintf(path, sizeof path, "%s/%s", folder, e->d_name) < sizeof path)
            of(path, out);
    closedir(d);
}

static void add_port(const char *path, struct rank_links *out)
{
    out->network_gb += (float)port_gb(path);
}

/* Add an adapter: the rate of its ports, or of its slot if that is less. */
static void add_adapter(const char *path, struct rank_links *out)
{
    char more[PATH_MOST + 8];
    struct rank_links of = {0};
    snprintf(more, sizeof more, "%s/ports", path);
    each_entry(more, add_port, &of);
    snprintf(more, sizeof more, "%s/device", path);
    const float slot = (float)pcie_of(more);
    if (slot > 0 && slot < of.network_gb)
        of.network_gb = slot;
    out->adapters += of.network_gb > 0;
    out->network_gb += of.network_gb;
}

static void take_ethernet(const char *path, struct rank_links *out)
{
    char device[PATH_MOST + 8];
    const float gb = (float)(read_number(path, "speed") / 8000);
    snprintf(device, sizeof device, "%s/device", path);
    if (access(device, F_OK) != 0 || gb <= out->network_gb)
        return;
    out->network_gb = gb;
    out->adapters = 1;
}

void links_network(struct rank_links *out)
{
    out->adapters = 0;
    out->network_gb = 0;
    each_entry("/sys/class/infiniband", add_adapter, out);
    if (out->adapters == 0)
        each_entry("/sys/class/net", take_ethernet, out);
}

/* ---- expected rates ---- */

static const struct rank_links *rank_of(const struct run_links *r, int rank)
{
    return (const void *)((const char *)r->rank + (size_t)rank * r->stride);
}

/* Minimum of all ranks. */
struct least {
    int nvlinks, adapters;
    double pcie, network;
    const struct nj_links *slowest; /* links of the rank with the slowest PCIe */
};

static struct least least_of(const struct run_links *r)
{
    const struct rank_links *first = rank_of(r, 0);
    struct least l = {.nvlinks = first->gpu.nvlinks,
                      .adapters = first->adapters,
                      .network = (double)first->network_gb,
                      .slowest = &first->gpu};
    l.pcie = pcie_gb(first->gpu.pcie_most, first->gpu.pcie_lanes_most);
    for (int i = 1; i < r->ranks; i++) {
        const struct rank_links *of = rank_of(r, i);
        const double pcie = pcie_gb(of->gpu.pcie_most, of->gpu.pcie_lanes_most);
        if (pcie < l.pcie) {
            l.pcie = pcie;
            l.slowest = &of->gpu;
        }
        l.nvlinks = of->gpu.nvlinks < l.nvlinks ? of->gpu.nvlinks : l.nvlinks;
        l.adapters = of->adapters < l.adapters ? of->adapters : l.adapters;
        l.network = (double)of->network_gb < l.network ? (double)of->network_gb : l.network;
    }
    return l;
}

/* Compute the rates to expect between hosts. The ranks of a host share its network: in an exchange each of them sends
 * to all ranks of other hosts, in a ring one of them sends for all. */
static void expect_network(const struct run_links *r, const struct least *l,
                           struct expectation *out)
{
    const double gb = l->network * network_share;
    if (gb <= 0)
        return;
    snprintf(out->link, sizeof out->link, "network, %d adapter%s of a host, %.1f GB/s", l->adapters,
             l->adapters == 1 ? "" : "s", l->network);
    out->exchange_gb = gb * (r->ranks - 1) / (double)(r->on_host * (r->ranks - r->on_host));
    out->gather_gb = gb;
}

static void expect_host(const struct run_links *r, const struct least *l, struct expectation *out)
{
    if (l->nvlinks >= SWITCHED_NVLINKS || (l->nvlinks > 0 && r->ranks == 2)) {
        snprintf(out->link, sizeof out->link, "NVLink, %d of %.0f GB/s", l->nvlinks,
                 nvlink_gb(r->sm));
        out->exchange_gb = nvlink_share * l->nvlinks * nvlink_gb(r->sm);
    } else if (l->pcie > 0) {
        snprintf(out->link, sizeof out->link, "PCIe %d.0 x%d %s", l->slowest->pcie_most,
                 l->slowest->pcie_lanes_most,
                 r->peers ? "with peer access" : "through the host's memory");
        out->exchange_gb = l->pcie * (r->peers ? peer_share : host_share);
    }
    out->gather_gb = out->exchange_gb;
}

void links_expect(const struct run_links *r, struct expectation *out)
{
    const struct least l = least_of(r);
    *out = (struct expectation){.link = "unknown"};
    if (r->several_hosts)
        expect_network(r, &l, out);
    else
        expect_host(r, &l, out);
}

/* ---- advice ---- */

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && *value != '\0' && strcmp(value, "0") != 0;
}

static const char *setting_in_the_way(const struct run_links *r)
{
    static const struct {
        const char *name;
        bool between_hosts;
    } settings[] = {{"NCCL_P2P_DISABLE", false}, {"NCCL_SHM_DISABLE", false},
                    {"NCCL_P2P_LEVEL", false},   {"NCCL_IB_DISABLE", true},
                    {"NCCL_NET", true},          {"NCCL_PROTO", false},
                    {"NCCL_ALGO", false},        {"NCCL_MAX_NCHANNELS", false}};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (is_set(settings[i].name) && (r->several_hosts || !settings[i].between_hosts))
            return settings[i].name;
    return NULL;
}

/* Return a rank whose GPU's slot is slower than it could be. */
static int narrow_rank(const struct run_links *r)
{
    for (int i = 0; i < r->ranks; i++) {
        const struct nj_links *l = &rank_of(r, i)->gpu;
        if (l->pcie < l->pcie_most || l->pcie_lanes < l->pcie_lanes_most)
            return i;
    }
    return -1;
}

static int rank_with_fewer_nvlinks(const struct run_links *r)
{
    int most = 0;
    for (int i = 0; i < r->ranks; i++)
        most = rank_of(r, i)->gpu.nvlinks > most ? rank_of(r, i)->gpu.nvlinks : most;
    for (int i = 0; i < r->ranks; i++)
        if (rank_of(r, i)->gpu.nvlinks < most)
            return i;
    return -1;
}

static int adapters_named(void)
{
    const char *at = getenv("NCCL_IB_HCA");
    int count = at != NULL && *at != '\0' && !strchr("^=", *at);
    while (count > 0 && (at = strchr(at, ',')) != NULL) {
        at++;
        count++;
    }
    return count;
}

static void advise_network(const struct run_links *r, char *out, size_t bytes)
{
    const int named = adapters_named(), there = rank_of(r, 0)->adapters;
    if (named > 0 && named < there)
        snprintf(out, bytes, "NCCL_IB_HCA names %d of the %d adapters that are up; name all", named,
                 there);
    else
        snprintf(out, bytes,
                 "NCCL_DEBUG=INFO says which network is taken (NET/IB, NET/Socket); "
                 "NCCL_SOCKET_IFNAME and NCCL_IB_HCA choose another");
}

static void advise_host(const struct run_links *r, char *out, size_t bytes)
{
    const int narrow = narrow_rank(r), fewer = rank_with_fewer_nvlinks(r);
    if (fewer >= 0)
        snprintf(out, bytes,
                 "the GPU of rank %d has %d NVLinks up, others have more; see `nvidia-smi nvlink "
                 "-s`",
                 fewer, rank_of(r, fewer)->gpu.nvlinks);
    else if (narrow >= 0)
        snprintf(out, bytes,
                 "the GPU of rank %d runs at PCIe %d.0 x%d, %d.0 x%d is possible; see its slot, "
                 "riser and the BIOS",
                 narrow, rank_of(r, narrow)->gpu.pcie, rank_of(r, narrow)->gpu.pcie_lanes,
                 rank_of(r, narrow)->gpu.pcie_most, rank_of(r, narrow)->gpu.pcie_lanes_most);
    else if (!r->peers)
        snprintf(out, bytes,
                 "the driver gives no peer access (GeForce, or an IOMMU that is on), so transfers "
                 "go through the host's memory: --reduce-dtype bf16 and a larger --grad-accum "
                 "help; in a container /dev/shm must be large (--shm-size)");
    else
        snprintf(out, bytes,
                 "NCCL_DEBUG=INFO says which way transfers take; PCIe ACS can keep GPUs from each "
                 "other");
}

void links_advice(const struct run_links *r, char *out, size_t bytes)
{
    const char *setting = setting_in_the_way(r);
    if (setting != NULL)
        snprintf(out, bytes, "%s is set; unset it", setting);
    else if (r->several_hosts)
        advise_network(r, out, bytes);
    else
        advise_host(r, out, bytes);
}
