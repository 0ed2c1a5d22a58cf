#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants faults in a copy of the sources, and tells which of them the tests of preset dev see.

Usage: mutants.py FILE.diff

The diff has all faults, each behind a switch of its own, FAULT(NAME), in lines that it adds to C++ files:

  -  if (held > limit) return Refuse();
  +  if (FAULT(limit_by_one) ? held > limit + 1 : held > limit) return Refuse();

So one build has them all. First all tests run without a fault, and say which switches they reach. Then each fault is on while the
tests that reach it run, the quickest first, until one fails; the same test has to pass without the fault. The exit code is 0 if
each fault was seen, else 1. The copy and its build are in build/mutants.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

AT_ONCE = len(os.sched_getaffinity(0)) + 1
SLOWEST = 20  # a test that takes this many times its time has not passed

SWITCH = """#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace planted {
inline bool On(const char* name) {
  if (const char* folder = getenv("PLANTED_REACHED"))
    close(open((std::string(folder) + "/" + name).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0666));
  const char* on = getenv("PLANTED_FAULT");
  return on != nullptr && std::string(on) == name;
}
}  // namespace planted
#define FAULT(name) ([] { static const bool on = ::planted::On(#name); return on; }())
"""


def run(*command, **options):
    return subprocess.run(command, check=True, text=True, **options)


def plant(diff, tree):
    """Copies the sources and applies the diff. Returns the file of each fault."""
    text = diff.read_text()
    files = {}
    for part in re.split(r"^diff --git .*$|^(?=--- \S)", text, flags=re.M):
        path = re.search(r"^\+\+\+ b/(\S+)", part or "", re.M)
        for name in re.findall(r"^\+.*?\bFAULT\((\w+)\)", part or "", re.M):
            assert files.setdefault(name, path[1]) == path[1], f"two files have the fault {name}"
    assert files, f"{diff} adds no FAULT(NAME)"
    listed = run("git", "ls-files", "-z", stdout=subprocess.PIPE).stdout
    tree.mkdir(parents=True, exist_ok=True)
    for path in filter(os.path.isfile, listed.split("\0")):
        copy = tree / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        if not copy.exists() or copy.read_bytes() != pathlib.Path(path).read_bytes():
            shutil.copy(path, copy)
    run("git", "apply", "--unsafe-paths", "--recount", f"--directory={tree}", str(diff))
    (tree / "tests/planted.h").write_text(SWITCH)
    for path in set(files.values()):
        source = tree / path
        source.write_text('#include "tests/planted.h"\n' + source.read_text())
    return files


class Tests:
    def __init__(self, build, reached):
        self.build, self.reached = build, reached
        listed = json.loads(run("ctest", "--test-dir", str(build), "-LE", "bench", "--show-only=json-v1",
                                stdout=subprocess.PIPE).stdout)
        self.names = [test["name"] for test in listed["tests"]]
        self.seconds = {}  # of those that pass without a fault

    def passes(self, name, timeout, **environment):
        command = ["ctest", "--test-dir", str(self.build), "--timeout", str(timeout), "-R", f"^{re.escape(name)}$"]
        return subprocess.run(command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, check=False).returncode == 0

    def learn(self, name):
        folder = self.reached / name
        folder.mkdir(parents=True)
        begun = time.monotonic()
        if self.passes(name, 900, PLANTED_REACHED=str(folder)):
            self.seconds[name] = time.monotonic() - begun
        else:
            print(f"    {name} fails without a fault: left out", flush=True)

    def that_reach(self, fault):
        reach = [name for name in self.seconds if (self.reached / name / fault).exists()]
        return sorted(reach, key=self.seconds.get)

    def judge(self, fault):
        """The test that sees a fault, or none; and how many reach it."""
        reach = self.that_reach(fault)
        for name in reach:
            timeout = int(30 + SLOWEST * self.seconds[name])
            if not self.passes(name, timeout, PLANTED_FAULT=fault) and self.passes(name, timeout):
                return name, len(reach)
        return None, len(reach)


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    root = pathlib.Path("build/mutants").resolve()
    tree, reached = root / "tree", root / "reached"
    shutil.rmtree(reached, ignore_errors=True)
    files = plant(pathlib.Path(sys.argv[1]).resolve(), tree)
    print(f"==> {len(files)} faults: build", flush=True)
    launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    run("cmake", "--preset", "dev", "--log-level=WARNING", *launcher, cwd=tree, stdout=subprocess.DEVNULL)
    run("cmake", "--build", "build/dev", cwd=tree, stdout=subprocess.DEVNULL)
    tests = Tests(tree / "build/dev", reached)
    print(f"==> {len(tests.names)} tests without a fault", flush=True)
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(tests.learn, tests.names))
        survivors = 0
        print("==> each fault, and the test that sees it", flush=True)
        for (fault, path), (name, reach) in zip(files.items(), pool.map(tests.judge, files)):
            survivors += name is None
            print(f"{fault:<32} {path:<48} {name or ('survives %d tests' % reach if reach else 'no test reaches it')}", flush=True)
    print(f"==> {len(files) - survivors} of {len(files)} faults seen")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
