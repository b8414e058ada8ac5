#!/bin/bash
# Every loop of runtime/cpu/kernels.c that calls no function must have become vector instructions: a
# compiler that finds a branch in one is silent, and the loop eight times slower. Skipped (exit 77)
# for other processors, and for builds with sanitizers.
set -euo pipefail
cd "$(dirname "$0")/.."
variant=${VARIANT:-release}

[[ $(uname -m) == x86_64 && $variant =~ ^(release|clang|posix)$ ]] ||
    { echo "skipped: for builds for x86-64 without sanitizers"; exit 77; }

# "NAME COUNT" for each kernel's version for AVX2: the instructions with 256-bit registers
counts=$(objdump -d --no-show-raw-insn "build/$variant/runtime/cpu/kernels.o" |
    awk '/^[0-9a-f]+ <.*_avx2/ { name = $2; gsub(/[<>:]|\.constprop.*/, "", name); count[name] = 0 }
         /^[0-9a-f]+ </ && !/_avx2/ { name = "" }
         name && /%ymm/ { count[name]++ }
         END { for (name in count) print name, count[name] }' | sort)
[[ $(wc -l <<<"$counts") -ge 30 ]] || { echo "too few kernels found:"; echo "$counts"; exit 1; }

# tanh is the C library's, and so are exp and erf in FLOAT64.
if scalar=$(grep -E ' 0$' <<<"$counts" | grep -Ev '^kernel_(tanh_f(32|64)|gelu(_grad|_residual)?_f64)_avx2 '); then
    echo "not vectorised: $scalar"
    exit 1
fi
echo "$(grep -cEv ' 0$' <<<"$counts") loops are vectorised"
