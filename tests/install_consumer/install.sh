#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# install.sh BUILD SOURCE PREFIX - installs a build of the tree at SOURCE into the folder PREFIX, and nothing else is there.
set -euo pipefail
build=$1 source=$2 prefix=$3

rm -rf "$prefix"
mkdir -p "$prefix"
log=$(cmake --install "$build" --prefix "$prefix" 2>&1) || { echo "$log"; exit 1; }
# Headers must come from the prefix: a path into the source tree would hide one that was not installed.
if grep -rn "$source" "$prefix/lib" --include='*.cmake'; then
  echo "the installed package refers to the source tree"
  exit 1
fi
