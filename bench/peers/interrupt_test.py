#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C ends a long cell of peers soon, and its servers. Usage: interrupt_test.py PEERS"""

import pathlib
import signal
import subprocess
import sys
import time

MAX_WAIT_S = 60
SOON_S = 10  # of a busy machine, and far from the length of a cell
INTO_THE_CELL_S = 2  # where a machine takes longer, the signal comes before the cell, and that hides a fault only
CELL = ("--quiet", "--stacks", "raw-epoll", "--rounds", "1", "--seconds", "600", "--cells")


def children(process):
    return pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()


def check(peers, cell):
    process = subprocess.Popen([peers, *CELL, cell], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        limit = time.monotonic() + MAX_WAIT_S
        while len(children(process)) < 5:  # four leaves and the mid-tier
            assert time.monotonic() < limit and process.poll() is None, "the servers did not start"
            time.sleep(0.05)
        servers = children(process)
        time.sleep(INTO_THE_CELL_S)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=SOON_S)
    finally:
        process.kill()
    assert process.returncode == 105, (process.returncode, err)
    left = [pid for pid in servers if pathlib.Path(f"/proc/{pid}").exists()]
    assert not left, left


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts in the background ignores it
    for each in ("closed-1", "open-100"):
        check(sys.argv[1], each)
