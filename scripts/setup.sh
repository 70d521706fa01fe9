#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# setup.sh BUILD: makes sure that everything the build needs is there, and writes BUILD/setup.mk (CUDA_DIR, OPENBLAS_DIR, ONIG_SRC, ASSEMBLER;
# SETUP_FOR, make's settings).
# Libraries come by apt; Oniguruma, which Debian has as a shared library only, as source, from the package of Rust's binding
# to it (the one that Hugging Face's tokenizers are built with), or from the folder $ONIG_SRC; the CUDA compiler from $CUDA_HOME or PATH, else as pinned wheels unpacked under BUILD/cuda.
# The ptxas of architectures that ask for a newer one (contracts/archs.yaml) is that of the compiler, if it is new enough, else of the CUDA in $ASSEMBLER, else
# of a pinned wheel, under BUILD/ptxas; ASSEMBLER=toolkit does without.
# With $SETUP (`make setup`) also the programs of `make lint` and a driver of Vulkan for the tests, which nothing else needs. All it says goes to standard error.
set -eu
export LC_ALL=C
build=${1:?usage: setup.sh BUILD}
here=$(cd "$(dirname "$0")" && pwd)
: "${CC:=cc}"
. "$here/apt.sh"

packages="build-essential pkg-config $libraries libcmocka-dev"
vulkan_packages="$headers_only glslc"
onig_package=librust-onig-sys-dev
wheel_packages="python3 python3-pip"
lint_packages="clang-format-14 clang-tidy-14 shellcheck"
test_packages="libvulkan1 mesa-vulkan-drivers vulkan-validationlayers"
headers="xxhash.h yaml.h jansson.h zstd.h zlib.h utf8proc.h stdarg.h stddef.h stdint.h setjmp.h cmocka.h"
archives="libjansson.a libyaml.a libgomp.a libxxhash.a libzstd.a libz.a libutf8proc.a"

libraries_present() {
    command -v ${CC%% *} >/dev/null 2>&1 && command -v g++ >/dev/null 2>&1 || return 1
    local h
    for h in $headers; do echo "#include <$h>"; done | $CC -E -o /dev/null - 2>/dev/null || return 1
    local a
    for a in $archives; do
        [ "$($CC -print-file-name="$a")" != "$a" ] || return 1
    done
    [ -n "$(openblas_dir)" ]
}

# Headers of Vulkan, and the compiler of shaders.
vulkan_present() {
    echo "#include <vulkan/vulkan_core.h>" | $CC -E -o /dev/null - 2>/dev/null && command -v "${GLSLC:-glslc}" >/dev/null 2>&1
}

# Debian keeps each flavour of OpenBLAS in a folder of its own; ours is the OpenMP one, so that threads are shared.
openblas_dir() {
    local triple
    triple=$($CC -print-multiarch 2>/dev/null || true)
    local d
    for d in "/usr/lib/$triple/openblas-openmp" "/usr/lib/openblas-openmp"; do
        if [ -f "$d/libopenblas.a" ]; then
            echo "$d"
            return
        fi
    done
}

usable_onig() { [ -f "$1/oniguruma.h" ] && [ -f "$1/regexec.c" ]; }

# Reuse what an earlier run found.
find_onig() {
    local d
    for d in "${ONIG_SRC:-}" "$(sed -n 's/^ONIG_SRC := //p' "$build/setup.mk" 2>/dev/null)" "$build"/onig/usr/share/cargo/registry/*/oniguruma/src; do
        if usable_onig "$d"; then
            (cd "$d" && pwd -P)
            return
        fi
    done
}

# A CUDA compiler is usable if it is release 13.0 or later 13.x: older ones lack sm_120 and sm_121.
usable_cuda() {
    [ -x "$1/bin/nvcc" ] && [ -x "$1/bin/ptxas" ] && [ -x "$1/bin/fatbinary" ] &&
        "$1/bin/nvcc" --version 2>/dev/null | grep -q 'release 13\.'
}

# Reuse what an earlier run found: under sudo, PATH and the environment differ.
find_cuda() {
    local nvcc d candidates="${CUDA_HOME:-}"
    nvcc=$(command -v nvcc || true)
    [ -z "$nvcc" ] || candidates="$candidates $(dirname "$(dirname "$(readlink -f "$nvcc")")")"
    for d in $candidates $(sed -n 's/^CUDA_DIR := //p' "$build/setup.mk" 2>/dev/null) "$build/cuda/nvidia/cu13"; do
        if usable_cuda "$d"; then
            (cd "$d" && pwd -P)
            return
        fi
    done
}

# A folder of CUDA whose ptxas is of the wheel's release or newer, or `toolkit`.
find_assembler() {
    if [ "${ASSEMBLER:-}" = toolkit ]; then
        echo toolkit
        return
    fi
    local found
    found=$(sh "$here/../tools/assembler.sh" "$ptxas" "$cuda" "${ASSEMBLER:-}" "$(sed -n 's/^ASSEMBLER := //p' "$build/setup.mk" 2>/dev/null)" "$build/ptxas/$ptxas")
    [ -z "$found" ] || (cd "${found% *}" && pwd -P)
}

# wheels_into FOLDER LIST: what the wheels hold, whose hashes are pinned per machine type in LIST.
wheels_into() {
    local folder=$1 wheels=$build/wheels w
    rm -rf "$wheels" "$folder"
    mkdir -p "$wheels"
    python3 -m pip download -q --no-deps --only-binary=:all: --require-hashes -d "$wheels" -r "$here/$2" >"$build/wheels.log" 2>&1 || return
    for w in "$wheels"/*.whl; do python3 -m zipfile -e "$w" "$folder" || return; done
    chmod +x "$folder"/nvidia/cu13/bin/* && rm -rf "$wheels"
}

# unpack_ptxas: two programs of the wheel stay.
unpack_ptxas() {
    say "ptxas $ptxas is needed for sm_120 and sm_121 (contracts/archs.yaml): fetching its wheel (about 40 MB) into $build/ptxas"
    wheels_into "$build/ptxas.part" ptxas-wheel.txt ||
        die "ptxas $ptxas could not be fetched or its hash differs (see $build/wheels.log); set ASSEMBLER to the folder of CUDA 13.3 or newer, or to 'toolkit': the older ptxas of $cuda for every architecture (docs/toolchain.md)"
    rm -rf "$build/ptxas/$ptxas"
    mkdir -p "$build/ptxas/$ptxas/bin"
    mv "$build"/ptxas.part/nvidia/cu13/bin/ptxas "$build"/ptxas.part/nvidia/cu13/bin/fatbinary "$build/ptxas/$ptxas/bin"
    rm -rf "$build/ptxas.part"
}

# The compiler alone: five wheels, their hashes pinned per machine type in cuda-wheels.txt.
unpack_wheels() {
    say "no CUDA 13 compiler on PATH or in \$CUDA_HOME: fetching its wheels (about 100 MB) into $build/cuda"
    rm -rf "$build/cuda"
    wheels_into "$build/cuda.part" cuda-wheels.txt ||
        die "the CUDA wheels could not be fetched or their hashes differ; see $build/wheels.log, or install CUDA 13.0 and set CUDA_HOME"
    chmod +x "$build"/cuda.part/nvidia/cu13/nvvm/bin/*
    mv "$build/cuda.part" "$build/cuda"
}

mkdir -p "$build"
[ "$CC" = cc ] || command -v ${CC%% *} >/dev/null 2>&1 || die "CC=$CC: there is no such compiler"
ptxas=$(sed -n 's/^nvidia-cuda-nvcc==\([0-9.]*\) .*/\1/p' "$here/ptxas-wheel.txt")
cuda=$(find_cuda)
assembler=$(find_assembler)
wanted=
libraries_present || wanted=$packages
vulkan_present || wanted="$wanted $vulkan_packages"
{ [ -n "$cuda" ] && [ -n "$assembler" ]; } || python3 -m pip --version >/dev/null 2>&1 || wanted="$wanted $wheel_packages"
if [ -n "$wanted" ]; then
    apt_install $wanted
    libraries_present || die "packages were installed, yet headers or static libraries are still missing; wanted: $packages"
    vulkan_present || die "packages were installed, yet Vulkan's headers or glslc are still missing; wanted: $vulkan_packages"
fi
if [ -n "${SETUP:-}" ] && ! type -P $lint_packages >/dev/null 2>&1; then
    (apt_install $lint_packages) || say "make lint leaves out what they check"
fi
if [ -n "${SETUP:-}" ] && ! ls /usr/share/vulkan/icd.d/lvp_icd*.json >/dev/null 2>&1; then
    (apt_install $test_packages) || say "tests of the Vulkan backend are skipped"
fi
if [ -z "$cuda" ]; then
    unpack_wheels
    cuda=$(find_cuda)
    [ -n "$cuda" ] || die "the unpacked CUDA compiler in $build/cuda does not run here"
fi
if [ -z "$assembler" ]; then
    unpack_ptxas
    assembler=$(find_assembler)
    [ -n "$assembler" ] || die "the unpacked ptxas in $build/ptxas does not run here"
fi
onig=$(find_onig)
if [ -z "$onig" ]; then
    apt_unpack "$(dpkg --print-architecture 2>/dev/null || uname -m)" "$build/onig" $onig_package
    onig=$(find_onig)
    [ -n "$onig" ] || die "package $onig_package holds no source of Oniguruma; unpack one and set ONIG_SRC to its folder src"
fi
cat >"$build/setup.mk.part" <<MK
CUDA_DIR := $cuda
OPENBLAS_DIR := $(openblas_dir)
ONIG_SRC := $onig
ASSEMBLER := $assembler
SETUP_FOR := ${SETUP_FOR:-}
MK
cmp -s "$build/setup.mk.part" "$build/setup.mk" || [ -z "${CUDA_HOME:-}" ] || usable_cuda "$CUDA_HOME" ||
    say "CUDA_HOME=$CUDA_HOME holds no CUDA 13 compiler: using $cuda"
cmp -s "$build/setup.mk.part" "$build/setup.mk" || case ${ASSEMBLER:-} in
"" | toolkit) ;;
*) [ "$(cd "$ASSEMBLER" 2>/dev/null && pwd -P)" = "$assembler" ] || [ "$assembler" = "$cuda" ] ||
    say "ASSEMBLER=$ASSEMBLER holds no ptxas of release $ptxas or newer: using $assembler" ;;
esac
mv "$build/setup.mk.part" "$build/setup.mk" # new even where it is the same, so that make knows
