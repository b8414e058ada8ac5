#!/usr/bin/env bash
# Package the three student files of this checkout for handing in:
#
#     bash scripts/create_submission_zip.sh
#
# writes dist/hw56_submission_TIMESTAMP.zip, which holds assignment/data_parallel.c,
# assignment/pipeline.c and assignment/finetune.c and nothing else, and prints its path.
set -euo pipefail

die() {
    echo "create_submission_zip: $*" >&2
    exit 1
}

# The text between the BEGIN_STUDENT and END_STUDENT comments, without white space.
student_regions() {
    awk '/END_STUDENT/ { inside = 0 } inside { print } /BEGIN_STUDENT/ { inside = 1 }' "$1" |
        tr -d '[:space:]'
}

# A file whose student regions are the reference solution's is staff material.
is_solution() {
    local solution="tests/submissions/reference/$1"
    [ -f "$solution" ] && [ "$(student_regions "$1")" = "$(student_regions "$solution")" ]
}

check_file() {
    [ -e "$1" ] || die "$1 is missing"
    [ -f "$1" ] || die "$1 is not a file"
    [ -s "$1" ] || die "$1 is empty"
    if is_solution "$1"; then
        die "$1 holds the reference solution, which is staff material; nothing was packaged"
    fi
    { grep -o '[a-z_]* is not implemented yet' "$1" || true; } | sed "s|^|note: $1: |" >&2
}

[ $# -eq 0 ] || die "takes no arguments"
cd "$(dirname "${BASH_SOURCE[0]}")/.."
command -v zip >/dev/null || die "the zip program is missing (Debian, Ubuntu: apt-get install zip)"

files=(assignment/data_parallel.c assignment/pipeline.c assignment/finetune.c)
for file in "${files[@]}"; do
    check_file "$file"
done

archive="$PWD/dist/hw56_submission_$(date +%Y%m%d_%H%M%S).zip"
mkdir -p dist
rm -f "$archive"
zip -q -X "$archive" "${files[@]}"
echo "$archive"
