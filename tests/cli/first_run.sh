#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# first_run.sh: scripts/first-run.sh packs what each step said, goes on after one that fails, says that there is no GPU, and
# leaves out names of host, user and folders. On the CPU and on a simulated GPU, with small models; the self-test, which takes long there, is a
# script's.
set -eu
. tests/lib/lib.sh
export OMP_WAIT_POLICY=passive XDG_CACHE_HOME=$scratch/cache
script=$PWD/scripts/first-run.sh
# A home, a host and a user of names that stand out; id and hostname are asked for them.
mkdir -p "$scratch/bin" "$scratch/home/alicia" "$scratch/tmp"
printf '#!/bin/sh\necho carrot-17\n' >"$scratch/bin/hostname"
printf '#!/bin/sh\necho alicia\n' >"$scratch/bin/id"
chmod +x "$scratch"/bin/*
cat >"$scratch/home/alicia/nojit" <<END
#!/bin/bash
case " \$* " in
*" doctor "*" --self-test --report "*) echo "{\"verdict\": \"passed\", \"seen\": \"$scratch/home/alicia\"}" >"\${*: -1}" && exec echo "passed on Carrot-17" ;;
*" doctor "*) [ "\${NOJIT_SELF_TEST:-}\${SICK:-}" != sick ] || { echo "nojit doctor: fails the self-test of its kernels" >&2 && exit 1; } ;;
*" generate "*) [ "\${SICK:-}" != mute ] || { echo "nojit generate: a fault of /home/alicia/x on carrot-17" >&2 && exit 1; } ;;
esac
exec "$(realpath "$BUILD/nojit")" "\$@"
END
chmod +x "$scratch/home/alicia/nojit"
unset=()
first_run() { # SETTING=VALUE... ARCHIVE
    got=0
    (cd "$scratch/home/alicia" &&
        env "${unset[@]}" PATH="$scratch/bin:$PATH" HOME="$scratch/home/alicia" USER=alicia LOGNAME=alicia TMPDIR="$scratch/tmp" NOJIT="$scratch/home/alicia/nojit" DEVICE=cpu \
            SMALL='nojit-tiny nojit-tiny' PAIR='nojit-tiny nojit-tiny' STEPS=4 NEEDED_MB=1 ROWS='distill:1x32' "${@:1:$#-1}" "$script" "${@: -1}") \
        >"$scratch/log" 2>&1 || got=$?
    rm -rf "$scratch/nojit-first-run"
    if [ -e "$scratch/home/alicia/${*: -1}" ]; then tar -xzf "$scratch/home/alicia/${*: -1}" -C "$scratch"; fi
}
packed() { cat "$scratch/nojit-first-run/$1" 2>/dev/null; }

first_run one.tar.gz
ok_if "first-run.sh ends with 0 where all steps pass" "$(tail -n 4 "$scratch/log")" [ $got = 0 ]
ok_if "the summary of a first run names each step" "$(packed summary.txt)" \
    [ "$(packed summary.txt | grep -cE '^(the machine|doctor|the self-test|a small run|random weights for the rows|row distill:1x32) +passed ')" = 6 ]
ok_if "a first run's row has its tokens per second" "$(packed summary.txt)" grep -qE '^row distill:1x32 .* [1-9][0-9]* tokens/s' <<<"$(packed summary.txt)"
ok_if "a first run holds receipts and metrics" "$(ls "$scratch/nojit-first-run")" \
    [ "$(packed small-run-receipt.json | grep -c '"compilations"')$(packed row-distill-1x32-metrics.jsonl | wc -l)" = 112 ]
private() { tar -xzOf "$scratch/home/alicia/one.tar.gz" | grep -iE "alicia|carrot-17|$scratch/(home|tmp)"; }
ok_if "a first run names neither host nor user nor their folders" "$(private | head -n 3)" [ -z "$(private)" ]
ok_if "a first run leaves nothing but its archive" "$(ls "$scratch/tmp" "$scratch/home/alicia")" \
    [ "$(cd "$scratch/tmp" && ls)$(cd "$scratch/home/alicia" && ls | tr '\n' ' ')" = "nojit one.tar.gz " ]

# A program whose generation fails: the rows come after it.
first_run SICK=mute two.tar.gz
ok_if "first-run.sh ends with 1 where a step fails" "$got" [ $got = 1 ]
ok_if "the summary of a first run says which step failed and why" "$(packed summary.txt)" \
    grep -q '^a small run .*FAILED .* nojit generate: a fault of /home/USER/x on \*\*\*$' <<<"$(packed summary.txt)"
ok_if "a first run goes on after a step that fails" "$(packed summary.txt)" grep -q '^row distill:1x32 .*passed' <<<"$(packed summary.txt)"

unset=(-u NOJIT_SELF_TEST)
first_run SICK=sick five.tar.gz
unset=()
ok_if "a first run goes on where doctor refuses a device that fails its self-test" "$got: $(packed summary.txt)" \
    [ "$got $(packed summary.txt | grep -c '^doctor .*FAILED .*fails the self-test') $(packed summary.txt | grep -cE '^(the self-test|a small run|row distill:1x32) .* passed ')" = "1 1 3" ]
ok_if "a first run holds the report of the self-test" "$(ls "$scratch/nojit-first-run")" grep -q '"verdict": "passed"' "$scratch/nojit-first-run/self-test.json"

# A simulated GB10.
first_run DEVICE=cuda LD_LIBRARY_PATH="$(realpath "$BUILD")/sim" NOJIT_CUBLASLT="$(realpath "$BUILD")/sim" NOJIT_SIM_DEVICE=gb10 NOJIT_SIM_LOG="$scratch/sim.log" SHAPE=1x32 \
    ROWS='distill:1x32 fp8:1x32' four.tar.gz
ok_if "the steps of a first run pass on a simulated GPU, but for a row that it cannot do" "$got $(packed summary.txt)" \
    [ "$got $(packed summary.txt | grep -c ' passed ') $(packed summary.txt | grep -c '^row fp8:1x32 .* FAILED .* --student-dtype fp8: ')" = "1 6 1" ]
ok_if "a first run on a GPU says what doctor said of it, and counts no compilation" "$(packed small-run.txt | tail -n 2)" \
    [ "$(packed doctor.txt | grep -c '^gpu .*GB10')$(packed small-run.txt | grep -c ', compilations 0$')" = 11 ]

first_run DEVICE=cuda three.tar.gz # the driver is hidden
ok_if "first-run.sh without a GPU ends with 4 and says so" "$got: $(cat "$scratch/log")" \
    [ "$got $(grep -c 'there is no device that nojit can use: nojit doctor: .*driver' "$scratch/log")" = "4 1" ]
ok_if "a first run without a GPU holds what doctor said" "$(packed summary.txt)" grep -q 'the NVIDIA driver is not here' <<<"$(packed doctor.txt)"

refuses "first-run.sh refuses an archive that is there" 2 'one.tar.gz is there already' env NOJIT="$scratch/home/alicia/nojit" "$script" "$scratch/home/alicia/one.tar.gz"
refuses "first-run.sh refuses a row of no kind" 2 'ROWS: train:1x32 is not' env NOJIT="$scratch/home/alicia/nojit" ROWS=train:1x32 "$script" "$scratch/none.tar.gz"
refuses "first-run.sh refuses to run without a program" 2 'there is no nojit at NOJIT=/nonexistent' env NOJIT=/nonexistent "$script" "$scratch/none.tar.gz"
ok_if "a first run that is refused leaves no file" "$(ls "$scratch")" [ -z "$(find "$scratch" -maxdepth 1 -name 'none.tar.gz*')" ]
finish
