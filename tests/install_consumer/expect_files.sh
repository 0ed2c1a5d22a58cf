#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# expect_files.sh PREFIX - all that an installation promises lies below PREFIX, and nothing where it is in the way.
set -euo pipefail
prefix=$1

lacks() {
  echo "$1 is not installed"
  exit 1
}
for file in bin/curtail bin/curtail-gateway bin/protoc-gen-curtail; do
  [[ -x $prefix/$file ]] || lacks "$file"
done
for application in bank fanout hdsearch media recommend router setalgebra shop social; do
  [[ -x $prefix/libexec/curtail/$application ]] || lacks "libexec/curtail/$application"
  [[ -s $prefix/share/curtail/$application/topology.yaml ]] || lacks "share/curtail/$application/topology.yaml"
  if [[ -e $prefix/bin/$application ]]; then
    echo "bin/$application is installed where it is in the way"
    exit 1
  fi
done
for file in man/man1/curtail.1 bash-completion/completions/curtail zsh/site-functions/_curtail \
  fish/vendor_completions.d/curtail.fish; do
  [[ -s $prefix/share/$file ]] || lacks "share/$file"
done
for file in 'pkgconfig/curtail.pc' 'cmake/curtail/curtailConfig.cmake' 'cmake/curtail/curtailConfigVersion.cmake' \
  'cmake/curtail/curtail-targets.cmake' 'libcurtail_rpc.a'; do
  [[ -n $(find "$prefix/lib" -path "*/$file" -size +0) ]] || lacks "lib/$file"
done
[[ -x $prefix/share/curtail/image_root.py ]] || lacks share/curtail/image_root.py
[[ -s $prefix/include/curtail/rpc/server_main.h ]] || lacks include/curtail/rpc/server_main.h
