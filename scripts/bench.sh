#!/usr/bin/env bash
# bench.sh - the figures that the project promises, each beside its target; peers run in turn with
# ours, in the same minutes. From the environment: PYTHON (with torch, for the peers), ROUNDS (3),
# RUNS (11 grades).
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3} rounds=${ROUNDS:-3} runs=${RUNS:-11}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
grade=(build/release/grade --quiet --device cpu --submission tests/submissions/reference
    --output "$work/grade.json")

# row WHAT OURS PEER RATIO TARGET MET - MET is 1, 0, or "-" where there is nothing to compare with
row() {
    local verdict=ok
    [ "$6" != 0 ] || verdict=MISSED
    [ "$6" != - ] || verdict=
    printf '%-34s %14s %16s %8s  %-9s %s\n' "$1" "$2" "$3" "$4" "$5" "$verdict"
}

median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
holds() { awk "BEGIN { print ($1) ? 1 : 0 }"; }

# The status 2 of a grade says that something was blocked: on a CPU it always is.
grade_once() { "${grade[@]}" >/dev/null || [ $? -eq 2 ]; }

bench_grade() {
    local TIMEFORMAT=%R seconds
    grade_once
    for _ in $(seq "$runs"); do
        { time grade_once; } 2>>"$work/seconds"
    done
    seconds=$(median <"$work/seconds")
    row "whole CPU grade, median of $runs" "$seconds s" "" "" "<= 0.6 s" "$(holds "$seconds <= 0.6")"
}

# What a grade takes longer than without namespaces and filter, for each process that is isolated:
# compilers, criteria and ranks.
bench_isolation() {
    local TIMEFORMAT=%R processes per_process
    for _ in $(seq "$runs"); do
        { time grade_once; } 2>>"$work/isolated"
        { time GRADE_ISOLATION=process grade_once; } 2>>"$work/bare"
    done
    processes=$(cat "$work"/grade-logs/*.log | grep -c '^---- ')
    per_process=$(awk "BEGIN { printf \"%.2f\", 1e3 * ($(median <"$work/isolated") - \
        $(median <"$work/bare")) / ($processes + 3) }")
    row "isolation of a process" "$per_process ms" "" "" "<= 5 ms" "$(holds "$per_process <= 5")"
}

# The largest process of a grade, the compiler's included.
bench_memory() {
    local megabytes
    megabytes=$("$python" - "${grade[@]}" <<'PYTHON'
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
unit = 1 if sys.platform == "darwin" else 1024
print("%.0f" % (resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit / 1e6))
PYTHON
    )
    row "peak memory of a process" "$megabytes MB" "" "" "< 200 MB" "$(holds "$megabytes < 200")"
}

# bench_peers NAME [ARGUMENT...] - run build/release/tests/bench_NAME and tests/bench_NAME.py in
# turn. Each prints lines that are a key and a number; they are collected in NAME.ours and NAME.peer.
bench_peers() {
    local name=$1
    shift
    : >"$work/$name.ours"
    : >"$work/$name.peer"
    for _ in $(seq "$rounds"); do
        "build/release/tests/bench_$name" "$@" >>"$work/$name.ours"
        "$python" -c 'import torch' 2>/dev/null || continue
        "$python" "tests/bench_$name.py" "$@" >>"$work/$name.peer" 2>/dev/null
    done
}

size() { [ "$1" -lt 1048576 ] && echo "$(($1 / 1024)) KB" || echo "$(($1 / 1048576)) MB"; }

# value FILE KEY - the median of a key's numbers; nothing if there are none
value() { sed -n "s/^$2 \([0-9.e+-]*\)$/\1/p" "$1" | median; }

# compare NAME KEY WHAT UNIT TARGET - a row for a key of bench_peers NAME: less is better
compare() {
    local ours peer
    ours=$(value "$work/$1.ours" "$2")
    peer=$(value "$work/$1.peer" "$2")
    if [ -z "$ours" ] || [ -z "$peer" ]; then
        row "$3" "${ours:-?} $4" "no PyTorch" "" ">= ${5}x" -
    else
        row "$3" "$ours $4" "$peer $4" "$(awk "BEGIN { printf \"%.2fx\", $peer / $ours }")" \
            ">= ${5}x" "$(holds "$peer / $ours >= $5")"
    fi
}

# speedup NAME KEY WHAT TARGET - a row for a speedup that both measure against themselves
speedup() {
    local ours peer
    ours=$(value "$work/$1.ours" "$2")
    peer=$(value "$work/$1.peer" "$2")
    row "$3" "${ours:-?}x" "${peer:+${peer}x}" "" ">= ${4}x" "$(holds "${ours:-0} >= $4")"
}

row "" ours peer ratio target -
bench_grade
bench_isolation
bench_memory
bench_peers allreduce
sed -n 's/^allreduce \([0-9]*\) \([0-9]*\) .*/\1 \2/p' "$work/allreduce.ours" | sort -un -k1,1n -k2,2n |
    while read -r ranks bytes; do
        compare allreduce "allreduce $ranks $bytes" "all-reduce, $ranks ranks, $(size "$bytes")" us 2
    done
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE # ours and the peers have the kernels made for this machine
bench_peers mlp
compare mlp mlp_step_cpu_ms "residual MLP step, one thread" ms 1.25
if nvidia-smi -L >/dev/null 2>&1 && [ -e build/release/cuda.so ]; then
    bench_peers mlp cuda
    compare mlp mlp_step_cuda_ms "residual MLP step, one GPU" ms 1
fi
bench_peers pipeline
speedup pipeline pipeline_speedup "two stages on two cores" 1.5
bench_peers data_parallel
speedup data_parallel "data_parallel_speedup 512" "two ranks, 512 rows" 1.5
speedup data_parallel "data_parallel_speedup 2048" "two ranks, 2048 rows" 1.8
