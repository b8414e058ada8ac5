#!/bin/bash
# scripts/grade_bridges.sbatch on a real Slurm: a controller and a node with two declared GPUs, in
# network, mount and process namespaces of their own, which end with everything in them.
# Skipped (exit 77) without root, Slurm or namespaces.
set -euo pipefail
cd "$(dirname "$0")/.."

skip() { echo "skipped: $1"; exit 77; }

if [[ ${1-} != inside ]]; then
    [[ $(id -u) == 0 ]] || skip "needs root"
    for tool in slurmctld slurmd munged ip; do
        [[ -x $(PATH=$PATH:/usr/sbin command -v $tool) ]] || skip "no $tool"
    done
    unshare --net --mount --pid --fork true 2>/dev/null || skip "no namespaces"
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    unshare --net --mount --pid --fork --kill-child --mount-proc "$0" inside "$folder"
    exit
fi

folder=$2
PATH=$PATH:/usr/sbin
host=$(hostname -s)
address=10.213.0.1

# Slurm resolves addresses only where an interface other than loopback is up.
ip link set lo up
ip link add slurm0 type veth peer name slurm1
ip address add $address/24 dev slurm0
ip link set slurm0 up
ip link set slurm1 up

mkdir "$folder"/{spool,state}
mknod "$folder/gpu0" c 1 3
mknod "$folder/gpu1" c 1 3
head -c 1024 /dev/urandom >"$folder/munge.key"
chmod 400 "$folder/munge.key"
cat >"$folder/gres.conf" <<CONF
Name=gpu Type=v100-16 File=$folder/gpu[0-1]
CONF
cat >"$folder/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=$host($address)
SlurmUser=root
SlurmdUser=root
AuthInfo=socket=$folder/munge.socket
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
GresTypes=gpu
MpiDefault=none
NodeName=$host NodeAddr=$address CPUs=$(nproc) Gres=gpu:v100-16:2 State=UNKNOWN
PartitionName=GPU-shared Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF=$folder/slurm.conf

munged --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" \
    --pid-file="$folder/munged.pid" --log-file="$folder/munged.log" --seed-file="$folder/munge.seed"
slurmctld
slurmd

fail() {
    echo "failed: $1"
    tail -n 5 "$folder"/slurm*.log
    exit 1
}
wait_until() { # TENTHS COMMAND...
    for ((i = $1; i > 0; i--)); do
        "${@:2}" >/dev/null 2>&1 && return
        sleep 0.1
    done
    return 1
}
node_is_idle() { [[ $(sinfo --noheader --format=%T) == idle ]]; }
job_is_over() { [[ -z $(squeue --noheader --jobs="$job") ]]; }

wait_until 200 node_is_idle || fail "the node did not come up: $(sinfo --noheader --format='%T %E')"

# The site's module command, which does nothing here.
module() { echo "module $*"; }
export -f module

job=$(sbatch --parsable --account=course scripts/grade_bridges.sbatch \
    --device sim --submission tests/submissions/reference)
log=hw56-grade-$job.log
report=artifacts/grade-$job.json
trap 'rm -rf "$log" "$report" "artifacts/grade-$job-logs"' EXIT
wait_until 3000 job_is_over || fail "the job did not end"

cat "$log"
grep -q '^module load cuda/12.4.0$' "$log" || fail "the job did not load its module"
grep -q '^100/100' "$log" || fail "the log has not the score"
grep -q '"earned": 100' "$report" || fail "the report has not the score"
echo "1 passed, 0 failed"
