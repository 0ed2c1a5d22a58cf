# SPDX-License-Identifier: Apache-2.0
"""What the tests of the curtail command share: they run it as users do, and nothing they start outlives them.

Every process started carries a mark in its environment, by which those that were left behind are found.
"""

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import uuid

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "schema"))
from schemas import expect_valid  # part of what tests share

MARK = "CURTAIL_TOOL_TEST=" + uuid.uuid4().hex
MAX_WAIT_S = 150


class Tools:
    """The programs under test, and a folder for their files."""

    def __init__(self, curtail, hdsearch, scratch):
        self.curtail, self.hdsearch = curtail, hdsearch
        self.scratch = tempfile.mkdtemp(dir=scratch)
        name, value = MARK.split("=")
        self.env = {**os.environ, name: value, "TMPDIR": self.scratch, "NO_COLOR": "1",
                    "XDG_CACHE_HOME": os.path.join(scratch, "cache"),
                    # Applications that are up are those of this test.
                    "XDG_RUNTIME_DIR": self.scratch}

    def path(self, name):
        return os.path.join(self.scratch, name)

    def start(self, *args):
        return subprocess.Popen([self.curtail, *args], env=self.env, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *args):
        """Exit code, standard output, standard error."""
        process = self.start(*args)
        out, err = process.communicate(timeout=MAX_WAIT_S)
        print("$ curtail", *args, f"-> {process.returncode}\n{out}{err}")
        return process.returncode, out, err


def own_host():
    """An address of this machine that only servers of this test listen on, and no connection comes from."""
    pid = os.getpid()
    return f"127.{16 + pid // 65536 % 200}.{pid // 256 % 256}.{pid % 256}"


def free_address():
    """HOST:PORT at which no server listens. No other test takes it."""
    with socket.create_server((own_host(), 0)) as one:
        return "%s:%d" % one.getsockname()


def ps(tools):
    """The processes that are up, by name."""
    code, out, _ = tools.run("ps", "--json")
    assert code == 0, code
    return {p["name"]: p for app in json.loads(out) for p in app["processes"]}


def await_ps(tools, wanted):
    """As ps(), once wanted(processes) holds."""
    limit = time.monotonic() + MAX_WAIT_S
    while not wanted(found := ps(tools)):
        assert time.monotonic() < limit, f"did not come about: {found}"
        time.sleep(0.05)
    return found


def ps_answered(tools):
    """As ps(), once each process has answered. `curtail ps` waits 500 ms for an answer, and a busy machine takes longer."""
    return await_ps(tools, lambda found: all(
        p["health"] != "no answer" and (p["health"] != "serving" or not p["admin"] or p["config"]) for p in found.values()))


def marked_processes():
    """Pids of running processes (no zombies) that descend from this test, but itself."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                environ = file.read()
            with open(f"/proc/{pid}/stat") as file:
                state = file.read().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if MARK.encode() in environ and state != "Z":
            found.append(int(pid))
    return found


def expect_nothing_left(grace_s=0.0):
    limit = time.monotonic() + grace_s
    while marked_processes() and time.monotonic() < limit:
        time.sleep(0.01)
    left = marked_processes()
    assert not left, f"processes left behind: {left}"


def await_line(stream, pattern):
    """Reads lines until one matches; the test's own time limit bounds it."""
    seen = []
    for line in stream:
        seen.append(line)
        if re.search(pattern, line):
            return
    raise AssertionError(f"no line like {pattern!r} in: {''.join(seen)}")


def expect_no_escapes(text):
    assert "\x1b" not in text and "\r" not in text, "escapes written to a pipe"


def shown(tools, columns, *command, stream="stdout"):
    """What `command` writes to a terminal so wide, which its stdout or stderr is."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    streams = {"stdout": subprocess.DEVNULL, stream: follower}
    process = subprocess.Popen(command, env={**tools.env, "TERM": "xterm"}, stdin=subprocess.DEVNULL, **streams)

    def end():  # a hang-up of the terminal may cut off what was written last; this byte comes after it
        process.wait()
        os.write(follower, b"\0")

    threading.Thread(target=end, daemon=True).start()
    text = b""
    while not text.endswith(b"\0"):
        assert select.select([leader], [], [], MAX_WAIT_S)[0], (command, text)
        text += os.read(leader, 65536)
    os.close(leader)
    os.close(follower)
    assert process.returncode == 0, command
    return text[:-1].decode().replace("\r\n", "\n")


def run_case(cases):
    """Runs the case of `cases` (globals() of the test) that the command line names: CASE CURTAIL HDSEARCH SCRATCH."""
    case, curtail, hdsearch, scratch = sys.argv[1:]
    tools = Tools(curtail, hdsearch, scratch)
    try:
        cases["test_" + case](tools)
        shutil.rmtree(tools.scratch)
    finally:
        for pid in marked_processes():  # only those this test started
            if pid != os.getpid():
                os.kill(pid, signal.SIGKILL)
