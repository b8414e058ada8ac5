#!/usr/bin/env bash
# gpu_check.sh - the CUDA device on one real GPU, in under five minutes: what the simulated one
# cannot show. A line for every step: ok, FAILED with the end of its output, or skipped and why; then
# what was not covered. Exits with 0 if all that could run passed, 1 if something failed, 77 where
# there is no GPU or no CUDA toolkit.
#
# From the environment: PYTHON (with torch, for the comparison), STEP_SECONDS (90, for each step),
# BUILD_SECONDS (300).
set -uo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
tests=build/release/tests
log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=0
uncovered=("two GPUs: NCCL, copies from GPU to GPU, both speedups" "V100s (sm_70): see make cuda-check")

line() { printf '%-8s%-60s%s\n' "$1" "$2" "${3-}"; }

# step WHAT COMMAND... - run a command that should succeed; its output is in $log afterwards
step() {
    local what=$1 begin=$SECONDS
    shift
    if timeout --kill-after=5 "${STEP_SECONDS:-90}" "$@" >"$log" 2>&1 </dev/null; then
        line ok "$what" "$((SECONDS - begin)) s"
    else
        line FAILED "$what" "status $? after $((SECONDS - begin)) s"
        tail -n 15 "$log" | sed 's/^/    /'
        failed=$((failed + 1))
        return 1
    fi
}

skip() {
    line skipped "$1" "$2"
    uncovered+=("$1: $2")
}

# suite NAME - a test program, on the GPU
suite() { env TEST_PLUGIN=build/release/cuda.so "$tests/test_$1"; }

# sanitized TOOL NAME - a test program's kernels and copies under one of compute-sanitizer's tools,
# in one process
sanitized() {
    env TEST_PLUGIN=build/release/cuda.so TEST_FEWER=1 CK_FORK=no \
        compute-sanitizer --tool "$1" --error-exitcode 9 "$tests/test_$2"
}

# blocked - grade says what it lacks on this machine, and ends as when something is blocked
blocked() {
    build/release/grade --device cuda --submission tests/submissions/reference \
        --output "$log.json"
    [ $? -eq 2 ] && ! grep -q '"status": "failed"' "$log.json"
}

# milliseconds COMMAND... - what a benchmark measures
milliseconds() { "$@" 2>/dev/null | sed -n 's/^mlp_step_cuda_ms //p'; }

# compare_with_torch - the assignment's step, three times each in turn, best against best
compare_with_torch() {
    for _ in 1 2 3; do
        echo "ours $(milliseconds "$tests/bench_mlp" cuda)"
        echo "torch $(milliseconds "$python" tests/bench_mlp.py cuda)"
    done | awk '!($1 in best) || $2 < best[$1] { best[$1] = $2 }
        END {
            printf "%.2f ms, PyTorch %.2f ms: %.2fx\n", best["ours"], best["torch"],
                best["torch"] / best["ours"]
            exit !(best["ours"] > 0 && best["ours"] <= best["torch"])
        }'
}

export -f suite sanitized blocked milliseconds compare_with_torch
export tests python log

gpu=$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null)
if [ -z "$gpu" ]; then
    echo "gpu_check: nvidia-smi finds no GPU here: nothing was covered"
    exit 77
fi
echo "$gpu"
STEP_SECONDS=${BUILD_SECONDS:-300} step "build" make "-j$(nproc)" grade build/release/cuda.so \
    "$tests"/{test_cuda_twin,test_cuda_training,test_ops,test_dist_device,bench_mlp} || exit 1
if [ ! -e build/release/cuda.so ]; then
    echo "gpu_check: make finds no CUDA toolkit here: nothing was covered"
    exit 77
fi

step "every operation against its twin of the CPU" bash -c "suite cuda_twin"
step "copies between devices, training, errors" bash -c "suite cuda_training"
step "operations and gradients against PyTorch's values" bash -c "suite ops"
step "two ranks share the GPU: collectives by the host, over TCP" bash -c "suite dist_device"
[ "$(wc -l <<<"$gpu")" -gt 1 ] || step "grade blocks for want of a second GPU" bash -c blocked
if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck; do
        step "compute-sanitizer $tool, operations" bash -c "sanitized $tool cuda_twin"
        step "compute-sanitizer $tool, training" bash -c "sanitized $tool cuda_training"
    done
else
    skip "compute-sanitizer memcheck, racecheck" "it is not installed"
fi
if "$python" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
    step "the step is no slower than PyTorch's" bash -c compare_with_torch
    sed 's/^/        /' "$log"
else
    skip "the step beside PyTorch's" "no PyTorch with CUDA for $python"
    step "the step, alone" "$tests/bench_mlp" cuda && sed -n '1s/^/        /p' "$log"
fi

rm -f "$log.json"
echo "not covered:"
printf '  %s\n' "${uncovered[@]}"
[ "$failed" -eq 0 ]
