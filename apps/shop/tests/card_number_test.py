#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pays with a card, while every line is logged and every request traced, and looks for its number in all that is left: the stores, the
logs, the files of the services, and the traces.

Usage: card_number_test.py CURTAIL SHOP
"""
import gzip
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../kit/testing"))
from rest import MAX_WAIT_S, rest  # noqa: E402

CARD, MISTYPED = "4929717204931462", "4929717204931469"  # the last digit checks, or not
EXPIRES = "2095-01"


class Collector(http.server.BaseHTTPRequestHandler):
    """Keeps the spans that services send."""

    received = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.received.append(gzip.decompress(body) if self.headers["content-encoding"] == "gzip" else body)
        self.send_response(202)
        self.end_headers()

    def log_message(self, *_):
        pass


def buy(address):
    """A customer adds a card, and pays with it. Returns what the answers say."""
    answers = []

    def ask(verb, path, body=None, key=None, token=None, status=200):
        got, reply = rest(address, verb, path, body, token, key)
        assert got == status, (verb, path, got, reply)
        answers.append(json.dumps(reply))
        return reply

    token = ask("POST", "/v1/users", {"name": "eve", "password": "a password"})["token"]
    home = {"name": "Eve", "street": "Main Street 1", "city": "Berlin", "postcode": "10115", "country": "DE"}
    place = ask("POST", "/v1/addresses", {"address": home}, token=token)
    card = {"number": CARD, "expires": EXPIRES}
    added = ask("POST", "/v1/cards", card, "my card", token)
    assert added["lastFour"] == CARD[-4:] and "token" not in added, added
    assert ask("POST", "/v1/cards", card, "my card", token) == added
    ask("POST", "/v1/cards", {**card, "expires": "2095-02"}, "my card", token, status=409)
    ask("POST", "/v1/cards", {**card, "number": MISTYPED}, token=token, status=400)
    ask("POST", "/v1/cards", {**card, "expires": "2095"}, token=token, status=400)
    ask("POST", "/v1/cards", card, token="no token", status=401)
    assert ask("GET", "/v1/cards", token=token) == {"cards": [added]}
    product = ask("GET", "/v1/products?limit=1")["products"][0]
    ask("POST", "/v1/basket", {"product": product["id"], "count": 1}, token=token)
    quote = ask("POST", "/v1/quotes", {"address": place["id"], "card": added["id"]}, token=token)
    order = ask("POST", "/v1/orders", {"quote": quote["id"]}, token=token)
    limit = time.monotonic() + MAX_WAIT_S
    while order.get("state") != "COMMITTED":
        assert time.monotonic() < limit, order
        order = ask("GET", f"/v1/orders/{order['id']}", token=token)
    return answers


def expect_no_number(what, data):
    for number in (CARD, MISTYPED):
        assert number.encode() not in data, f"{what} has the number of a card"


def files_of(folder):
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    yield path, file.read()


def main(curtail, shop):
    collector = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as scratch:
        env = {**os.environ, "XDG_RUNTIME_DIR": scratch, "XDG_STATE_HOME": scratch + "/state", "NO_COLOR": "1",
               "CURTAIL_LOG_LEVEL": "debug", "PATH": os.path.dirname(shop) + ":" + os.environ["PATH"]}

        def run(*args):
            done = subprocess.run([curtail, *args], env=env, text=True, capture_output=True, timeout=MAX_WAIT_S)
            assert done.returncode == 0, f"{done.stdout}{done.stderr}"
            return done.stdout

        told = run("up", "shop", "--detach", "--set", "users=2", "--set", "products=10", "--set", "orders=2", "--trace-to",
                   f"zipkin=http://127.0.0.1:{collector.server_port}", "--trace-sample", "1")
        try:
            processes = {p["service"]: p["address"] for p in json.loads(run("ps", "--json"))[0]["processes"]}
            answers = buy(processes["load-balancer"])
            found = list(files_of(scratch))  # the logs go with the application
        finally:
            told += run("down", "shop")  # which sends the last spans
        found += files_of(scratch)
        for path, data in found:
            expect_no_number(path, data)
        expect_no_number("an answer", "".join(answers).encode())
        expect_no_number("the terminal", told.encode())
        traces = b"".join(Collector.received)
        expect_no_number("a trace", traces)
        # What is looked through has the order.
        assert any("address-book.db" in path and CARD[-4:].encode() in data for path, data in found), [path for path, _ in found]
        assert b"AddCard" in traces and b"Authorise" in traces, traces[:2000]
        assert any(path.endswith(".log") for path, _ in found), [path for path, _ in found]
    collector.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
