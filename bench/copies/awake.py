#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command while no CPU sleeps: each has a process that computes whenever nothing else wants to, at idle priority.

Usage: awake.py COMMAND [ARG...]

A virtual CPU that sleeps is woken when its host gets to it, which may take milliseconds on a busy host: wake-ups then measure
the host. Ends as the command does, and takes Ctrl-C and SIGTERM to it.
Where two CPUs are threads of one core, or the host rations them, it costs throughput: compare once without it.

Example:
  awake.py measure.py curtail fanout --copy auto --copy "fib1=--config FIB1" --closed 0
"""

import os
import signal
import subprocess
import sys


def compute(cpu, parent):
    os.sched_setaffinity(0, {cpu})
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    while os.getppid() == parent:  # not longer than the program, however that ends
        for _ in range(10_000_000):
            pass


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    children = []
    parent = os.getpid()
    for cpu in sorted(os.sched_getaffinity(0)):
        child = os.fork()
        if child == 0:
            compute(cpu, parent)
            os._exit(0)
        children.append(child)
    try:
        command = subprocess.Popen(sys.argv[1:])
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda n, _: command.send_signal(n))
        code = command.wait()
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    sys.exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
