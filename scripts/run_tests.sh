#!/usr/bin/env bash
# run_tests.sh SUITE... - run the suites, show the output of those that fail, count.
#
# A suite is NAME for the Check program build/$VARIANT/tests/test_NAME, or the name of a script in
# tests/, NAME.sh or NAME.py, which counts as one test (exit status 77: it cannot run here). From the
# environment: VARIANT (release), PYTHON (python3), TIMEOUT (seconds for a suite, 300), REQUIRE_TORCH
# (1: a torch_*.py that cannot run is a failure).
set -uo pipefail
cd "$(dirname "$0")/.."

export VARIANT=${VARIANT:-release} PYTHON=${PYTHON:-python3}
export OPENBLAS_NUM_THREADS=1 # as in the processes of grade: more of them wait for each other
timeout=($(command -v timeout || command -v gtimeout) --kill-after=10 "${TIMEOUT:-300}")
[ ${#timeout[@]} -eq 3 ] || timeout=(env)
output=$(mktemp)
trap 'rm -f "$output"' EXIT
passed=0 failed=0 skipped=0

case $VARIANT in
asan) export UBSAN_OPTIONS=print_stacktrace=1 ;;
tsan) export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1 ;;
esac

# run COMMAND... - with its output in a file; prints the seconds it took, exits as it did
run() {
    local TIMEFORMAT=%R
    { time "${timeout[@]}" "$@" >"$output" 2>&1 </dev/null; } 2>&1
}

# A Check program ends with "97%: Checks: 30, Failures: 1, Errors: 0". One that does not, or that
# fails without naming a test, has one failure more.
count_checks() {
    local status=$1 line
    line=$(grep -aE '^[0-9]+%: Checks: ' "$output" | tail -n 1)
    good=0 bad=0
    if [[ $line =~ Checks:\ ([0-9]+),\ Failures:\ ([0-9]+),\ Errors:\ ([0-9]+) ]]; then
        bad=$((BASH_REMATCH[2] + BASH_REMATCH[3]))
        good=$((BASH_REMATCH[1] - bad))
    fi
    if [ $((good + bad)) -eq 0 ] || { [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; }; then
        bad=1
    fi
}

count_script() {
    local name=$1 status=$2
    good=0 bad=0
    case $status-$name-${REQUIRE_TORCH:-0} in
    0-*) good=1 ;;
    77-torch_*-1) bad=1 ;;
    77-*) ;;
    *) bad=1 ;;
    esac
}

report() {
    local name=$1 seconds=$2 verdict=ok
    [ $((good + bad)) -gt 0 ] || verdict=skipped skipped=$((skipped + 1))
    [ "$bad" -eq 0 ] || verdict=FAILED
    printf '%-8s%-28s%5d tests%9s s\n' "$verdict" "$name" $((good + bad)) "$seconds"
    [ "$bad" -eq 0 ] || sed 's/^/    /' "$output"
    passed=$((passed + good)) failed=$((failed + bad))
}

for name in "$@"; do
    case $name in
    *.sh) seconds=$(run bash "tests/$name") ;;
    *.py) seconds=$(run "$PYTHON" "tests/$name") ;;
    *) seconds=$(run "build/$VARIANT/tests/test_$name") ;;
    esac
    status=$?
    case $name in
    *.sh | *.py) count_script "$name" $status ;;
    *) count_checks $status ;;
    esac
    report "$name" "$seconds"
done

echo "$passed passed, $failed failed$([ $skipped -eq 0 ] || echo ", $skipped skipped")"
[ "$failed" -eq 0 ]
