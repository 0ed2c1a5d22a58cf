#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does what docs/tutorial.md tells its readers to do: every command, in its order, in one shell, outside of the tree.

Usage: tutorial_test.py SOURCE_TREE INSTALLED COMPILER

A block of commands that follows a line `<!-- run: LABEL -->` is run as it stands, but for the ports. What it must print is
in FACTS. Nothing here depends on how fast the machine is, or on which config is best there.
"""

import os
import pathlib
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

BLOCK = re.compile(r"^<!-- run: (\w+) -->\n```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CPP = re.compile(r"^```cpp\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PORT = re.compile(r"127\.0\.0\.1:(71\d\d)\b")
SERVER = re.compile(r"^build/(?:supplier|prices) .* & \w+=\$!$", re.MULTILINE)
LATENCY_ROWS = r"latency \(\w+\) +count +mean"

MAX_CPP_LINES = 59
MAX_WORDS = 15 * 200  # what one reads in 15 minutes, code included
MAX_BLOCK_S = 100
MAX_START_S = 20
MAX_SECONDS = 270  # then everything is killed, whatever became of this program


def config_for(train_output, load):
    """The config that a profile runs at a load, by the list that `curtail train` ends with."""
    chosen = re.findall(r"^ +from +([\d.]+)/s +(\S+)$", train_output, re.MULTILINE)
    assert chosen, "train does not say what is chosen"
    return [config for least, config in chosen if float(least) <= load][-1]


def answered(output):
    """Of each load test: the share of requests that were answered."""
    counts = re.findall(r"^requests +(\d+) due.* (\d+) ok ", output, re.MULTILINE)
    return [int(ok) / int(due) for due, ok in counts]


def check_models(outputs):
    blocked, fibers = answered(outputs["models"])
    # Against each other: on a busy machine FIB1 loses some, too.
    assert fibers > 3 * blocked, f"FIB1, which does not wait for the late supplier, answered {fibers:.0%}, SIB1 {blocked:.0%}"


def check_load(outputs):
    verdict, percent = re.search(r"^threshold +(\w+) +errors<1%  \((\S+) %\)", outputs["load"], re.MULTILINE).groups()
    if verdict != "VOID":
        assert answered(outputs["load"])[0] > 0.9
        assert (verdict == "ok") == (float(percent) < 1), (verdict, percent)


def check_watch(outputs):
    """The policy did what the profile says, unless that is nothing."""
    status = outputs["watch"].partition("\nconfig ")[2]
    quiet, rush = config_for(outputs["train"], 30), config_for(outputs["train"], 2500)
    assert "policy mutune: " in status and "failed: 0" in status
    assert re.match(r"SIP1|FIB1", status), "another config than those in the profile runs"
    gives_up = re.findall(r"^(\w+) .* sat$", outputs["train"], re.MULTILINE)
    print(f"-- by the profile {quiet} when it is quiet and {rush} in the rush; at 3000/s does not keep up: {gives_up}")
    if quiet in gives_up and rush not in gives_up:
        assert re.search(rf"{quiet} -> {rush} ", status), "the rush came and nothing was switched"


# A block's label: the exit codes that its failing commands may have, what its output matches, and a check of all outputs so
# far. A load test is void (98) when the machine is too busy to send it in time. A supplier has 50 ms there, so that requests
# may fail and with them the threshold (99).
FACTS = {
    "build": ((), (), None),
    "start": ((), (r"admin on unix:prices\.admin",), None),
    "call": ((1,), (r'"answered": 3', r'"cents": \d+', r'"supplier": "(oak|elm|ash)"',
                    r"INVALID_ARGUMENT: name is empty"), None),
    "late": ((1,), (r'"answered": 2', r'"supplier": "(elm|ash)"', r"DEADLINE_EXCEEDED"), None),
    "models": ((98,), (r"SIB1 -> FIB1", r"DEADLINE_EXCEEDED"), check_models),
    "load": ((98, 99), (LATENCY_ROWS, r"1000 a second"), check_load),
    "train": ((), (r"^p99, ms +50 +400 +3000/s$", r"^SIP1 +\d", r"^FIB1 +\d", r"^profile +prices\.json"), None),
    "verify": ((99,), (r"^ +load/s +chosen +predicted", r"^ +\d+ +(SIP1|FIB1) "), None),
    "mutune": ((), (), None),
    "watch": ((98,), (r"steps:30,2500,30", r"before the first request"), check_watch),
    "online": ((), (), None),
    "learn": ((98,), (LATENCY_ROWS, r"^policy online: \d+ requests/s"), None),
    "end": ((), (), None),
}
# Here a supplier has 50 ms to answer, once. On a machine that is busy with other things it may need another chance.
HURRIED = ("call", "late")


class Terminal:
    """One shell that runs block after block. Its background jobs go on in between, as a reader's do."""

    def __init__(self, folder, env):
        self.folder, self.logs = folder, folder.parent
        self.shell = subprocess.Popen(["timeout", "-s", "KILL", str(MAX_SECONDS), "bash", "--noprofile", "--norc"],
                                      cwd=folder, env=env, text=True, bufsize=1, start_new_session=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, label, commands):
        """The exit codes of what failed, and what was printed. Waits until the servers it starts listen."""
        script, codes, log = (self.logs / f"{label}.{kind}" for kind in ("sh", "codes", "log"))
        script.write_text(commands + "true\n")
        codes.touch()
        self.shell.stdin.write(f"trap 'echo $? >>{codes}' ERR; . {script} </dev/null >{log} 2>&1; echo done\n")
        if not select.select([self.shell.stdout], [], [], MAX_BLOCK_S)[0]:
            raise AssertionError(f"{label}: not done after {MAX_BLOCK_S} s:\n{log.read_text()}")
        assert self.shell.stdout.readline() == "done\n", f"{label}: the shell is gone"
        self._await_servers(label, log, len(SERVER.findall(commands)))
        return [int(code) for code in codes.read_text().split()], log.read_text()

    def _await_servers(self, label, log, count):
        limit = time.monotonic() + MAX_START_S
        while log.read_text().count("ready ") < count:
            if time.monotonic() > limit:
                raise AssertionError(f"{label}: its servers do not listen:\n{log.read_text()}")
            time.sleep(0.01)

    def members(self):
        """Pids of the processes of its session, but zombies."""
        found = []
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                state, _, _, session = stat.read_text().rpartition(")")[2].split()[:4]
            except OSError:
                continue
            if int(session) == self.shell.pid and state != "Z":
                found.append(int(stat.parent.name))
        return found

    def leave(self):
        """Ends the shell as its reader does; what runs then was left behind."""
        self.shell.stdin.close()
        self.shell.wait(timeout=MAX_START_S)
        assert not self.members(), f"processes left behind: {self.members()}"

    def close(self):
        """Kills whatever there is, stopped processes as well."""
        for pid in self.members():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.shell.wait(timeout=MAX_START_S)


def free_ports(count):
    """Ports that nobody has, below those that the system hands out by itself."""
    seed = random.randrange(2**32)
    print(f"-- ports by seed {seed}")
    choice, found = random.Random(seed), []
    while len(found) < count:
        port = choice.randrange(20000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in found:
            found.append(port)
    return found


def check_size(text):
    lines = sum(len(code.splitlines()) for code in CPP.findall(text))
    words = len(text.split())
    print(f"-- {lines} lines of C++, {words} words")
    assert 0 < lines <= MAX_CPP_LINES, f"{lines} lines of C++, not {MAX_CPP_LINES} at most"
    assert words <= MAX_WORDS, f"{words} words, not {MAX_WORDS} at most"


def check_refusals(folder):
    """What ServerMain says to a command line that names suppliers wrongly."""
    def run(*args):
        done = subprocess.run([folder / "build/prices", *args], text=True, capture_output=True, timeout=MAX_START_S)
        return done.returncode, done.stdout + done.stderr
    for args, code, text in ((("--leaf", "nonsense"), 104, "nonsense"), (("--leaf",), 104, "needs a value"),
                             (("--help",), 0, "--peer "), (("--peer", "x"), 104, "NAME=ADDRESS"), ((), 104, "--peer")):
        got, out = run(*args)
        assert got == code and text in out, f"prices {args}: exit code {got}, not {code}: {out}"


def check_up(folder, env):
    """The same programs as an application of curtail up, from docs/topology.md."""
    curtail = pathlib.Path(env["HOME"]) / "curtail/bin/curtail"
    runtime = pathlib.Path(env["HOME"]) / "runtime"
    runtime.mkdir(mode=0o700)

    def run(*args):
        done = subprocess.run([curtail, *args], text=True, cwd=folder, capture_output=True, timeout=MAX_START_S,
                              env={**env, "XDG_RUNTIME_DIR": str(runtime)})
        print("$ curtail", *args, f"-> {done.returncode}\n{done.stdout}{done.stderr}", flush=True)
        return done.returncode, done.stdout
    code, out = run("up", "./market.yaml", "--detach")
    assert code == 0, "market.yaml does not come up"
    try:
        address = re.search(r"prices at (\S+)", out)[1]

        def answered_by_all():
            code, out = run("load", address, "--method", "market.Prices/Best", "--data", '{"name": "nail"}', "--debug")
            return code == 0 and '"answered": 3' in out and '"supplier": "supplier-' in out

        # A supplier has 50 ms to answer, and a look of `curtail ps` 500 ms: as in HURRIED.
        assert any(answered_by_all() for _ in range(3)), "not all suppliers answer"
        assert any(run("ps")[1].count(" serving ") == 4 for _ in range(3)), "not all serve"
    finally:
        assert run("down", "market")[0] == 0


def read_along(text, terminal):
    """Runs the blocks and checks them. Shows what they print with the ports of the page, which the test replaces."""
    ports = sorted(set(PORT.findall(text)))
    there = dict(zip(ports, map(str, free_ports(len(ports)))))
    back = {port: known for known, port in there.items()}
    outputs = {}
    for label, commands in BLOCK.findall(text):
        may_fail, facts, check = FACTS[label]
        for attempt in range(3 if label in HURRIED else 1):
            begun = time.monotonic()
            failed, output = terminal.run(label, PORT.sub(lambda m: "127.0.0.1:" + there[m[1]], commands))
            output = re.sub(r"127\.0\.0\.1:(\d+)", lambda m: "127.0.0.1:" + back.get(m[1], m[1]), output)
            print(f"== {label}, {time.monotonic() - begun:.1f} s\n{commands}--\n{output}", flush=True)
            missing = [fact for fact in facts if not re.search(fact, output, re.MULTILINE)]
            if not missing:
                break
        outputs[label] = output
        assert set(failed) <= set(may_fail), f"{label}: failed with {failed}"
        assert not missing, f"{label}: printed nothing like {missing}"
        if check:
            check(outputs)
    assert list(outputs) == list(FACTS), f"the blocks are {list(outputs)}, expected {list(FACTS)}"


def main():
    source, installed, compiler = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    text = (pathlib.Path(source) / "docs/tutorial.md").read_text()
    check_size(text)
    here = pathlib.Path(__file__).resolve().parent
    with tempfile.TemporaryDirectory() as home:
        market = pathlib.Path(home) / "market"
        market.mkdir()
        for name in ("CMakeLists.txt", "market.proto", "market.yaml", "prices.cc", "supplier.cc"):
            shutil.copy(here / name, market)
        pathlib.Path(home, "curtail").symlink_to(installed)
        env = {**os.environ, "HOME": home, "TMPDIR": home, "NO_COLOR": "1", "CXX": compiler, "CMAKE_GENERATOR": "Ninja",
               "CCACHE_BASEDIR": home, "CCACHE_NOHASHDIR": "1"}
        terminal = Terminal(market, env)
        try:
            read_along(text, terminal)
            terminal.leave()
        finally:
            terminal.close()
        check_refusals(market)
        check_up(market, env)


if __name__ == "__main__":
    main()
