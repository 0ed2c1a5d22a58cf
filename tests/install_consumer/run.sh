#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh PREFIX TREE COMPILER - builds the consumer against the curtail installed at PREFIX, by CMake and by pkg-config, and
# runs its programs. Compiles a part of it with the sources at TREE, too. Leaves neither files nor processes.
set -euo pipefail
prefix=$1 tree=$2 compiler=$3
source=$tree/tests/install_consumer
quick=(-DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=)  # without debug information: in three quarters of the time

work=$(mktemp -d)
export CCACHE_BASEDIR=$work CCACHE_NOHASHDIR=1  # the folder has another name each time
server=
cleanup() {
  if [[ -n $server ]]; then kill -KILL "$server" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap cleanup EXIT

cmake -S "$source" -B "$work/build" -G Ninja "${quick[@]}" -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_PREFIX_PATH="$prefix" >"$work/configure.log" || { cat "$work/configure.log"; exit 1; }
cmake --build "$work/build"

"$work/build/greet_self"

# A makefile gets the same flags from pkg-config.
export PKG_CONFIG_PATH
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name curtail.pc)")
gen=$work/build/gen
# shellcheck disable=SC2046  # flags are words
"$compiler" -I "$gen" "$source/greet_self.cc" "$gen"/greeter.*.cc $(pkg-config --cflags --libs curtail) -o "$work/by_pkg_config"
"$work/by_pkg_config"

# FetchContent: all that the consumer links is found in its own folder, too. Built are the plug-in, what curtail_proto() makes of
# the .proto, and the object of a program that includes that: 12 s of a CPU. The build's rules make them wait for all of the
# library, 370 s, so their commands run here without the wait. No program is linked.
fetched=$work/fetched
cmake -S "$source" -B "$fetched" -G Ninja -DCURTAIL_SOURCE="$tree" \
  -DCMAKE_CXX_COMPILER="$compiler" >"$work/configure.log" 2>&1 || { cat "$work/configure.log"; exit 1; }
cmake --build "$fetched" --target protoc-gen-curtail
objects=(CMakeFiles/{greeter_proto.dir/gen/greeter.pb,greeter_proto.dir/gen/greeter.curtail,greet_self.dir/greet_self}.cc.o)
for output in gen/greeter.curtail.cc "${objects[@]}"; do
  own=$(ninja -C "$fetched" -t commands -s "$output")
  (cd "$fetched" && eval "$own")
  [[ -s $fetched/$output ]] || { echo "$output was not made by: $own"; exit 1; }
done

# A service that was not made from the command line takes nothing of it.
for argument in --leaf word; do
  code=0
  "$work/build/greeter" "$argument" 127.0.0.1:1 2>"$work/stderr" || code=$?
  if ((code != 104)) || ! grep -q -- "$argument: unknown flag" "$work/stderr"; then
    echo "greeter $argument: exit code $code, not 104: $(<"$work/stderr")"
    exit 1
  fi
done

# The installed command finds the installed applications, whatever lies elsewhere.
command=(env -u CURTAIL_PATH XDG_RUNTIME_DIR="$work" PATH=/usr/bin:/bin "$prefix/bin/curtail")
"${command[@]}" up hdsearch --detach --set data=synthetic:N=500,D=8 --set leaf.shards=1
"${command[@]}" switch hdsearch FIB1
"${command[@]}" logs hdsearch mid-tier >"$work/log"
"${command[@]}" down hdsearch
grep -q "$prefix/libexec/curtail/hdsearch --service mid-tier" "$work/log" || { cat "$work/log"; exit 1; }
"$(dirname "$0")/expect_files.sh" "$prefix"

# An application that `curtail new` writes builds, serves and is loaded, by the installation alone.
cd "$work"
export PATH=$prefix/bin:$PATH XDG_RUNTIME_DIR=$work CCACHE_BASEDIR=$work/kiosk
curtail new kiosk --services front,order-book,stock
if curtail new kiosk 2>"$work/stderr" || ! grep -q "kiosk is there already" "$work/stderr"; then
  echo "curtail new does not keep what is there: $(<"$work/stderr")"
  exit 1
fi
cmake -S kiosk -B kiosk/build -G Ninja "${quick[@]}" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$prefix" \
  >"$work/configure.log" || { cat "$work/configure.log"; exit 1; }
cmake --build kiosk/build
ctest --test-dir kiosk/build --output-on-failure
curtail up ./kiosk/topology.yaml --detach
python3 - <<'EOF'
import json, subprocess, urllib.request
processes = json.loads(subprocess.check_output(["curtail", "ps", "kiosk", "--json"]))[0]["processes"]
url = "http://" + next(p["address"] for p in processes if p["name"] == "gateway")
assert b"app.js" in urllib.request.urlopen(url + "/", timeout=20).read()
ask = urllib.request.Request(url + "/v1/answers", b'{"text": "cocoa"}', {"content-type": "application/json"})
answers = [json.load(urllib.request.urlopen(ask, timeout=20))["parts"][1] for _ in range(2)]
assert answers == ["stock: cocoa, asked 1 times", "stock: cocoa, asked 2 times"], answers
EOF
curtail down kiosk
curtail render ./kiosk/topology.yaml --to kubernetes >"$work/manifests.yaml"
grep -q 'name: kiosk-order-book' "$work/manifests.yaml"

# The files of its image are all that its programs take, which run there as the image's user. The Dockerfile runs them so, too.
diff <(sed -n '/^ENV/,$p' kiosk/Dockerfile) <(sed -n '/^ENV/,$p' "$tree/deploy/Dockerfile")
grep -qx /build kiosk/.dockerignore
python3 -B "$prefix/share/curtail/image_root.py" kiosk/topology.yaml "$work/image"
grep -q '"name": "libprotobuf' "$work/image/usr/share/sbom/kiosk.spdx.json"
enter=(chroot --userspec=10001:10001)
if ((EUID != 0)); then enter=(unshare --map-root-user chroot); fi
inside=(env -i PATH=/usr/local/bin:/usr/bin:/usr/sbin HOME=/data "${enter[@]}" "$work/image")
mkfifo "$work/ready"
"${inside[@]}" kiosk --service stock --data /data --listen unix:/tmp/stock.sock >"$work/ready" &
server=$!
exec 4<"$work/ready"
if ! read -r -t 20 -u 4 line || [[ $line != *"unix:/tmp/stock.sock"* ]]; then
  echo "kiosk did not say in its image where it listens: ${line-}"
  exit 1
fi
"${inside[@]}" curtail load unix:/tmp/stock.sock --method kiosk.Stock/Look --data '{"text": "tea"}' --debug | grep 'stock: tea, asked 1 times'
"${inside[@]}" curtail-gateway --version
kill -TERM "$server"
wait "$server"
server=
[[ -s $work/image/data/stock.db ]] || { ls -l "$work/image/data"; exit 1; }

# A policy of the program's own stands beside the library's, and is made before the server starts.
if [[ $("$work/build/greeter_two_step" --help) != *two-step:LOW,HIGH* ]]; then
  echo "greeter_two_step --help does not name its policy"
  exit 1
fi
code=0
"$work/build/greeter_two_step" --policy two-step:SIB1 2>"$work/stderr" || code=$?
if ((code != 104)) || ! grep -q 'two-step:SIB1": needs two configs' "$work/stderr"; then
  echo "greeter_two_step --policy two-step:SIB1: exit code $code, not 104: $(<"$work/stderr")"
  exit 1
fi

# The program of the README: listens, ends with 0 on SIGTERM.
mkfifo "$work/stdout"
"$work/build/greeter" --listen 127.0.0.1:0 >"$work/stdout" &
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
