#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks at an application that serves, in a pipe and in a terminal, while its processes end and come back.

Usage: top_test.py CASE CURTAIL HDSEARCH SCRATCH_FOLDER
"""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from tooling import MAX_WAIT_S, expect_no_escapes, expect_nothing_left
from up_test import ps, up

LOAD = ["load", "hdsearch", "--rps", "100", "--duration", "100s", "--warmup", "0s", "--judged", "0"]


def end(process):
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=MAX_WAIT_S)


def numbers(block):
    """The cells of each service in a block of lines."""
    titles = re.split(r"  +", block.splitlines()[1])
    return {cells[0]: dict(zip(titles, cells)) for line in block.splitlines()[2:] if len(cells := line.split()) == len(titles)}


def test_lines(tools):
    """A block a second, with numbers that are those of the load."""
    code, _, err = tools.run("top", "hdsearch")
    assert code == 104 and "hdsearch is not up" in err, (code, err)
    code, _, err = tools.run("top", "hdsearch", "--sort", "colour")
    assert code == 104 and "colour" in err, (code, err)
    application = up(tools)
    load = tools.start(*LOAD)
    code, out, err = tools.run("top", "hdsearch", "--seconds", "4", "--sort", "name")
    assert code == 0 and not err, (code, err)
    expect_no_escapes(out)
    blocks = out.split("\n\n")
    assert len(blocks) == 4 and all("3 of 3 processes ready" in block for block in blocks), out
    assert re.search(r"^CALLS OF +TO .*\nmid-tier +leaf +\d", blocks[-1], re.M), out
    last = numbers(blocks[-1])
    assert list(last) == ["leaf", "mid-tier"], out
    assert last["leaf"]["UP"] == "2/2" and last["mid-tier"]["UP"] == "1/1", last
    for service, calls in (("mid-tier", 100), ("leaf", 200)):
        assert 0.3 * calls < float(last[service]["CALLS/S"]) < 3 * calls, (service, last)
        assert 0 < float(last[service]["P50 MS"]) <= float(last[service]["P99 MS"]), last
        assert float(last[service]["CPU %"]) > 0 and float(last[service]["MIB"]) > 0, last
        assert float(last[service]["THREADS"]) > 0 and last[service]["CONFIG"] == "auto", last
    end(load)
    end(application)
    expect_nothing_left()


def documents(process, wanted):
    """Reads lines of JSON until one has what is wanted; the test's own time limit bounds it."""
    for line in process.stdout:
        document = json.loads(line)
        if wanted({service["service"]: service for service in document["services"]}):
            return
    raise AssertionError("ended without what was wanted")


def test_restarts(tools):
    """A process that was killed is named, and its service counts again once it is back."""
    application = up(tools)
    load = tools.start(*LOAD)
    top = tools.start("top", "hdsearch", "--json")
    documents(top, lambda s: s["leaf"]["ready"] == 2 and (s["leaf"]["calls_per_s"] or 0) > 0 and s["leaf"]["p99_us"])
    os.kill(ps(tools)["leaf-1"]["pid"], signal.SIGKILL)
    documents(top, lambda s: any("leaf-1" in p and "killed by signal 9" in p for p in s["leaf"]["problems"]))
    documents(top, lambda s: s["leaf"]["ready"] == 2 and s["leaf"]["restarts"] >= 1 and (s["leaf"]["calls_per_s"] or 0) > 0)
    top.send_signal(signal.SIGTERM)
    top.communicate(timeout=MAX_WAIT_S)
    assert top.returncode == 105, top.returncode
    end(load)
    end(application)
    expect_nothing_left()


def test_ended(tools):
    """It ends with the application, and says so."""
    application = up(tools)
    top = tools.start("top", "hdsearch", "--json")
    top.stdout.readline()
    end(application)
    _, err = top.communicate(timeout=MAX_WAIT_S)
    assert top.returncode == 1 and "hdsearch is not up" in err, (top.returncode, err)
    expect_nothing_left()


class Terminal:
    """A terminal of its own for `curtail top`."""

    def __init__(self, tools, columns, lines):
        self.leader, self.follower = pty.openpty()
        self.text = ""
        self.resize(columns, lines)
        self.keys = termios.tcgetattr(self.follower)

        def own_terminal():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen([tools.curtail, "top", "hdsearch"], env={**tools.env, "TERM": "xterm"},
                                        stdin=self.follower, stdout=self.follower, stderr=self.follower,
                                        preexec_fn=own_terminal)

    def resize(self, columns, lines):
        fcntl.ioctl(self.follower, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read_until(self, wanted):
        """Takes what it writes until wanted(text) holds; returns that text."""
        limit = time.monotonic() + 60
        while not wanted(self.text):
            assert time.monotonic() < limit, self.text
            if select.select([self.leader], [], [], 0.1)[0]:
                self.text += os.read(self.leader, 65536).decode()
        return self.text

    def pages(self):
        """What was drawn, page by page, as lines without escapes; the last may be unfinished."""
        return [[re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", line).rstrip("\r") for line in page.split("\n")]
                for page in self.text.split("\x1b[H")[1:]]

    def expect_end(self, code):
        self.process.wait(timeout=MAX_WAIT_S)
        assert self.process.returncode == code, self.process.returncode
        text = self.read_until(lambda text: re.search(r"\x1b\[\?25h\x1b\[\?1049l(.*SERVICE.*\n)+", text, re.S))
        assert text.count("\x1b[?1049h") == 1 and text.count("\x1b[?1049l") == 1, text
        assert "\x1b" not in text.split("\x1b[?1049l")[1], "what stays is plain"
        assert termios.tcgetattr(self.follower) == self.keys, "the terminal is as it was"
        os.close(self.leader)
        os.close(self.follower)


def test_screen(tools):
    """It takes the terminal over, fits it at any size, and gives it back however it ends."""
    application = up(tools)
    load = tools.start(*LOAD)
    terminal = Terminal(tools, 100, 24)
    terminal.read_until(lambda _: any("mid-tier" in line and re.search(r"\d\.\d", line)
                                      for page in terminal.pages()[1:-1] for line in page))
    assert terminal.text.startswith("\x1b[?1049h\x1b[?25l"), terminal.text
    assert terminal.pages()[1][1].startswith("SERVICE"), terminal.pages()
    assert not termios.tcgetattr(terminal.follower)[3] & termios.ECHO
    terminal.resize(30, 3)
    seen = len(terminal.pages())
    terminal.read_until(lambda _: len(terminal.pages()) > seen + 2)
    for page in terminal.pages()[seen + 1:-1]:
        assert len(page) <= 3 and all(len(line) <= 30 for line in page), page
    assert any("more" in line for line in terminal.pages()[-2]), terminal.pages()[-2]
    terminal.process.send_signal(signal.SIGTERM)
    terminal.expect_end(105)

    for keys, code in (("q", 0), ("\x03", 105)):  # Ctrl-C
        terminal = Terminal(tools, 80, 24)
        terminal.read_until(lambda text: "SERVICE" in text)
        os.write(terminal.leader, keys.encode())
        terminal.expect_end(code)
    end(load)
    end(application)
    expect_nothing_left()


if __name__ == "__main__":
    from tooling import run_case
    run_case(globals())
