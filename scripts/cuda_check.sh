#!/usr/bin/env bash
# cuda_check.sh - does the CUDA device build? No GPU is needed. One line for each toolkit:
#
#   the one installed   nvcc builds cuda.so, and its libraries have every function that it calls
#   CUDA 12.4, sm_70    what two V100s run with. Unless that is what is installed, its headers and
#                       libraries come as Python packages into build/cuda-12.4; they have no nvcc,
#                       so NVRTC compiles the kernels, and the C compiler the rest
#
# From the environment: CC, PYTHON (for pip), CUDA_HOME and NVCC as make has them. Exit status: 77 if
# all is well but the packages cannot be installed.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(nvidia-cuda-runtime-cu12==12.4.127 nvidia-cublas-cu12==12.4.5.8
    nvidia-cuda-nvrtc-cu12==12.4.127 nvidia-nccl-cu12==2.21.5 nvidia-cuda-nvcc-cu12==12.4.131)
wheels=build/cuda-12.4
python=${PYTHON:-python3}
cc=${CC:-cc}

die() {
    printf 'cuda_check: %s\n' "$*" >&2
    exit 1
}

# symbols FLAG FILE... - dynamic symbols, without versions
symbols() { nm -D "$@" | awk '{print $NF}' | sed 's/@.*//' | sort -u; }

# has_all NAME WANTED LIBRARY... - the libraries define every name of the list WANTED
has_all() {
    local name=$1 wanted=$2 missing
    shift 2
    missing=$(comm -23 <(sort -u <<<"$wanted") <(symbols --defined-only "$@") | tr '\n' ' ')
    [ -z "${missing// /}" ] || die "$name lacks $missing"
}

# called FILE... - the functions of CUDA and cuBLAS that the objects or libraries leave undefined
called() { nm -u "$@" | awk '{print $NF}' | sed 's/@.*//' | grep -E '^(cuda|cublas)' | sort -u; }

# called_else FILE - what a library leaves undefined besides those, and the C library's
called_else() {
    nm -D -u "$1" | awk '$1 == "U" {print $2}' | grep -vE '@(GLIBC|GCC)|^(__)?(cuda|cublas)' | sort -u
}

# nccl_calls - those of NCCL, which are looked up by name
nccl_calls() { sed -n 's/^ *X(\(nccl[A-Za-z]*\)).*/\1/p' runtime/cuda/nccl_library.h; }

# ---- the installed one ----

nvcc=${NVCC:-$(command -v nvcc || true)}
architectures=
if [ -n "$nvcc" ]; then
    home=${CUDA_HOME:-$(dirname "$(dirname "$(realpath "$nvcc")")")}
    make --no-print-directory build/release/cuda.so >/dev/null || die "cuda.so does not build"
    has_all "the installed toolkit" "$(called -D build/release/cuda.so)" \
        "$home"/lib64/lib{cudart,cublas}.so
    make --no-print-directory grade >/dev/null || die "grade does not build"
    has_all "grade" "$(called_else build/release/cuda.so)" build/release/grade
    architectures=$("$nvcc" --list-gpu-arch | tr '\n' ' ')
    version=$("$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')
    nccl="without NCCL"
    if [ -e "$home/include/nccl.h" ]; then nccl="with NCCL"; fi
    echo "CUDA $version: cuda.so built by nvcc and linked, $nccl"
else
    echo "no CUDA toolkit is installed: cuda.so is not built here"
fi

# ---- CUDA 12.4 ----

case $architectures in
*compute_70*)
    echo "sm_70: covered by the installed toolkit"
    exit 0
    ;;
esac

if [ ! -e "$wheels/complete" ]; then
    rm -rf "$wheels"
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$wheels" \
        "${packages[@]}" 2>/dev/null || {
        echo "cuda_check: CUDA 12.4 is not checked: pip cannot install ${packages[*]}" >&2
        exit 77
    }
    touch "$wheels/complete"
fi
from=$wheels/nvidia

include=()
for part in cuda_runtime cublas cuda_nvcc nccl; do include+=(-isystem "$from/$part/include"); done
out=$wheels/out
mkdir -p "$out"
flags=(-std=gnu17 -O2 -Wall -Wextra -Werror -fPIC -pthread -I.)
for file in runtime/cuda/*.c; do
    "$cc" "${flags[@]}" "${include[@]}" -c -o "$out/$(basename "$file" .c).o" "$file"
done
libraries=("$from/cuda_runtime/lib/libcudart.so.12" "$from/cublas/lib/libcublas.so.12")
"$cc" -shared -o "$out/host.so" "$out"/*.o "${libraries[@]}" -Wl,-rpath-link,"$from/cublas/lib" -ldl
has_all "CUDA 12.4" "$(called -D "$out/host.so")" "${libraries[@]}"
has_all "NCCL 2.21" "$(nccl_calls)" "$from/nccl/lib/libnccl.so.2"

nvrtc=$from/cuda_nvrtc
"$cc" -std=gnu17 -Wall -Wextra -Werror -isystem "$nvrtc/include" -o "$out/nvrtc_compile" \
    tests/nvrtc_compile.c "$nvrtc/lib/libnvrtc.so.12" -Wl,-rpath,"$PWD/$nvrtc/lib"
"$out/nvrtc_compile" sm_70 runtime/cuda/*.cu >/dev/null
echo "CUDA 12.4: kernels compiled for sm_70 by NVRTC, the rest compiled and linked, with NCCL"
