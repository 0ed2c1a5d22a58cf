#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# deb.sh BUILD CPACK - makes the Debian package of the build, and looks into it. Ends with 77, which ctest takes for skipped,
# without dpkg-deb.
set -euo pipefail
build=$1 cpack=$2

if ! command -v dpkg-deb >/dev/null; then
  echo "no dpkg-deb here"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Compressing takes a minute, and what the libraries are called is Debian's to find: this is about the files.
log=$("$cpack" --config "$build/CPackConfig.cmake" -G DEB -B "$work" -D CPACK_DEBIAN_COMPRESSION_TYPE=none \
  -D CPACK_DEBIAN_PACKAGE_SHLIBDEPS=OFF 2>&1) || { echo "$log"; exit 1; }
packages=("$work"/curtail_*.deb)
if ((${#packages[@]} != 1)) || [[ ! -s ${packages[0]} ]]; then
  printf 'not one package:\n%s\n' "$log"
  exit 1
fi
[[ $(dpkg-deb --field "${packages[0]}" Package) == curtail ]]
dpkg-deb --extract "${packages[0]}" "$work/root"
"$(dirname "$0")/expect_files.sh" "$work/root/usr"
# All of it lies below /usr, and runs there.
[[ $(ls "$work/root") == usr ]] || { ls "$work/root"; exit 1; }
"$work/root/usr/bin/curtail" --version
