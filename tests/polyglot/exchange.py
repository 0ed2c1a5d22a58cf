#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exchanges the shop's cart in C++ for the one in Java, and back, while both are under load.

Usage: exchange.py BUILD_FOLDER

Both serve from one file. Callers find the cart by a file of addresses, as callers of services that scale do. No idempotent
call is lost, and a write with a name happens once, whichever of the two has answered. Each removes baskets of guests whose
sessions have ended, also those that the other has made.
"""

import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

import grpc
from services import MAX_WAIT_S, Protos, Service

EXCHANGES = ("java", "cpp", "java")
LOOK_AGAIN_S = 0.6  # callers look at the file each 0.2 s; `curtail scale` waits as long
RATE = 200
ADDS = 40  # between two exchanges
GUEST_BIT = 1 << 62
GUEST_BASKET_S = 25 * 3600


def write_addresses(path, service):
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(service.address + "\n")
    os.rename(path + ".new", path)


class Writer(threading.Thread):
    """Adds to baskets, each time with a name, and again with that name until it hears an answer."""

    def __init__(self, protos, path):
        super().__init__(daemon=True)
        self.protos, self.path, self.stop, self.channels = protos, path, threading.Event(), {}
        self.added, self.again, self.problem, self.did = {}, 0, None, threading.Condition()

    def channel(self):
        with open(self.path, encoding="utf-8") as file:
            address = file.read().strip()
        if address not in self.channels:
            self.channels[address] = grpc.insecure_channel(address)
        return self.channels[address]

    def run(self):
        rng, number = random.Random(7), 0
        while not self.stop.is_set():
            number += 1
            owner, product = rng.randrange(1, 41), rng.randrange(1, 91)
            if self.added.get((owner, product), 0) == 99:
                continue
            names = [("idempotency-key", f"add-{number}"), ("idempotency-content", "one more")]
            change = {"owner": owner, "line": {"product": product, "count": 1}}
            deadline = time.monotonic() + MAX_WAIT_S
            while (status := self.protos.call(self.channel(), "curtail.shop.Cart/Add", change, names)[0]) == "UNAVAILABLE":
                self.again += 1
                if time.monotonic() > deadline:
                    break
            if status != "OK":
                self.problem = f"Add ends with {status}"
                return
            if rng.random() < 0.5:  # as a caller that has lost the answer
                self.protos.call(self.channel(), "curtail.shop.Cart/Add", change, names)
            with self.did:
                self.added[owner, product] = self.added.get((owner, product), 0) + 1
                self.did.notify_all()

    def wait(self, count):
        """Waits for `count` more adds."""
        with self.did:
            wanted = sum(self.added.values()) + count
            assert self.did.wait_for(lambda: sum(self.added.values()) >= wanted, MAX_WAIT_S), self.problem


def expect_guests_go(protos, cart, folder, guest, others):
    """A new guest of the cart removes the basket of another one, whose session has ended."""
    if others:
        with sqlite3.connect(f"{folder}/cart.db", timeout=MAX_WAIT_S) as file:
            file.execute("UPDATE guests SET since_s = since_s - ?", (GUEST_BASKET_S,))
    change = {"owner": guest, "line": {"product": 1, "count": 1}}
    assert protos.call(cart.channel, "curtail.shop.Cart/Add", change)[0] == "OK"
    with sqlite3.connect(f"{folder}/cart.db", timeout=MAX_WAIT_S) as file:
        for table in ("baskets", "lines"):
            kept = file.execute(f"SELECT owner FROM {table} WHERE owner >= ?", (GUEST_BIT,)).fetchall()
            assert kept == [(guest,)], (table, kept)


def main():
    build = os.path.abspath(sys.argv[1])
    protos = Protos(build, "java")
    with tempfile.TemporaryDirectory() as folder:
        addresses = f"{folder}/cart.addresses"
        old = Service(build, "cart", "cpp", folder)
        write_addresses(addresses, old)
        gateway = subprocess.Popen(
            [f"{build}/tools/gateway/curtail-gateway", f"file:{addresses}", "--listen", "127.0.0.1:0", "--retries", "2"],
            stdout=subprocess.PIPE, text=True)
        address = gateway.stdout.readline().split()[2]  # "listening on ADDRESS for ..."
        writer = Writer(protos, addresses)
        writer.start()
        expect_guests_go(protos, old, folder, GUEST_BIT, others=False)
        load = subprocess.Popen(
            [f"{build}/tools/curtail/curtail", "load", f"http://{address}/curtail.shop.Cart/Get", "--rps", str(RATE), "--duration", "40s",
             "--timeout", "10s", "--data", '{"user": "{{uniform 1 40}}"}', "--json", f"{folder}/load.json", "--quiet"],
            stdout=subprocess.DEVNULL)
        for number, language in enumerate(EXCHANGES):
            new = Service(build, "cart", language, folder)
            write_addresses(addresses, new)
            writer.stop.wait(LOOK_AGAIN_S)
            old.end()
            old = new
            expect_guests_go(protos, old, folder, GUEST_BIT + number + 1, others=True)
            writer.wait(ADDS)
        assert load.poll() is None, "the load ended before the exchanges"
        code = load.wait(90)
        writer.stop.set()
        writer.join()
        baskets = {}
        for owner in range(1, 41):
            status, basket = protos.call(old.channel, "curtail.shop.Cart/Get", {"user": owner})
            assert status == "OK", status
            for line in basket.get("lines", []):
                baskets[owner, int(line["product"])] = line["count"]
        old.end()
        gateway.terminate()
        gateway.wait(MAX_WAIT_S)
        with open(f"{folder}/load.json", encoding="utf-8") as file:
            requests = json.load(file)["runs"][0]["requests"]
    print(f"exchange: {len(EXCHANGES)} exchanges of C++ and Java; {requests};"
          f" {sum(writer.added.values())} adds, {writer.again} tried again")
    assert code == 0 and requests["failed"] == 0 and requests["ok"] > 10 * RATE, requests
    assert writer.problem is None, writer.problem
    assert baskets == writer.added, sorted(baskets.items() ^ writer.added.items())


main()
