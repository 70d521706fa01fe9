# SPDX-License-Identifier: Apache-2.0
#
# awk -v entry=NAME -f kernel.awk UNIT.ptx: the PTX of one kernel of a translation unit. A static shared variable that several kernels
# use is declared before all of them; it becomes this kernel's own, as if it had been compiled by itself, or is left out.
/^\.visible \.entry / { inside = 1; mine = $3 == entry "("; depth = 0 }
!inside && /^\.shared / {
    name = $NF
    sub(/[[;].*/, "", name)
    shared[name] = $0
    order[++count] = name
    next
}
!inside && !/^\t\/\/ \.globl/ { print }
inside && mine { line[++lines] = $0 }
{
    depth += gsub(/{/, "") - (closed = gsub(/}/, ""))
    if (closed && !depth) inside = 0
}

# uses NAME: whether a line of the kernel has it.
function uses(name, i) {
    for (i = 1; i <= lines; i++)
        if (index(line[i], name)) return 1
    return 0
}
END {
    for (i = 1; i <= lines; i++) {
        print line[i]
        if (line[i] != "{" || declared++) continue
        for (n = 1; n <= count; n++)
            if (uses(order[n])) print "\t" shared[order[n]]
    }
}
