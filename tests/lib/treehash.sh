#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# treehash.sh: a hash over what programs and tests are made of. The record of a run on a GPU holds it, so that a copy without git,
# on another machine, can say which tree it was.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/../.."
find Makefile mk base contracts gen kernels runtime scripts tests tools trainer -type f ! -name '*.pyc' -print0 | sort -z |
    xargs -0 sha256sum | sha256sum | cut -c 1-16
