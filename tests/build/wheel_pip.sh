#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# wheel_pip.sh: the wheel is the same bytes twice, its RECORD is true, and its tag promises what its binary needs and no less; pip puts
# it into a fresh environment with a stand-in for nvidia-cublas (the simulated library at the real one's place), where nojit finds
# cuBLASLt without a word from the user and trains without Python.
set -eu
cd "$(dirname "$0")/../.."
. tests/lib/lib.sh
if ! { command -v python3 && command -v readelf; } >/dev/null; then
    skip "make wheel makes a wheel" "no python3 or no readelf"
    finish
    exit
fi
build=$(realpath "$BUILD")
machine=$(uname -m)
static=$(sed -n 's/^STATIC := //p' mk/trainer.mk)
ONIG_SRC=$(sed -n 's/^ONIG_SRC := //p' "$BUILD/setup.mk")
export ONIG_SRC PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INDEX=1 PIP_NO_CACHE_DIR=1
unset NOJIT_CUBLASLT CUDA_HOME CUDA_PATH CONDA_PREFIX VIRTUAL_ENV LD_LIBRARY_PATH PYTHONPATH SOURCE_DATE_EPOCH
a=$scratch/a/dist
mkdir "$scratch/a"
ln -s "$build/nojit" "$scratch/a/nojit"
"$build/nojit" help --man >"$scratch/a/nojit.1"
B=$scratch/a VERSION=0 ARCHS="sm_1 sm_2" STATIC="$static" BLOBCHECK="$build/blobcheck" scripts/dist.sh >/dev/null
tarball=$a/nojit-0-$machine-sm_1-sm_2.tar.gz
version=$("$build/nojit" version | sed -E 's/^binary +nojit ([^:]+):.*/\1/')
wheel=$a/nojit-$version-py3-none-manylinux_2_36_$machine.whl
made() { python3 scripts/wheel.py "$tarball" manylinux_2_36 "$@"; }
succeeds "make wheel makes a wheel" made
succeeds "the wheel's name has version and machine" [ -s "$wheel" ]
again() {
    mkdir "$scratch/b" && cp "$tarball" "$scratch/b/" &&
        (umask 077 && TZ=Asia/Tokyo LC_ALL=C.UTF-8 python3 scripts/wheel.py "$scratch/b/${tarball##*/}" manylinux_2_36) && cmp "$wheel" "$scratch/b/${wheel##*/}"
}
succeeds "make wheel makes the same bytes twice" again
other_archs() { made sm_90a sm_121 && [ -s "$a/nojit-$version+sm.90a.sm.121-py3-none-manylinux_2_36_$machine.whl" ] && rm "$a/nojit-$version+"*; }
succeeds "a wheel of other archs has another version" other_archs

python3 -m zipfile -e "$wheel" "$scratch/wheel"
mkdir "$scratch/tarball"
tar -xzf "$tarball" -C "$scratch/tarball" --strip-components=1
info=$scratch/wheel/nojit-$version.dist-info
binary=$scratch/wheel/nojit-$version.data/scripts/nojit
recorded() { # each file once, with its digest and size
    local path digest bytes
    [ "$(find "$scratch/wheel" -type f | wc -l)" = "$(cut -d, -f1 "$info/RECORD" | sort -u | wc -l)" ] || return 1
    while IFS=, read -r path digest bytes; do
        [ "$path" != "${info##*/}/RECORD" ] || continue
        [ "sha256=$(sha256sum <"$scratch/wheel/$path" | head -c 64 | tr a-f A-F | basenc --base16 -d | basenc --base64url | tr -d =)" = "$digest" ] &&
            [ "$(stat -c %s "$scratch/wheel/$path")" = "$bytes" ] || return 1
    done <"$info/RECORD"
}
succeeds "RECORD of the wheel is true" recorded
described() {
    sed '1,/^$/d' "$info/METADATA" >"$scratch/description" && ! grep -nE '\]\((docs|examples|[A-Z])' "$scratch/description" &&
        cmp <(tr -d '[]' <"$scratch/description" | sed -E 's/\((https?:|#)[^)]*\)//g') <(sed -E 's/!\[/[/g; s/\]\([^)]*\)//g' README.md | tr -d '[]') && grep -qx "Version: $version" "$info/METADATA" &&
        grep -qx 'Requires-Dist: nvidia-cublas>=13,<14' "$info/METADATA" && cmp "$binary" "$scratch/tarball/nojit"
}
succeeds "the wheel has the README and the tarball's binary" described
licensed() {
    local term
    for term in LICENSE $(cd "$scratch/tarball" && ls licences/*); do
        grep -qx "License-File: $term" "$info/METADATA" && cmp "$scratch/tarball/$term" "$info/licenses/$term" || return 1
    done
    for term in $("$build/nojit" version --verbose | sed -n 's/^library [^,]*, //p' | sed 's/ WITH / /; s/ AND / /'); do
        grep "^License-Expression: Apache-2.0 AND " "$info/METADATA" | grep -qF "$term" || return 1
    done
    cmp "$scratch/tarball/nojit.spdx.json" "$info/sboms/nojit.spdx.json"
}
succeeds "the wheel has a licence of each library and the SBOM" licensed

# ---- the tag ----
floor() { # no symbol of a newer glibc, no library beyond glibc's own
    readelf -VW "$binary" | grep -oE 'GLIBC_[0-9.]+' | sort -Vu >"$scratch/versions" && [ -s "$scratch/versions" ] &&
        [ "$({ cat "$scratch/versions" && echo GLIBC_2.36; } | sort -V | tail -n 1)" = GLIBC_2.36 ] &&
        ! readelf -dW "$binary" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(lib[cm]\.so\.6|ld-linux-.*\.so\.[12])$'
}
succeeds "glibc 2.36 has all that the wheel needs" floor
refuses "a wheel whose tag promises too much is refused" 1 '^wheel: the binary needs glibc 2\.[0-9]+, manylinux_2_17 promises less' python3 scripts/wheel.py "$tarball" manylinux_2_17
echo 'int main(void) { return 0; }' | "${CC:-cc}" -xc -Wl,--no-as-needed -o "$scratch/tarball/nojit" - -lgcc_s
tar -C "$scratch" -czf "$scratch/linked.tar.gz" tarball
refuses "a wheel with a library that its tag does not promise is refused" 1 'linked with libgcc_s.so.1, which manylinux_2_36 does not' python3 scripts/wheel.py "$scratch/linked.tar.gz" manylinux_2_36
succeeds "a refused wheel writes nothing" [ ! -e "$scratch/${wheel##*/}" ]

# ---- pip ----
if ! python3 -m venv "$scratch/env" >/dev/null 2>&1; then
    skip "pip installs the wheel" "this Python makes no environment (Debian's is in python3-venv)"
    finish
    exit
fi
pip=("$scratch/env/bin/python" -m pip)
nojit=$scratch/env/bin/nojit
refuses "pip refuses the wheel without nvidia-cublas" 1 'No matching distribution found for nvidia-cublas' "${pip[@]}" install -q "$wheel"
python3 - "$a" "$build/sim/libcublasLt.so.13" <<'END'
import sys, zipfile
info = "nvidia_cublas-13.1.0.dist-info/"
with zipfile.ZipFile(sys.argv[1] + "/nvidia_cublas-13.1.0-py3-none-any.whl", "w") as out:
    out.write(sys.argv[2], "nvidia/cu13/lib/libcublasLt.so.13")
    out.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: nvidia-cublas\nVersion: 13.1.0\n")
    out.writestr(info + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    names = ["nvidia/cu13/lib/libcublasLt.so.13", info + "METADATA", info + "WHEEL", info + "RECORD"]
    out.writestr(info + "RECORD", "".join(n + ",,\n" for n in names))
END
umask 022
succeeds "pip installs the wheel by name" "${pip[@]}" install -q --find-links "$a" nojit
succeeds "pip installs what the wheel needs" "${pip[@]}" check
succeeds "the installed wheel has nojit on PATH, as it was packed" cmp "$nojit" "$binary"
succeeds "the installed wheel has the man page" cmp "$scratch/env/share/man/man1/nojit.1" "$scratch/a/nojit.1"
mkdir "$scratch/driver" "$scratch/elsewhere"
cp "$build/sim/libcuda.so.1" "$scratch/driver/"
ln -s "$nojit" "$scratch/elsewhere/nojit" # as pipx and uv put it on PATH
found() { # COMMAND: cuBLASLt of the environment is used, though nothing names the environment
    env -i "LD_LIBRARY_PATH=$scratch/driver" NOJIT_SIM_DEVICE=h100 NOJIT_SELF_TEST=off "$1" doctor >"$scratch/doctor" 2>&1 || true
    grep -E "cuBLASLt: $scratch/env/bin/\.\./lib/python3[^/]*/site-packages/nvidia/cu13/lib/libcublasLt.so.13: .*, used" "$scratch/doctor" ||
        { cat "$scratch/doctor" && return 1; }
}
succeeds "nojit of the wheel finds cuBLASLt of its environment" found "$nojit"
succeeds "nojit of the wheel finds cuBLASLt when called by a link" found "$scratch/elsewhere/nojit"
trains() {
    local n=(env -i "HOME=$scratch" "$nojit")
    "${n[@]}" init --preset nojit-tiny --out "$scratch/tiny" && "${n[@]}" train --student "$scratch/tiny" --data LICENSE --device cpu \
        --seq-len 16 --batch-size 1 --steps 1 --out "$scratch/run" && [ -s "$scratch/run/model.safetensors" ]
}
succeeds "nojit of the wheel trains with no Python on PATH" trains
removed() { "${pip[@]}" uninstall -q -y nojit && [ ! -e "$nojit" ] && [ ! -e "$scratch/env/share/man/man1/nojit.1" ]; }
succeeds "pip removes the wheel" removed
finish
