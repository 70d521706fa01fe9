/* SPDX-License-Identifier: Apache-2.0
 *
 * test_launchers.c: the rank of a process from the variables of each launcher, and refusals.
 */
#include "io/error.h"
#include "ranks/launchers.h"
#include "unit.h"

/* Find the place of a process whose environment has only these variables. */
static int find(const char *const *variables, struct place *out)
{
    clearenv();
    for (; *variables; variables++)
        assert_int_equal(putenv((char *)(uintptr_t)*variables), 0);
    const int rc = launcher_find(out);
    clearenv();
    return rc;
}

#define OMPI                                                                                       \
    "OMPI_COMM_WORLD_RANK=5", "OMPI_COMM_WORLD_SIZE=8", "OMPI_COMM_WORLD_LOCAL_RANK=1",            \
        "OMPI_COMM_WORLD_LOCAL_SIZE=4"
#define STEP                                                                                       \
    "SLURM_PROCID=5", "SLURM_STEP_NUM_TASKS=8", "SLURM_LOCALID=1", "SLURM_NODEID=1",               \
        "SLURM_STEP_TASKS_PER_NODE=4(x2)", "SLURM_STEP_NODELIST=gpu[07-08]", "SLURM_JOB_ID=5000",  \
        "SLURM_STEP_ID=3"

struct want {
    int rank, size, local_rank, local_size;
    const char *host;
    int port;
    const char *launcher, *job;
};

static const struct {
    const char *what;
    const char *variables[18];
    struct want want;
} found[] = {
    {"nothing", {"PATH=/bin"}, {0, 1, 0, 1, "", 0, NULL, ""}},
    {"torchrun",
     {"RANK=5", "WORLD_SIZE=8", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=4", "MASTER_ADDR=a",
      "MASTER_PORT=29500"},
     {5, 8, 1, 4, "a", 29501, "torchrun", ""}},
    {"torchrun on the last port",
     {"RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=2", "MASTER_PORT=65535"},
     {0, 2, 0, 2, "127.0.0.1", 65534, "torchrun", ""}},
    {"torchrun, as one task of each host",
     {"RANK=5", "WORLD_SIZE=8", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=4", "MASTER_ADDR=a",
      "MASTER_PORT=29500", "SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2", "SLURM_LOCALID=0"},
     {5, 8, 1, 4, "a", 29501, "torchrun", ""}},
    {"torchrun with one process a host, in an order of its own",
     {"RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=1", "MASTER_ADDR=a",
      "MASTER_PORT=29500", "SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2"},
     {0, 2, 0, 1, "a", 29501, "torchrun", ""}},
    {"Open MPI", {OMPI, "MASTER_ADDR=a"}, {5, 8, 1, 4, "a", 61440, "Open MPI", ""}},
    {"Open MPI on one host",
     {"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_RANK=1",
      "OMPI_COMM_WORLD_LOCAL_SIZE=2"},
     {1, 2, 1, 2, "127.0.0.1", 61440, "Open MPI", ""}},
    {"Open MPI by daemons of a step",
     {OMPI, "MASTER_ADDR=a", "MASTER_PORT=7000", "SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=1",
      "SLURM_STEP_NODELIST=gpu08"},
     {5, 8, 1, 4, "a", 7000, "Open MPI", ""}},
    {"MVAPICH",
     {"MV2_COMM_WORLD_RANK=1", "MV2_COMM_WORLD_SIZE=2", "MV2_COMM_WORLD_LOCAL_RANK=0",
      "MV2_COMM_WORLD_LOCAL_SIZE=1", "MASTER_ADDR=a"},
     {1, 2, 0, 1, "a", 61440, "MVAPICH", ""}},
    {"Cray PALS, beside PMI",
     {"PALS_RANKID=3", "PMI_RANK=3", "PMI_SIZE=4", "PALS_LOCAL_RANKID=3", "PALS_LOCAL_SIZE=4"},
     {3, 4, 3, 4, "127.0.0.1", 61440, "Cray PALS", ""}},
    {"MPICH",
     {"PMI_RANK=1", "PMI_SIZE=2", "MPI_LOCALRANKID=0", "MPI_LOCALNRANKS=1", "MASTER_ADDR=a"},
     {1, 2, 0, 1, "a", 61440, "MPICH", ""}},
    {"a step", {STEP}, {5, 8, 1, 4, "gpu07", 61440 + 5000 - 4096, "Slurm", "5000.3"}},
    {"a step whose user gives address and port",
     {STEP, "MASTER_ADDR=b", "MASTER_PORT=7000"},
     {5, 8, 1, 4, "b", 7000, "Slurm", "5000.3"}},
    {"a step with PMI",
     {STEP, "PMI_RANK=5", "PMI_SIZE=8"},
     {5, 8, 1, 4, "gpu07", 61440 + 5000 - 4096, "MPICH", "5000.3"}},
    {"hosts with different numbers of tasks",
     {"SLURM_PROCID=8", "SLURM_STEP_NUM_TASKS=11", "SLURM_LOCALID=0", "SLURM_NODEID=2",
      "SLURM_STEP_TASKS_PER_NODE=4(x2),3", "SLURM_STEP_NODELIST=a,b,c"},
     {8, 11, 0, 3, "a", 61440, "Slurm", ""}},
    {"a step of one task",
     {"SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=1", "SLURM_STEP_NODELIST=a"},
     {0, 1, 0, 1, "a", 61440, "Slurm", ""}},
    {"the shell of sbatch",
     {"SLURM_PROCID=0", "SLURM_NTASKS=8", "SLURM_JOB_ID=5000"},
     {0, 1, 0, 1, "", 0, NULL, ""}},
    {"the shell of srun --pty",
     {"SLURM_PROCID=0", "SLURM_LOCALID=0", "SLURM_NTASKS=8", "SLURM_STEP_NUM_TASKS=1",
      "SLURM_JOB_ID=7", "SLURM_STEP_ID=4294967290"},
     {0, 1, 0, 1, "", 61440 + 7, "Slurm", "7.4294967290"}},
    {"a service called master, as Kubernetes tells all of it",
     {"MASTER_PORT=tcp://10.0.0.1:29500"},
     {0, 1, 0, 1, "", 0, NULL, ""}},
    {"torchrun that names its job",
     {"RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=a",
      "MASTER_PORT=29500", "TORCHELASTIC_RUN_ID=d6b"},
     {1, 2, 1, 2, "127.0.0.1", 29501, "torchrun", "d6b"}},
    {"Open MPI that serves PMIx",
     {OMPI, "MASTER_ADDR=a", "PMIX_NAMESPACE=277", "SLURM_JOB_ID=5"},
     {5, 8, 1, 4, "a", 61440, "Open MPI", "277"}},
    {"PALS that names its job",
     {"PALS_RANKID=0", "PMI_SIZE=4", "PALS_LOCAL_RANKID=0", "PALS_LOCAL_SIZE=2", "PALS_APID=9-a",
      "MASTER_ADDR=a"},
     {0, 4, 0, 2, "a", 61440, "Cray PALS", "9-a"}},
};

static void launchers_are_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
        struct place p;
        const struct want *w = &found[i].want;
        check_ok(find(found[i].variables, &p), found[i].what);
        if (p.rank != w->rank || p.size != w->size || p.local_rank != w->local_rank ||
            p.local_size != w->local_size || p.port != w->port || strcmp(p.host, w->host) != 0 ||
            strcmp(p.job, w->job) != 0)
            fail_msg("%s: rank %d of %d, %d of %d, %s:%d, job '%s'", found[i].what, p.rank, p.size,
                     p.local_rank, p.local_size, p.host, p.port, p.job);
        assert_true((p.launcher == NULL) == (w->launcher == NULL));
        if (p.launcher)
            assert_string_equal(p.launcher, w->launcher);
    }
}

static const struct {
    const char *variables[16], *part;
} refused[] = {
    {{OMPI, "MASTER_ADDR=a", "RANK=0", "WORLD_SIZE=1"},
     "WORLD_SIZE is 1 but OMPI_COMM_WORLD_SIZE is 8; unset"},
    {{OMPI, "PMI_RANK=4", "PMI_SIZE=8"}, "OMPI_COMM_WORLD_RANK is 5 but PMI_RANK is 4; unset"},
    {{STEP, "RANK=0", "WORLD_SIZE=1", "LOCAL_RANK=0"},
     "WORLD_SIZE is 1 but SLURM_STEP_NUM_TASKS is 8; unset"},
    {{OMPI}, "give its address: mpirun -x MASTER_ADDR=HOST"},
    {{"PMI_RANK=1", "PMI_SIZE=2", "MPI_LOCALRANKID=0"}, "mpiexec -genv MASTER_ADDR HOST"},
    {{"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=a"}, "LOCAL_RANK is not set; start"},
    {{"RANK=2", "WORLD_SIZE=2"}, "RANK is '2'; a number from 0 to 1"},
    {{"RANK=-1", "WORLD_SIZE=2"}, "RANK is '-1'"},
    {{"RANK= 1", "WORLD_SIZE=2"}, "RANK is ' 1'"},
    {{"RANK=1x", "WORLD_SIZE=2"}, "RANK is '1x'"},
    {{"RANK=0", "WORLD_SIZE=0"}, "WORLD_SIZE is '0'; a number from 1 to 4096"},
    {{"RANK=0", "WORLD_SIZE=4097"}, "WORLD_SIZE is '4097'"},
    {{"RANK=0", "WORLD_SIZE=4294967298"}, "WORLD_SIZE is '4294967298'"},
    {{"RANK=0", "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=3"}, "LOCAL_WORLD_SIZE is '3'"},
    {{"RANK=0", "WORLD_SIZE=4", "LOCAL_WORLD_SIZE=2", "LOCAL_RANK=2"}, "LOCAL_RANK is '2'"},
    {{OMPI, "MASTER_ADDR=a", "MASTER_PORT=65536"}, "MASTER_PORT is '65536'"},
    {{OMPI, "MASTER_ADDR=a", "MASTER_PORT=80x"}, "MASTER_PORT is '80x'"},
    {{OMPI, "MASTER_ADDR=a", "MASTER_PORT=tcp://10.0.0.1:29500"}, "MASTER_PORT is 'tcp://10.0"},
    {{OMPI, "MASTER_ADDR=a", "NOJIT_SECRET=0123456789abcde"},
     "NOJIT_SECRET has 15 characters; give all ranks the same 16 or more"},
    {{"SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=2", "SLURM_LOCALID=1", "SLURM_NODEID=0",
      "SLURM_STEP_TASKS_PER_NODE=1(x2)", "SLURM_STEP_NODELIST=a,b"},
     "SLURM_LOCALID is 1, but this host has 1"},
    {{"SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=2", "SLURM_STEP_NODELIST=a[x"},
     "SLURM_STEP_NODELIST: 'a[x' is not a list"},
};

static void contradictions_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct place p;
        check_refused(find(refused[i].variables, &p), NJ_E_ARG, refused[i].part, refused[i].part);
    }
}

static void long_addresses_are_refused(void **state)
{
    char address[HOST_BYTES + 32] = "MASTER_ADDR=";
    struct place p;
    (void)state;
    memset(address + strlen(address), 'a', HOST_BYTES);
    check_refused(find((const char *const[]){OMPI, address, NULL}, &p), NJ_E_ARG,
                  "MASTER_ADDR has 256 bytes", "address");
}

static void secrets_of_a_run_are_read(void **state)
{
    static const unsigned char none[SECRET_BYTES];
    struct place p, q, other;
    (void)state;
    check_ok(find((const char *const[]){OMPI, "MASTER_ADDR=a", NULL}, &p), "none");
    assert_memory_equal(p.secret, none, SECRET_BYTES);
    check_ok(
        find((const char *const[]){OMPI, "MASTER_ADDR=a", "NOJIT_SECRET=0123456789abcdef0", NULL},
             &p),
        "one");
    check_ok(
        find((const char *const[]){OMPI, "MASTER_ADDR=a", "NOJIT_SECRET=0123456789abcdef0", NULL},
             &q),
        "the same");
    check_ok(
        find((const char *const[]){OMPI, "MASTER_ADDR=a", "NOJIT_SECRET=0123456789abcdef1", NULL},
             &other),
        "another");
    assert_memory_not_equal(p.secret, none, SECRET_BYTES);
    assert_memory_equal(p.secret, q.secret, SECRET_BYTES);
    assert_memory_not_equal(p.secret, other.secret, SECRET_BYTES);
}

/* Print the rank as a process of mpiexec. */
static int print_job(void)
{
    struct place p;
    const int rc = launcher_find(&p);
    printf("%s\n", rc ? fail_text() : p.job);
    return rc != 0;
}

/* One of two processes is started by a script. */
static void mpiexec_is_known_by_its_process(void **state)
{
    char exe[512], command[2048], line[256], want[256] = "";
    const ssize_t length = readlink("/proc/self/exe", exe, sizeof exe - 1);
    (void)state;
    assert_true(length > 0);
    exe[length] = 0;
    snprintf(command, sizeof command,
             "echo of process $$ of user $(id -u); export PMI_SIZE=2 MPI_LOCALNRANKS=2;"
             "PMI_RANK=0 MPI_LOCALRANKID=0 '%s' --job; "
             "PMI_RANK=1 MPI_LOCALRANKID=1 sh -c '\"$0\" --job; true' '%s'; true",
             exe, exe);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    assert_non_null(fgets(want, sizeof want, f));
    for (int i = 0; i < 2; i++) {
        assert_non_null(fgets(line, sizeof line, f));
        assert_string_equal(line, want);
    }
    assert_int_equal(pclose(f), 0);
}

static void times_that_ranks_may_take_are_read(void **state)
{
    int connect = 0, silence = 0;
    (void)state;
    check_ok(launcher_seconds(&connect, &silence), "not set");
    assert_int_equal(connect, 600);
    assert_int_equal(silence, 60);
    setenv("NOJIT_CONNECT_TIMEOUT", "3600", 1);
    setenv("NOJIT_SILENCE_TIMEOUT", "5", 1);
    check_ok(launcher_seconds(&connect, &silence), "an hour");
    assert_int_equal(connect, 3600);
    assert_int_equal(silence, 5);
    setenv("NOJIT_CONNECT_TIMEOUT", "0", 1);
    check_refused(launcher_seconds(&connect, &silence), NJ_E_ARG, "NOJIT_CONNECT_TIMEOUT is '0'",
                  "none");
    unsetenv("NOJIT_CONNECT_TIMEOUT");
    unsetenv("NOJIT_SILENCE_TIMEOUT");
}

static const struct {
    const char *list, *first;
} lists[] = {
    {"a", "a"},
    {"a,b", "a"},
    {"a[01-03,7],b", "a01"},
    {"a[7,9]", "a7"},
    {"a[5]", "a5"},
    {"r[1-2]n[03-04].x", "r1n03.x"},
    {"gpu-1.example,b", "gpu-1.example"},
    {"", NULL},
    {",a", NULL},
    {"a[", NULL},
    {"a[]", NULL},
    {"a[1", NULL},
    {"a[-1]", NULL},
    {"a[1;2]", NULL},
    {"a]", NULL},
    {"a b", NULL},
};

static void the_first_host_of_a_list_is_found(void **state)
{
    char out[HOST_BYTES], many[3 * HOST_BYTES] = "";
    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (lists[i].first) {
            check_ok(node_list_first(lists[i].list, out), lists[i].list);
            assert_string_equal(out, lists[i].first);
        } else {
            check_refused(node_list_first(lists[i].list, out), NJ_E_FORMAT,
                          "is not a list of hosts", lists[i].list);
        }
    memset(many, '1', HOST_BYTES);
    check_refused(node_list_first(many, out), NJ_E_FORMAT, "is not a list", "a long name");
    memset(many, '1', sizeof many - 1);
    many[0] = '[';
    many[sizeof many - 2] = ']';
    check_refused(node_list_first(many, out), NJ_E_FORMAT, "is not a list", "a long number");
    memcpy(many + HOST_BYTES - 1, "]", 2);
    check_ok(node_list_first(many, out), "254 digits");
    assert_int_equal(strlen(out), HOST_BYTES - 2);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--job") == 0)
        return print_job();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launchers_are_found),
        cmocka_unit_test(contradictions_are_refused),
        cmocka_unit_test(long_addresses_are_refused),
        cmocka_unit_test(times_that_ranks_may_take_are_read),
        cmocka_unit_test(the_first_host_of_a_list_is_found),
        cmocka_unit_test(secrets_of_a_run_are_read),
        cmocka_unit_test(mpiexec_is_known_by_its_process),
    };
    return cmocka_run_group_tests_name("launchers", tests, NULL, NULL);
}
