#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the standby of the bank's PostgreSQL its primary while customers pay: nothing acknowledged is lost or happens twice.

Usage: failover_test.py CASE CURTAIL BANK SCRATCH_FOLDER
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "apps", "kit", "testing"))
from rest import rest  # part of what tests share
from tooling import MAX_WAIT_S, expect_nothing_left, run_case

UP = ("up", "bank", "--detach", "--set", "customers=4", "--stores", "postgresql")


@contextlib.contextmanager
def up(tools, *flags):
    tools.env["PATH"] = os.path.dirname(tools.hdsearch) + ":" + os.environ["PATH"]
    tools.env["XDG_STATE_HOME"] = tools.path("state")
    with tempfile.TemporaryDirectory(prefix="curtail-") as short:  # paths of sockets have a limit
        tools.env["XDG_RUNTIME_DIR"] = short
        code, out, err = tools.run(*UP, *flags)
        assert code == 0, (out, err)
        try:
            yield
        finally:
            assert tools.run("down", "bank")[0] == 0
        expect_nothing_left(MAX_WAIT_S)


def processes(tools):
    code, out, _ = tools.run("ps", "--json")
    assert code == 0, out
    return {p["name"]: p for p in json.loads(out)[0]["processes"]}


def roles(tools):
    with open(tools.path("state/curtail/bank/postgresql.roles"), encoding="ascii") as file:
        return file.read()


def primary(tools):
    """The process of the primary, and those that it has started."""
    number = re.match(r"primary (\d)", roles(tools))[1]
    limit = time.monotonic() + MAX_WAIT_S
    while not (pid := processes(tools)[f"postgresql-0.{number}"]["pid"]):
        assert time.monotonic() < limit
        time.sleep(0.05)
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
        return [pid, *map(int, children.read().split())]


class Payer(threading.Thread):
    """Pays a cent at a time. A payment whose answer is an error is repeated, by its key, until it is acknowledged."""

    def __init__(self, address, payer, payee):
        super().__init__()
        self.address, self.payer, self.iban = address, payer, payee[2]
        self.ids, self.errors, self.stopped, self.failure = [], 0, threading.Event(), None
        self.before = self.balance()

    def balance(self):
        status, balance = rest(self.address, "GET", f"/v1/accounts/{self.payer[1]}/balance", token=self.payer[0])
        assert status == 200, balance
        return int(balance.get("cents", 0))

    def run(self):
        try:
            while not self.stopped.is_set():
                self.pay(f"payment {len(self.ids)}")
        except BaseException as failure:
            self.failure = failure

    def pay(self, key):
        order = {"from": self.payer[1], "iban": self.iban, "cents": "1", "text": key}
        limit = time.monotonic() + MAX_WAIT_S
        while True:
            status, paid = rest(self.address, "POST", "/v1/payments", order, self.payer[0], key=key)
            if status == 200:
                self.ids.append(paid["id"])
                return
            assert status >= 500 and time.monotonic() < limit, (status, paid)
            self.errors += 1
            time.sleep(0.02)

    def await_more(self, count):
        limit, least = time.monotonic() + MAX_WAIT_S, len(self.ids) + count
        while len(self.ids) < least:
            assert self.failure is None and time.monotonic() < limit, self.failure
            time.sleep(0.02)

    def expect_each_once(self):
        assert len(set(self.ids)) == len(self.ids)
        assert self.before - self.balance() == len(self.ids), (self.before, self.balance(), len(self.ids))
        for number in self.ids:
            status, paid = rest(self.address, "GET", f"/v1/payments/{number}", token=self.payer[0])
            assert status == 200 and paid["cents"] == "1", paid


def fail_over(tools):
    before = roles(tools)
    limit = time.monotonic() + MAX_WAIT_S
    code, out, err = tools.run("failover", "bank/postgresql")
    # A primary that was killed may serve again before its standby has found it.
    while code == 104 and "does not follow yet" in err and time.monotonic() < limit:
        code, out, err = tools.run("failover", "bank/postgresql")
    assert code == 0, (out, err)
    assert "is its standby; no write was possible for" in out, out
    assert roles(tools) != before and "complete" in roles(tools), roles(tools)


def test_load(tools):
    with up(tools, "--set", "postgresql.replicas=2"):
        with open(tools.path("state/curtail/bank/load-users"), encoding="ascii") as users:
            customers = [line.split()[2:5] for line in users]
        balancer = processes(tools)["load-balancer"]["address"]
        payers = [Payer(balancer, customers[i], customers[i + 2]) for i in (0, 1)]
        for payer in payers:
            payer.start()
        try:
            for how in (None, signal.SIGKILL, signal.SIGSTOP):
                for payer in payers:
                    payer.await_more(10)
                if how == signal.SIGKILL:
                    os.kill(primary(tools)[0], how)
                elif how == signal.SIGSTOP:
                    for pid in primary(tools):
                        with contextlib.suppress(ProcessLookupError):  # a connection that has just ended
                            os.kill(pid, how)
                fail_over(tools)
            for payer in payers:
                payer.await_more(10)
        finally:
            for payer in payers:
                payer.stopped.set()
                payer.join()
        for payer in payers:
            assert payer.failure is None, payer.failure
            print(len(payer.ids), "payments,", payer.errors, "errors")
            payer.expect_each_once()
        subprocess.run([tools.hdsearch, "audit"], env=tools.env, check=True, timeout=MAX_WAIT_S)


def test_refuses(tools):
    def refused(text, target="bank/postgresql"):
        code, out, err = tools.run("failover", target)
        assert code == 104 and text in out + err, (code, out, err)

    refused("bank is not up")
    with up(tools):
        refused("bank has no store user that can fail over; there are postgresql", "bank/user")
        refused("there are postgresql", "bank")
        refused("bank/postgresql has one replica, and no standby")
    # With a second replica from now on, which copies what there is.
    with up(tools, "--set", "postgresql.replicas=2"):
        assert roles(tools) == "primary 0\nstandby complete\n", roles(tools)
        standby = processes(tools)["postgresql-0.1"]["pid"]
        os.kill(standby, signal.SIGSTOP)
        refused("the standby, does not serve yet; nothing was changed")
        os.kill(standby, signal.SIGCONT)
        fail_over(tools)
    # The data says which one is the primary, and a single one would start with the older data.
    with tempfile.TemporaryDirectory(prefix="curtail-") as short:
        tools.env["XDG_RUNTIME_DIR"] = short
        code, _, err = tools.run(*UP)
        assert code != 0 and "postgresql.replicas=2" in err, err
        # Short enough for a link to PostgreSQL's socket, and not for the socket.
        tools.env["XDG_RUNTIME_DIR"] = os.path.join(short, "l" * (72 - len(short)))
        os.mkdir(tools.env["XDG_RUNTIME_DIR"], 0o700)
        code, _, err = tools.run(*UP)
        assert code != 0 and "can be connected to: choose a shorter folder" in err, err
    with up(tools, "--set", "postgresql.replicas=2"):
        assert roles(tools).startswith("primary 1\n"), roles(tools)


run_case(globals())
