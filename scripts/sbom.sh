#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# sbom.sh NOJIT ARCHIVE...: the SPDX 2.3 document (JSON) of a binary: itself, each library that is linked statically, and the compilers,
# as `nojit version --verbose` names them. Fails if that lacks an archive, or names one that is not linked. $EMULATOR runs programs of
# another machine, $SOURCE_DATE_EPOCH (default 0) is the date of the document. Same inputs, same bytes.
set -eu
export LC_ALL=C
nojit=${1:?usage: sbom.sh NOJIT ARCHIVE...}
shift
said=$(${EMULATOR:-} "$nojit" version --verbose)
named=$(sed -n 's/^library   lib\([^ ]*\) .*/\1/p' <<<"$said" | sort)
linked=$(printf '%s\n' "$@" gcc | sort)
[ "$named" = "$linked" ] || {
    echo "sbom: trainer/cli/libraries.c names" $named "and mk/trainer.mk links" $linked >&2
    exit 1
}
sum=$(sha256sum <"$nojit")
awk -v sum="${sum%% *}" -v created="$(date -u -d "@${SOURCE_DATE_EPOCH:-0}" +%Y-%m-%dT%H:%M:%SZ)" '
    function package(name, version, licence, purpose, more) {
        packages = packages sep "    {\"SPDXID\": \"SPDXRef-" name "\", \"name\": \"" name "\", \"versionInfo\": \"" version "\"," \
            " \"primaryPackagePurpose\": \"" purpose "\",\n     \"downloadLocation\": \"NOASSERTION\", \"filesAnalyzed\": false," \
            " \"copyrightText\": \"NOASSERTION\",\n" more \
            "     \"licenseConcluded\": \"" licence "\", \"licenseDeclared\": \"" licence "\"}"
    }
    function relation(from, type, to) {
        relations = relations sep "    {\"spdxElementId\": \"SPDXRef-" from "\", \"relationshipType\": \"" type "\"," \
            " \"relatedSpdxElement\": \"SPDXRef-" to "\"}"
        sep = ",\n"
    }
    function tool(name, version) {
        package(name, version, "NOASSERTION", "APPLICATION")
        relation(name, "BUILD_TOOL_OF", "nojit")
    }
    $1 == "binary" {
        version = substr($3, 1, length($3) - 1)
        package("nojit", version, "Apache-2.0", "APPLICATION", \
            "     \"checksums\": [{\"algorithm\": \"SHA256\", \"checksumValue\": \"" sum "\"}],\n")
        relation("DOCUMENT", "DESCRIBES", "nojit")
        assemblers = $0 # "ptxas 13.0.88, 13.3.73 for sm_120 sm_121"
        sub(/.* of machine code by /, "", assemblers)
        sub(/;.*/, "", assemblers)
        n = split(assemblers, part, ", ")
        for (i = 1; i <= n; i++) {
            split(part[i], word, " ")
            if (i == 1)
                tool(word[1], word[2])
            else
                tool("ptxas-" word[1], word[1])
        }
    }
    $1 == "compiler" { tool($2, $3) }
    $1 == "library" {
        licence = $0
        sub(/[^,]*, /, "", licence)
        package($2, substr($3, 1, length($3) - 1), licence, "LIBRARY")
        relation("nojit", "STATIC_LINK", $2)
    }
    END {
        id = substr(sum, 1, 8) "-" substr(sum, 9, 4) "-8" substr(sum, 14, 3) "-8" substr(sum, 18, 3) "-" substr(sum, 21, 12)
        print "{\n  \"spdxVersion\": \"SPDX-2.3\",\n  \"dataLicense\": \"CC0-1.0\",\n  \"SPDXID\": \"SPDXRef-DOCUMENT\"," \
            "\n  \"name\": \"nojit-" version "\",\n  \"documentNamespace\": \"urn:uuid:" id "\"," \
            "\n  \"creationInfo\": {\"created\": \"" created "\", \"creators\": [\"Tool: scripts/sbom.sh\"]}," \
            "\n  \"packages\": [\n" packages "\n  ],\n  \"relationships\": [\n" relations "\n  ]\n}"
    }' <<<"$said"
