# SPDX-License-Identifier: Apache-2.0
#
# slurm.sh: sourced by launchers.sh: a Slurm of one node on loopback, as the user who calls, with all its files in a folder of $scratch.
slurm=$scratch/slurm
slurm_pids=()
PATH=$PATH:/usr/sbin # slurmctld and slurmd are there

slurm_here() { command -v srun && command -v slurmctld && command -v slurmd; } >/dev/null

slurm_idle() {
    local i
    for ((i = 0; i < 300; i++)); do
        [ "$(sinfo -h -o %T 2>"$slurm/sinfo.log")" != idle ] || return 0
        kill -0 "${slurm_pids[1]}" 2>"$slurm/kill.log" || return 1
        sleep 0.1
    done
    return 1
}

# Ports are chosen by the kernel.
slurm_ports() {
    python3 -c 'import socket
s = [socket.create_server(("127.0.0.1", 0)) for i in range(2)]
print(*[i.getsockname()[1] for i in s])'
}

# Fails where it does not come up; $slurm/*.log say why.
slurm_begin() {
    local ports host user daemon
    host=$(hostname -s)
    user=$(id -un)
    mkdir -p "$slurm/state" "$slurm/spool"
    read -ra ports < <(slurm_ports)
    cat >"$slurm/slurm.conf" <<CONF
ClusterName=nojit
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=${ports[0]}
SlurmdPort=${ports[1]}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/none
CredType=cred/none
StateSaveLocation=$slurm/state
SlurmdSpoolDir=$slurm/spool
SlurmctldPidFile=$slurm/slurmctld.pid
SlurmdPidFile=$slurm/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
MailProg=/bin/true
SlurmdParameters=config_overrides
NodeName=localhost NodeHostname=$host NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=localhost Default=YES MaxTime=INFINITE State=UP
CONF
    export SLURM_CONF=$slurm/slurm.conf
    for daemon in slurmctld slurmd; do
        $daemon -D >"$slurm/$daemon.log" 2>&1 &
        slurm_pids+=($!)
    done
    slurm_idle
}

# Jobs first, since those of a slurmd that is gone go on.
slurm_end() {
    [ ${#slurm_pids[@]} != 0 ] || return 0
    scancel --signal=KILL --full $(squeue -h -o %A) >>"$slurm/end.log" 2>&1 || true
    kill "${slurm_pids[@]}" 2>>"$slurm/end.log" || true
    wait "${slurm_pids[@]}" 2>>"$slurm/end.log" || true
    slurm_pids=()
}
