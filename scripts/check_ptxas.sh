#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check_ptxas.sh BUILD RELEASE...: assembles the PTX of each kernel (BUILD/ptx) by each release of ptxas, at -O1 and -O3, and prints how registers, spills, barriers
# and instructions differ. A RELEASE is the path of a ptxas, or a version of scripts/ptxas-releases.txt, fetched by hash into BUILD/ptxas. The first one is what
# the others are held against. Kernels and numbers of all runs are left in BUILD/ptxas-check/records.tsv.
#
#   ARCHS="sm_120 sm_121"   default: those of BUILD      KEYS='attn_*'   kernels      LEVELS="1 3"
#   NVDISASM=FILE           a nvdisasm; else on PATH, or that of scripts/ptxas-releases.txt; none: instructions are not counted
#
# Exit status: 0 nothing stands out; 1 a release fails to assemble a kernel, spills more bytes than the first, or has a kernel without the MMAs or the barriers that
# another has; 2 usage.
set -u
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
die() {
    echo "check_ptxas: $1" >&2
    exit 2
}

# one RELEASE PTXAS LEVEL PTX: a line of records.tsv. In a process of its own, many at a time.
if [ "${1:-}" = --one ]; then
    stem=${5##*/} stem=${stem%.ptx}
    arch=${stem##*.}
    out=$(mktemp -d)
    trap 'rm -rf "$out"' EXIT
    if ! "$3" -v -O"$4" -arch="$arch" -o "$out/cubin" "$5" >"$out/log" 2>&1; then
        printf '%s\t%s\t%s\t%s\tfailed\t%s\n' "$2" "$4" "$arch" "${stem%.*}" "$(grep -m 1 . "$out/log" | tr '\t' ' ' | cut -c1-200)"
        exit
    fi
    if [ -n "$NVDISASM" ]; then "$NVDISASM" "$out/cubin" >"$out/sass" 2>/dev/null || : >"$out/sass"; else : >"$out/sass"; fi
    awk -v head="$2	$4	$arch	${stem%.*}" '
        FNR == 1 { file++ }
        file == 1 && /bytes stack frame/ { stack += $1; spills += $5 + $9 }
        file == 1 && /Used [0-9]+ registers/ {
            registers = $0; sub(/.*Used /, "", registers); registers += 0
            if (sub(/.*used /, "")) barriers = $0 + 0
        }
        file == 2 && /^[ \t]*\/\*[0-9a-f]+\*\/[ \t]/ {
            sub(/^[ \t]*\/\*[0-9a-f]+\*\/[ \t]*/, "")
            sub(/^@!?U?P[0-9T]+ /, "")
            op = $1
            sub(/[.;].*/, "", op)
            all++
            if (op ~ /MMA$/) mma++
            else if (op ~ /^(BAR|B2R|SYNCS|UCGABAR|WARPSYNC|BARRIER)/) bar++
            else if (op ~ /^(LD|ST|ATOM|RED|UBLK|UTMA|LDGSTS|CCTL)/ && op !~ /^(LDS|STS|LDSM|STSM|LDC|STL|LDL)$/) global++
            else if (op ~ /^(LDS|STS|LDSM|STSM|ATOMS)$/) shared++
            else if (op ~ /^(STL|LDL)$/) locals++
            else if (op ~ /^(FFMA|FMUL|FADD|HFMA|HMUL|HADD|DFMA|MUFU|FSETP|FSEL|FMNMX)/) float++
        }
        END { printf "%s\tok\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", head, registers, spills, stack, barriers, all, mma, bar, global, shared, locals, float }
    ' "$out/log" "$out/sass"
    exit
fi

case " $* " in *" --help "* | *" -h "*) sed -n '4,/^set /s/^# \{0,1\}//p' "$0" && exit ;; esac
build=${1:-}
[ $# -ge 2 ] || die "usage: check_ptxas.sh BUILD RELEASE...; a release is a path or one of: $(sed -n 's/^nvidia-cuda-nvcc==\([0-9.]*\) .*/\1/p' "$here/ptxas-releases.txt" | tr '\n' ' ')"
shift
[ -d "$build/ptx" ] || die "$build/ptx is not there; \`make\` writes it"
: "${ARCHS:=$(cut -f1 "$build/gen/archs.txt" | tr '\n' ' ')}" "${KEYS:=*}" "${LEVELS:=1 3}" "${NVDISASM:=$(command -v nvdisasm || true)}"

# fetch PACKAGE VERSION PROGRAM: prints the path of it, from a wheel whose hash is in ptxas-releases.txt. fatbinary comes along, for tests.
fetch() {
    local at=$build/ptxas/$2
    if [ ! -x "$at/bin/$3" ]; then
        mkdir -p "$at/bin" && grep "^$1==$2 " "$here/ptxas-releases.txt" >"$at/wheel.txt" || die "$1 $2: neither a file nor in scripts/ptxas-releases.txt"
        python3 -m pip download -q --no-deps --only-binary=:all: --require-hashes -d "$at" -r "$at/wheel.txt" >"$at/log" 2>&1 ||
            die "$1 $2 could not be fetched, or its hash differs: $(tail -n 1 "$at/log")"
        python3 - "$at" "$3" fatbinary <<'END' || die "$1 $2 cannot be unpacked"
import glob, os, sys, zipfile
wheel = zipfile.ZipFile(glob.glob(sys.argv[1] + "/*.whl")[0])
for name in wheel.namelist():
    path = sys.argv[1] + "/bin/" + os.path.basename(name)
    if name.split("/")[-2:-1] == ["bin"] and os.path.basename(name) in sys.argv[2:] and not os.path.exists(path):
        with open(path, "wb") as file:
            file.write(wheel.read(name))
        os.chmod(path, 0o755)
END
        rm -f "$at"/*.whl
        [ -x "$at/bin/$3" ] || die "$1 $2 holds no $3"
    fi
    echo "$at/bin/$3"
}
version_of() { "$1" --version 2>/dev/null | sed -n 's/.*, V\([0-9.]*\).*/\1/p'; }

releases=() programs=()
for r; do
    program=$r
    if [ ! -x "$r" ]; then program=$(fetch nvidia-cuda-nvcc "$r" ptxas) || exit 2; fi
    version=$(version_of "$program")
    [ -n "$version" ] || die "$program does not say its version; is it a ptxas?"
    releases+=("$version") programs+=("$program")
done
if [ -z "$NVDISASM" ]; then
    r=$(sed -n 's/^nvidia-cuda-nvdisasm==\([0-9.]*\) .*/\1/p' "$here/ptxas-releases.txt")
    NVDISASM=$(fetch nvidia-cuda-nvdisasm "$r" nvdisasm) || NVDISASM=
fi
export NVDISASM

out=$build/ptxas-check
mkdir -p "$out"
jobs() {
    local a f i l
    for a in $ARCHS; do
        for f in "$build"/ptx/$KEYS."$a".ptx; do
            [ -f "$f" ] || continue
            for i in "${!releases[@]}"; do
                for l in $LEVELS; do printf '%s %s %s %s\n' "${releases[i]}" "${programs[i]}" "$l" "$f"; done
            done
        done
    done
}
jobs >"$out/jobs"
[ -s "$out/jobs" ] || die "$build/ptx has no kernel $KEYS for $ARCHS"
echo "$(wc -l <"$out/jobs") runs of ptxas (${releases[*]}), instructions by ${NVDISASM:-nothing: there is no nvdisasm}" >&2
xargs -P "$(nproc)" -L 1 "$0" --one <"$out/jobs" | sort >"$out/records.tsv"

awk -F'\t' -v first="${releases[0]}" -v order="${releases[*]}" -v archs="$ARCHS" -v levels="$LEVELS" -v counted="${NVDISASM:+1}" '
    function fault(text) { faults[++bad] = text }
    function percent(a, b) { return b ? sprintf("%+.1f %%", 100 * (a - b) / b) : "" }
    # Report a kernel that has none of what it has in another run.
    function lost(what, at, value, most) { if (most > 0 && value == 0) fault(at ": has no " what ", and another run has " most) }
    {
        at = $1 SUBSEP $2 SUBSEP $3
        key = $3 SUBSEP $4
        runs[at]++
        if ($5 != "ok") { failed[at]++; fault($4 " " $3 ", " $1 " -O" $2 ": does not assemble: " $6); next }
        row[at, $4] = NR
        keys[$4]
        registers[NR] = $6; spills[NR] = $7; barriers[NR] = $9; all[NR] = $10; mma[NR] = $11; bar[NR] = $12
        for (i = 6; i <= 16; i++) total[at, i] += $i
        spilling[at] += $7 > 0
        if ($11 > most_mma[key]) most_mma[key] = $11
        if ($12 > most_bar[key]) most_bar[key] = $12
        if ($9 > most_barriers[key]) most_barriers[key] = $9
    }
    END {
        n = split(order, release, " "); split(archs, arch, " "); split(levels, level, " ")
        printf "%-8s %-3s %-10s %7s %9s %8s %8s %8s %9s %7s %7s %8s %8s %8s\n", "arch", "-O", "ptxas", "kernels", "registers", "spilling", "bytes", "barriers",
            "instr.", "MMA", "sync", "global", "shared", "float"
        for (a = 1; a in arch; a++) for (l = 1; l in level; l++) for (r = 1; r <= n; r++) {
            at = release[r] SUBSEP level[l] SUBSEP arch[a]
            if (!(at in runs)) continue
            printf "%-8s %-3s %-10s %7d %9d %8d %8d %8d %9s %7s %7s %8s %8s %8s\n", arch[a], level[l], release[r], runs[at] - failed[at], total[at, 6], spilling[at], total[at, 7],
                total[at, 9], counted ? total[at, 10] : "-", counted ? total[at, 11] : "-", counted ? total[at, 12] : "-", counted ? total[at, 13] : "-",
                counted ? total[at, 14] : "-", counted ? total[at, 16] : "-"
        }
        for (k in keys) for (a = 1; a in arch; a++) for (l = 1; l in level; l++) for (r = 1; r <= n; r++) {
            at = release[r] SUBSEP level[l] SUBSEP arch[a]
            mine = row[at, k]
            if (!mine) continue
            name = k " " arch[a] ", " release[r] " -O" level[l]
            lost("MMA", name, mma[mine], most_mma[arch[a], k])
            lost("synchronisation", name, bar[mine], most_bar[arch[a], k])
            lost("barrier", name, barriers[mine], most_barriers[arch[a], k])
            ours = row[first SUBSEP level[l] SUBSEP arch[a], k]
            if (!ours || ours == mine) continue
            if (spills[mine] > spills[ours]) fault(name ": spills " spills[mine] " bytes, " first " " spills[ours])
            if (barriers[mine] < barriers[ours]) fault(name ": uses " barriers[mine] " barriers, " first " " barriers[ours])
            if (registers[mine] - registers[ours] > 16 || registers[ours] - registers[mine] > 16 || all[mine] > 1.25 * all[ours] || all[mine] < 0.8 * all[ours] ||
                mma[mine] != mma[ours])
                differ[++differing] = sprintf("%s: registers %d -> %d, instructions %d -> %d (%s), MMA %d -> %d", name, registers[ours], registers[mine],
                    all[ours], all[mine], percent(all[mine], all[ours]), mma[ours], mma[mine])
        }
        printf "\n%d runs differ from those of %s by more than 16 registers, a quarter of the instructions, or in MMAs\n", differing, first
        for (i = 1; i <= differing; i++) print "  " differ[i] | "sort"
        close("sort")
        printf "%d faults\n", bad
        for (i = 1; i <= bad; i++) print "  " faults[i] | "sort"
        close("sort")
        exit bad > 0
    }' "$out/records.tsv"
