#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh BUILD SOURCE COMPILER - installs the build into a new folder, builds the consumer against it, runs both of its
# programs. Leaves neither files nor processes.
set -euo pipefail
build=$1 source=$2 compiler=$3

work=$(mktemp -d)
server=
cleanup() {
  if [[ -n $server ]]; then kill -KILL "$server" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap cleanup EXIT

cmake --install "$build" --prefix "$work/prefix" >"$work/install.log" || { cat "$work/install.log"; exit 1; }
# Headers must come from the prefix: a path into the source tree would hide one that was not installed.
if grep -rn "$(dirname "$(dirname "$source")")" "$work/prefix/lib" --include='*.cmake'; then
  echo "the installed package refers to the source tree"
  exit 1
fi
cmake -S "$source" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/configure.log" || { cat "$work/configure.log"; exit 1; }
cmake --build "$work/build"

"$work/build/greet_self"

# The program of the README: listens, ends with 0 on SIGTERM.
mkfifo "$work/stdout"
"$work/build/greeter" --listen 127.0.0.1:0 --config SIB1 >"$work/stdout" &
server=$!
exec 3<"$work/stdout"
if ! read -r -t 10 -u 3 line || [[ $line != *127.0.0.1:* ]]; then
  echo "greeter did not say where it listens: ${line-}"
  exit 1
fi
kill -TERM "$server"
code=0
wait "$server" || code=$?
server=
echo "greeter: \"$line\", exit code $code after SIGTERM"
exit "$code"
