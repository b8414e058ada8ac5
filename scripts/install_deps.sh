#!/usr/bin/env bash
# install_deps.sh [--tests] [--slurm] - install what building and grading need; with --tests, also
# what the tests need; with --slurm, the daemons for tests/slurm.sh, which is skipped without.
# Debian and Ubuntu (as root or with sudo), macOS (Homebrew). Where nothing is missing, nothing
# happens.
set -euo pipefail

debian=(gcc libc6-dev make pkg-config binutils zip libopenblas-dev libjansson-dev libzip-dev nettle-dev libseccomp-dev)
debian_tests=(check clang gdb unzip procps python3-torch)
debian_slurm=(slurm-wlm munge iproute2)
brew=(pkg-config jansson libzip nettle)
brew_tests=(check)

say() { printf 'install_deps: %s\n' "$*" >&2; }
die() {
    say "$@"
    exit 1
}

is_root() { [ "$(id -u)" -eq 0 ]; }

as_root() { $(is_root || echo sudo) env DEBIAN_FRONTEND=noninteractive "$@"; }

# without LIST NAME... - those of the names that are not among the lines of LIST
without() {
    local list=$1
    shift
    comm -23 <(printf '%s\n' "$@" | sort) <(sort -u <<<"$list")
}

apt_install() { as_root apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null; }

install_debian() {
    local installed
    installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "$@" 2>/dev/null |
        sed -n 's/^installed //p' || true)
    missing=($(without "$installed" "$@"))
    [ ${#missing[@]} -gt 0 ] || return 0
    is_root || command -v sudo >/dev/null || die "not root, and no sudo: ask for ${missing[*]}"
    say "installing ${missing[*]}"
    apt_install 2>/dev/null && return
    say "the package lists are missing or old: refreshing them"
    as_root apt-get update -qq || say "apt-get update failed; trying all the same"
    apt_install || die "apt-get could not install ${missing[*]}"
}

install_brew() {
    missing=($(without "$(brew list -1 --formula)" "$@"))
    [ ${#missing[@]} -eq 0 ] || brew install --quiet "${missing[@]}"
}

for option in "$@"; do
    case "$option" in
    --tests) debian+=("${debian_tests[@]}") brew+=("${brew_tests[@]}") ;;
    --slurm) debian+=("${debian_slurm[@]}") ;;
    *) die "usage: scripts/install_deps.sh [--tests] [--slurm]" ;;
    esac
done

if command -v dpkg-query >/dev/null; then
    install_debian "${debian[@]}"
elif command -v brew >/dev/null; then
    xcode-select -p >/dev/null 2>&1 || die "no compiler: run xcode-select --install"
    install_brew "${brew[@]}"
elif ! pkg-config --exists jansson libzip nettle openblas libseccomp; then
    die "neither Debian nor Homebrew: install gcc, make, pkg-config and the development files of" \
        "OpenBLAS, jansson, libzip, nettle and libseccomp"
fi
