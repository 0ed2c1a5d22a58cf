#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The whole shop with all services in other languages: its test, its spans, and its front end beside the one in C++.

Usage: whole.py BUILD_FOLDER
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time

import grpc
from collector import MAX_WAIT_S, Collector
from services import Protos, Service

HERE = os.path.dirname(os.path.abspath(__file__))
VARIANTS = {"catalogue": "go", "cart": "java", "payment": "go", "shipping": "java", "invoice": "java", "front-end": "node"}
SMALL = ("users=10", "products=60", "orders=5", "pictures=none")
SHOP = "curtail.shop.Shop/"
REQUESTS = 100
CALLED = ("login", "account", "session", "catalogue", "tags", "inventory", "search", "cart", "orders", "shipping", "invoice",
          "recommender", "wishlist", "discounts", "media", "address-book")
READS = 1000


class Up:
    """curtail up shop --polyglot, with all data in a folder."""

    def __init__(self, build, folder, *flags):
        self.curtail = f"{build}/tools/curtail/curtail"
        self.env = {**os.environ, "XDG_RUNTIME_DIR": folder, "XDG_STATE_HOME": folder}
        self.data = f"{folder}/data"
        sets = [word for one in (*SMALL, f"data={self.data}") for word in ("--set", one)]
        self.run("up", "shop", "--polyglot", "--detach", *sets, *flags)
        processes = json.loads(self.run("ps", "shop", "--json"))[0]["processes"]
        self.address = {one["name"]: one["address"] for one in processes}
        self.variant = {one["name"]: one["variant"] for one in processes if one["variant"]}

    def run(self, *words):
        done = subprocess.run([self.curtail, *words], env=self.env, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, f"curtail {' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout

    def down(self):
        self.run("down", "shop")


def expect_spans(build, protos):
    """Each request of each service is a span, in the trace that the front end has begun."""
    collector = Collector()
    with tempfile.TemporaryDirectory() as folder:
        up = Up(build, folder, "--trace-to", collector.target, "--trace-sample", "1")
        try:
            assert {name: up.variant.get(name) for name in VARIANTS} == VARIANTS, up.variant
            channel = grpc.insecure_channel(up.address["front-end"])
            status, session = protos.call(channel, f"{SHOP}Register", {"name": "ada", "password": "a password"})
            assert status == "OK", session
            token = {"token": session["token"]}
            assert protos.call(channel, f"{SHOP}AddToBasket", {**token, "product": 1, "count": 2})[0] == "OK"
            began = len(collector.spans)
            for _ in range(REQUESTS):
                assert protos.call(channel, f"{SHOP}GetBasket", token)[0] == "OK"
                assert protos.call(channel, f"{SHOP}ListProducts", {"limit": 2})[0] == "OK"
            per_request = {"Shop/GetBasket": 1, "Cart/Get": 1, "Catalogue/Get": 1, "Shop/ListProducts": 1, "Catalogue/List": 1}
            wanted = {f"curtail.shop.{name}": REQUESTS * times for name, times in per_request.items()}

            def servers():
                return [span for span in collector.spans[began:] if span["kind"] == 2 and span["name"] in wanted]

            with collector.came:
                collector.came.wait_for(lambda: len(servers()) >= sum(wanted.values()), MAX_WAIT_S)
            spans = servers()
            counts = {name: sum(span["name"] == name for span in spans) for name in wanted}
            assert counts == wanted, counts
            roots = {span["traceId"] for span in spans if span["name"].startswith(SHOP)}
            assert len(roots) == 2 * REQUESTS and {span["traceId"] for span in spans} == roots
            ids = {span["spanId"] for span in collector.spans}
            assert all(span["parentSpanId"] in ids for span in spans if not span["name"].startswith(SHOP)), "parents are missing"
            print(f"spans: {counts}")
        finally:
            up.down()


def random_read(rng, token):
    """A request that changes nothing, of a user, of a guest without a session, or of a wrong token."""
    product = rng.choice(["1", "7", str(rng.randrange(1, 80)), "0"])
    who = rng.choice([{"token": token}] * 6 + [{}, {"token": "no.such.token"}])
    return rng.choice([
        ("Home", {**who, "limit": rng.choice([0, 1, 5, 200])}), ("RecommendProducts", {**who, "limit": rng.choice([0, 3])}),
        ("SearchProducts", {"text": rng.choice(["black", "boot red", ""])}), ("ListTags", {}), ("GetWishlist", who),
        ("GetPicture", {"picture": 7}), ("ListAddresses", who), ("GetAccount", who), ("GetProduct", {"product": product}),
        ("GetBasket", who), ("Checkout", who),
        ("ListProducts", {"order": rng.randrange(4), "page": rng.choice([0, 1, 10_001]), "limit": rng.choice([0, 3])}),
        ("CountProducts", {"tags": rng.choice([[], ["NO"]])}), ("ListOrders", {**who, "limit": rng.choice([0, 2])}),
        ("GetOrder", {**who, "order": product}), ("TrackOrder", {**who, "order": product}), ("GetInvoice", {**who, "order": product}),
        ("QuoteOrder", {**who, "lines": [{"product": product, "count": 1}]}),
        ("PutProduct", {**who, "product": {"name": "Hat"}}), ("DeliverStock", {**who, "delivery": {"product": product}}),
        ("AddToBasket", {**who, "product": "0", "count": 1}), ("Buy", {**who, "lines": []}), ("PlaceOrder", {**who, "quote": "5"})])


def expect_same_front_ends(build, protos):
    """The front end in node answers as the one in C++, before the same services."""
    with tempfile.TemporaryDirectory() as folder:
        up = Up(build, folder)
        try:
            peers = []
            for name, address in up.address.items():
                if name not in ("front-end", "load-balancer") and "-postgresql" not in name:
                    peers += [word for word in ("--peer", f"{name}={address}") if name in CALLED]
            cpp = Service(build, "front-end", "cpp", up.data, *peers)
            node = grpc.insecure_channel(up.address["front-end"])
            status, session = protos.call(node, f"{SHOP}Register", {"name": "ada", "password": "a password"})
            assert status == "OK", session
            for product in (1, 7, 12):
                line = {"token": session["token"], "product": product, "count": product}
                assert protos.call(node, f"{SHOP}AddToBasket", line)[0] == "OK"
            rng, statuses = random.Random(1), {}
            for _ in range(READS):
                method, request = random_read(rng, session["token"])
                deadline = time.monotonic() + MAX_WAIT_S
                while True:
                    theirs, ours = (protos.call(channel, SHOP + method, request) for channel in (node, cpp.channel))
                    in_time = not any("missing" in reply for _, reply in (theirs, ours))  # each part has 100 ms
                    if in_time or time.monotonic() > deadline:
                        break
                assert theirs == ours, f"{method} {request}: node {theirs}, C++ {ours}"
                statuses[ours[0]] = statuses.get(ours[0], 0) + 1
            # A write that is repeated at the other front end happens once.
            change, names = {"token": session["token"], "product": 3, "count": 1}, [("idempotency-key", "an add")]
            first, second = (protos.call(channel, f"{SHOP}AddToBasket", change, names) for channel in (node, cpp.channel))
            assert first[0] == "OK" and first == second, (first, second)
            cpp.end()
            print(f"front ends: {READS} requests to node and C++ {statuses}")
        finally:
            up.down()


def main():
    build = os.path.abspath(sys.argv[1])
    protos = Protos(build, "node")
    expect_spans(build, protos)
    expect_same_front_ends(build, protos)
    with tempfile.TemporaryDirectory() as folder:
        test = [f"{HERE}/../../apps/shop/tests/up_test.py", "polyglot", f"{build}/tools/curtail/curtail", f"{build}/apps/shop/shop"]
        done = subprocess.run([sys.executable, "-B", *test], check=False, timeout=300, capture_output=True, text=True,
                              env={**os.environ, "XDG_RUNTIME_DIR": folder})
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr
        print("the application's test: passed")


main()
