/* SPDX-License-Identifier: Apache-2.0
 *
 * launchers.c: the supported launchers, and the variables with which each numbers its processes.
 */
#include "ranks/launchers.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "io/error.h"
#include "ranks/ancestor.h"
#include "ranks/pmix.h"

/* Ports above those that Linux gives to connections (32768 to 60999). */
enum { PORT_FIRST = 61440, PORT_COUNT = 4096, PORT_MAX = 65535 };
enum { CONNECT_SECONDS = 600, SILENCE_SECONDS = 60, SECONDS_MAX = 7 * 24 * 3600 };
enum { SECRET_LEAST = 16 }; /* minimum number of characters of NOJIT_SECRET */

struct launcher {
    const char *name, *rank, *size, *local_rank, *local_size;
    const char *address; /* how a user gives every process the address of rank 0 */
    /* Variables that name the job, alike on all ranks; NULL: it is identified by the process
     * that starts all those of a host. */
    const char *job, *step;
};

/* Launchers; those started by others come first: mpirun reaches the hosts of a Slurm allocation
 * by srun. */
static const struct launcher launchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
     "torchrun --master-addr HOST", "TORCHELASTIC_RUN_ID", NULL},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", "mpirun -x MASTER_ADDR=HOST", "PMIX_NAMESPACE",
     "OMPI_MCA_ess_base_jobid"},
    {"MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
     "MV2_COMM_WORLD_LOCAL_SIZE", "mpiexec -genv MASTER_ADDR HOST", NULL, NULL},
    /* PALS has no variable of its own for the size; it sets that of PMI. */
    {"Cray PALS", "PALS_RANKID", "PMI_SIZE", "PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE",
     "mpiexec --env MASTER_ADDR=HOST", "PALS_APID", NULL},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS",
     "mpiexec -genv MASTER_ADDR HOST", NULL, NULL},
    /* The shells of sbatch and salloc have SLURM_NTASKS, but no task count of a step. */
    {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", NULL,
     "MASTER_ADDR=HOST srun", "SLURM_JOB_ID", "SLURM_STEP_ID"},
};
enum { LAUNCHERS = sizeof launchers / sizeof *launchers };
static const struct launcher *const slurm = &launchers[LAUNCHERS - 1];

/* ---- variables ---- */

static const char *variable(const char *name)
{
    const char *text = name ? getenv(name) : NULL;
    return text && *text ? text : NULL;
}

/* Parse a number of digits alone, at most nine, so that none is too large for an int. */
static int digits(const char *text, size_t length)
{
    int number = 0;
    if (length == 0 || length > 9)
        return -1;
    for (size_t i = 0; i < length; i++) {
        if (!isdigit((unsigned char)text[i]))
            return -1;
        number = number * 10 + (text[i] - '0');
    }
    return number;
}

/* Read a variable's number; out is unchanged if it is not set. */
static int number(const char *name, int least, int most, int *out)
{
    const char *text = variable(name);
    if (!text)
        return 0;
    const int found = digits(text, strlen(text));
    if (found < least || found > most)
        return fail(NJ_E_ARG,
                    "%s is '%s'; a number from %d to %d is needed: start by a launcher, "
                    "or unset it",
                    name, text, least, most);
    *out = found;
    return 0;
}

/* ---- Slurm ---- */

int node_list_first(const char *list, char out[HOST_BYTES])
{
    size_t n = 0;
    const char *at = list;
    while (*at && *at != ',' && n + 1 < HOST_BYTES) {
        if (*at == '[') {
            const char *end = strchr(at, ']');
            const size_t length = strspn(at + 1, "0123456789");
            if (!end || length == 0 || !strchr("-,]", at[1 + length]) || length >= HOST_BYTES - n)
                break;
            memcpy(out + n, at + 1, length);
            n += length;
            at = end + 1;
        } else if (isalnum((unsigned char)*at) || strchr("-._", *at)) {
            out[n++] = *at++;
        } else {
            break;
        }
    }
    out[n] = 0;
    if (n == 0 || (*at && *at != ','))
        return fail(NJ_E_FORMAT, "'%.300s' is not a list of hosts such as a[01-03,7],b", list);
    return 0;
}

/* Return how many tasks host `node` has, from a list such as "4(x2),3"; 0: it does not say. */
static int tasks_of_node(const char *list, int node)
{
    while (list && *list) {
        size_t length = strspn(list, "0123456789");
        const int tasks = digits(list, length);
        int hosts = 1;
        list += length;
        if (strncmp(list, "(x", 2) == 0) {
            length = strspn(list + 2, "0123456789");
            hosts = digits(list + 2, length);
            list += 2 + length;
            if (*list++ != ')')
                return 0;
        }
        if (tasks < 1 || hosts < 1 || (*list && *list++ != ','))
            return 0;
        if (node < hosts)
            return tasks;
        node -= hosts;
    }
    return 0;
}

/* Read the other variables that Slurm sets for a step. */
static int slurm_rest(struct place *p)
{
    const char *nodes = variable("SLURM_STEP_NODELIST");
    int node = -1, job = -1;
    TRY(number("SLURM_NODEID", 0, RANKS_MAX - 1, &node));
    TRY(number("SLURM_JOB_ID", 0, 999999999, &job));
    if (p->local_size == 0 && node >= 0)
        p->local_size = tasks_of_node(variable("SLURM_STEP_TASKS_PER_NODE"), node);
    if (p->port == 0 && job >= 0)
        p->port = PORT_FIRST + job % PORT_COUNT;
    if (!p->host[0] && nodes && node_list_first(nodes, p->host) != 0)
        return fail(NJ_E_ARG, "SLURM_STEP_NODELIST: %s; set MASTER_ADDR", fail_text());
    return 0;
}

/* ---- jobs ---- */

/* Make the name of the job, such as "12.0", from the variables that are set. */
static void read_job(const struct launcher *l, struct place *p)
{
    const char *job = variable(l->job), *step = variable(l->step);
    snprintf(p->job, JOB_BYTES, "%s%s%s", job ? job : "", job && step ? "." : "", step ? step : "");
}

static int read_secret(struct place *p)
{
    const char *text = variable("NOJIT_SECRET");
    if (!text)
        return 0;
    if (strlen(text) < SECRET_LEAST)
        return fail(NJ_E_ARG,
                    "NOJIT_SECRET has %zu characters; give all ranks the same %d or more, as from "
                    "`openssl rand -hex 16`",
                    strlen(text), SECRET_LEAST);
    const XXH128_hash_t hash = XXH3_128bits(text, strlen(text));
    _Static_assert(sizeof hash == SECRET_BYTES, "all of it is kept");
    memcpy(p->secret, &hash, sizeof hash);
    return 0;
}

/* ---- variables of a launcher ---- */

static int read_row(const struct launcher *l, struct place *p)
{
    TRY(number(l->size, 1, RANKS_MAX, &p->size));
    TRY(number(l->rank, 0, p->size - 1, &p->rank));
    TRY(number(l->local_size, 1, p->size, &p->local_size));
    return number(l->local_rank, 0, (p->local_size ? p->local_size : p->size) - 1, &p->local_rank);
}

static int disagree(const char *a, int x, const char *b, int y)
{
    return fail(NJ_E_ARG,
                "%s is %d but %s is %d; unset those of the launcher that did not start "
                "this process",
                a, x, b, y);
}

/* Compare another set of variables: it has the same numbers and may complete p, or it
 * contradicts it. */
static int compare_row(const struct launcher *l, const struct launcher *other, struct place *p)
{
    struct place q = {.local_rank = -1};
    TRY(read_row(other, &q));
    /* A step with as many tasks or fewer may be that of the agents that started this process. */
    if (p->size != q.size && (other != slurm || q.size > p->size))
        return disagree(l->size, p->size, other->size, q.size);
    if (p->rank != q.rank && other != slurm)
        return disagree(l->rank, p->rank, other->rank, q.rank);
    if (p->size != q.size || p->rank != q.rank)
        return 0;
    if (p->local_rank < 0)
        p->local_rank = q.local_rank;
    if (p->local_size == 0)
        p->local_size = q.local_size;
    if (!p->job[0])
        read_job(other, p);
    return other == slurm ? slurm_rest(p) : 0;
}

/* Read MASTER_ADDR and MASTER_PORT, which take precedence over the launcher's values. */
static int read_address(const struct launcher *l, struct place *p)
{
    const char *host = variable("MASTER_ADDR");
    if (host && (size_t)snprintf(p->host, HOST_BYTES, "%s", host) >= HOST_BYTES)
        return fail(NJ_E_ARG, "MASTER_ADDR has %zu bytes; a host's name has fewer than %d",
                    strlen(host), HOST_BYTES);
    TRY(number("MASTER_PORT", 1, PORT_MAX, &p->port));
    /* The store of torchrun listens on the port itself. */
    if (l == launchers && p->port > 0)
        p->port = p->port < PORT_MAX ? p->port + 1 : p->port - 1;
    return 0;
}

/* Check that the values found suffice for a run of this size. */
static int complete(const struct launcher *l, struct place *p)
{
    if (p->size == 1)
        p->local_rank = 0, p->local_size = 1;
    if (p->local_rank < 0)
        return fail(NJ_E_ARG,
                    "%s is %d, but %s is not set; start the processes of each host by "
                    "torchrun or mpirun",
                    l->size, p->size, l->local_rank);
    if (p->local_size > 0 && p->local_rank >= p->local_size)
        return fail(NJ_E_ARG, "%s is %d, but this host has %d processes; start by one launcher",
                    l->local_rank, p->local_rank, p->local_size);
    if (!p->host[0] && p->local_size != p->size && pmix_host(p->host, HOST_BYTES) != 0)
        return fail(NJ_E_ARG,
                    "%s does not say on which host rank 0 is, nor does PMIx (%s); give its "
                    "address: %s ...",
                    l->name, fail_text(), l->address);
    /* Ranks on the same host do not need the host's name. */
    if (p->size > 1 && p->local_size == p->size)
        snprintf(p->host, HOST_BYTES, "127.0.0.1");
    if (!p->job[0] && p->local_size == p->size && !l->job)
        snprintf(p->job, JOB_BYTES, "of process %ld of user %ld", ancestor_without(l->rank),
                 (long)getuid());
    if (p->port == 0)
        p->port = PORT_FIRST;
    return read_secret(p);
}

int launcher_find(struct place *out)
{
    const struct launcher *taken = NULL;
    int rc = 0;
    *out = (struct place){.size = 1, .local_rank = -1};
    for (const struct launcher *l = launchers; rc == 0 && l < launchers + LAUNCHERS; l++) {
        if (!variable(l->rank) || !variable(l->size))
            continue;
        if (taken) {
            rc = compare_row(taken, l, out);
            continue;
        }
        taken = l;
        out->launcher = l->name;
        rc = read_row(l, out);
        read_job(l, out);
        if (rc == 0)
            rc = read_address(l, out);
        if (rc == 0 && l == slurm)
            rc = slurm_rest(out);
    }
    if (!taken) {
        *out = (struct place){.size = 1, .local_size = 1};
        return 0;
    }
    return rc != 0 ? rc : complete(taken, out);
}

int launcher_seconds(int *connect, int *silence)
{
    *connect = CONNECT_SECONDS;
    *silence = SILENCE_SECONDS;
    TRY(number("NOJIT_CONNECT_TIMEOUT", 1, SECONDS_MAX, connect));
    return number("NOJIT_SILENCE_TIMEOUT", 1, SECONDS_MAX, silence);
}
