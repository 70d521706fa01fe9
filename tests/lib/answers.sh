# SPDX-License-Identifier: Apache-2.0
#
# answers.sh: sourced by scripts that look into answers.bin of a checkpoint.
#
# A line per answer: what the student reads before it, what the teacher reads, its tokens; ids with a comma between them.
answers() { # FILE
    local S rows
    S=$(od -An -td8 -j8 -N8 "$1" | tr -d ' ') rows=$(od -An -td8 -j16 -N8 "$1" | tr -d ' ')
    od -An -v -td4 -w4 -j48 "$1" | awk -v S="$S" -v n=$((rows * S)) '
        { v[NR - 1] = $1 }
        function put(text, id) { return text (text == "" ? "" : ",") id }
        END {
            ids = 0; target = n; start = 3 * n; teacher = 4 * n; begins = 6 * n; reads = 7 * n
            for (i = 0; i < n; i++) {
                if (v[target + i] == -100) continue
                row = i - i % S
                if (i > row && v[target + i - 1] != -100 && v[start + i - 1] == v[start + i]) {
                    said = put(said, v[target + i])
                    continue
                }
                if (said != "") print prompt, context, said
                prompt = context = ""; said = v[target + i]
                for (k = row + v[start + i]; k <= i; k++) prompt = put(prompt, v[ids + k])
                at = row + v[reads + i]
                for (k = row + v[begins + at]; k <= at; k++) context = put(context, v[teacher + k])
            }
            if (said != "") print prompt, context, said
        }' | sort
}
