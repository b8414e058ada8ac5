#!/usr/bin/env bash
# fuzz.sh SECONDS TARGET... - run the fuzz targets one after another, each for SECONDS.
#
# A target starts from its kept corpus, tests/fuzz/corpus/TARGET, and from what earlier runs found,
# build/fuzz/corpus/TARGET, where this one adds. What crashed it stays in build/fuzz/crashes: once
# it is understood, it goes into the kept corpus, which `make test` replays. Exit status: 1 if
# any target crashed, leaked or hung.
set -uo pipefail
cd "$(dirname "$0")/.."

seconds=$1
shift
export UBSAN_OPTIONS=print_stacktrace=1 OPENBLAS_NUM_THREADS=1
crashes=build/fuzz/crashes
mkdir -p $crashes
failed=0

for target in "$@"; do
    found=build/fuzz/corpus/$target log=build/fuzz/$target.log
    mkdir -p "$found"
    verdict=ok
    "build/fuzz/tests/fuzz/fuzz_$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
        -close_fd_mask=1 -print_final_stats=1 -artifact_prefix="$crashes/$target-" \
        "$found" "tests/fuzz/corpus/$target" >"$log" 2>&1 </dev/null || verdict=FAILED
    runs=$(sed -n 's/^stat::number_of_executed_units: //p' "$log")
    coverage=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
    printf '%-8s%-16s%10s runs%8s edges\n' $verdict "$target" "${runs:-?}" "${coverage:-?}"
    if [ $verdict = FAILED ]; then
        failed=$((failed + 1))
        tail -n 60 "$log" | sed 's/^/    /'
    fi
done
[ $failed -eq 0 ]
