#!/bin/bash
# A real Slurm, in network, mount and process namespaces that end with everything in them: a
# controller and three nodes. One has two declared GPUs, and runs scripts/grade_bridges.sbatch on
# simulated ones; the other two are hosts of their own, and the ranks of a process group.
# Skipped (exit 77) without root, Slurm or namespaces, and but for the release build, which it grades
# with.
set -euo pipefail
cd "$(dirname "$0")/.."

skip() { echo "skipped: $1"; exit 77; }

if [[ ${1-} != inside ]]; then
    [[ ${VARIANT:-release} == release ]] || skip "for the release build"
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
ip link add hosts type bridge
ip address add $address/24 dev hosts
ip link set hosts up
add_host() { # NAME ADDRESS - a network namespace with a line to the others
    ip netns add "$1"
    ip link add "$1" type veth peer name eth0 netns "$1"
    ip link set "$1" master hosts up
    ip -netns "$1" address add "$2/24" dev eth0
    ip -netns "$1" link set eth0 up
    ip -netns "$1" link set lo up
}
mkdir -p /run/netns
mount -t tmpfs none /run/netns
add_host left 10.213.0.2
add_host right 10.213.0.3

mkdir "$folder"/{state,spool-left,spool-right}
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
SlurmdSpoolDir=$folder/spool-%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd-%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd-%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
GresTypes=gpu
MpiDefault=none
NodeName=$host NodeAddr=$address CPUs=$(nproc) Gres=gpu:v100-16:2 State=UNKNOWN
NodeName=left NodeAddr=10.213.0.2 State=UNKNOWN
NodeName=right NodeAddr=10.213.0.3 State=UNKNOWN
PartitionName=GPU-shared Nodes=$host Default=YES MaxTime=INFINITE State=UP
PartitionName=hosts Nodes=left,right MaxTime=INFINITE State=UP
CONF
export SLURM_CONF=$folder/slurm.conf

munged --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" \
    --pid-file="$folder/munged.pid" --log-file="$folder/munged.log" --seed-file="$folder/munge.seed"
slurmctld
slurmd
for name in left right; do
    nsenter --net="/run/netns/$name" unshare --uts sh -c "hostname $name && exec slurmd"
done

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
nodes_are_idle() { [[ $(sinfo --noheader --Node --format=%T | uniq -c) =~ ^\ *3\ idle$ ]]; }
job_is_over() { [[ -z $(squeue --noheader --jobs="$job") ]]; }

wait_until 200 nodes_are_idle || fail "the nodes did not come up: $(sinfo --noheader --format='%T %E')"

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

srun --partition=hosts --nodes=2 --ntasks=2 "build/${VARIANT:-release}/tests/srun_rank" \
    "$folder/rendezvous" | sort >"$folder/ranks" || fail "the ranks did not meet"
diff - "$folder/ranks" <<'RANKS' || fail "the ranks did not add up"
rank 0 of 2 on left: 3
rank 1 of 2 on right: 3
RANKS
echo "2 passed, 0 failed"
