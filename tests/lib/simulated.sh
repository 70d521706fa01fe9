# SPDX-License-Identifier: Apache-2.0
#
# simulated.sh: sourced by the scripts of tests/device and by faults.sh: settings of runs on simulated GPUs, those GPUs by name and
# arch, and what the run just made counted.
nojit=$BUILD/nojit
export LD_LIBRARY_PATH=$BUILD/sim NOJIT_CUBLASLT=$BUILD/sim NOJIT_NCCL=$BUILD/sim XDG_CACHE_HOME=$scratch/cache OMP_WAIT_POLICY=passive
export NOJIT_SIM_LOG=$scratch/sim.log
d=$scratch/work
mkdir "$d"
profiles="t4:75 rtx4090:89 h100:90 rtx5090:120 gb10:121"
held=" $("$nojit" version | grep -oE 'sm_[0-9]+[af]?' | sort -u | tr '\n' ' ')"

# Print the counts of the simulated GPU for the last run.
counted() { tail -n 1 "$NOJIT_SIM_LOG" | sed -E 's/^sim: end: //'; }
clean() { [[ $(counted) == *"0 after the first launch, 0 of PTX refused, 0 exempt;"*"; 0 objects left" ]]; }
