#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records calls of the shop's services in C++, and replays them to the same services in other languages.

Usage: replay.py BUILD_FOLDER [CALLS] [SEED]

Each of CALLS (10,000) random calls, made from SEED (1), must end with the same status and reply. Then each implementation
serves from the data that the other has written, and must read the same. The recordings are BUILD_FOLDER/polyglot/SERVICE.jsonl.
"""

import contextlib
import hashlib
import json
import os
import random
import sys
import tempfile
import time

from services import Protos, Service

MOST_NAMED = 10
GUEST_BIT = 1 << 62


def named(rng, request, method):
    """The metadata of a request that has a name, mostly of this content."""
    content = hashlib.sha256(json.dumps([method, request if rng.random() < 0.9 else rng.random()]).encode()).hexdigest()
    return [("idempotency-key", f"key-{rng.randrange(40)}"), ("idempotency-content", content)]


def line(rng, most=130):
    return {"product": rng.choice([0, rng.randrange(1, most), rng.randrange(1, 6)]),
            "count": rng.choice([0, 1, 2, 3, 50, 99, 100, 4_000_000_000])}


def some(rng, what, sizes):
    """A list of things that what() makes."""
    return [what() for _ in range(rng.choice(sizes))]


def cart(rng, i):
    owner = 1 + i // 100 * 5 + rng.randrange(30)
    owner += GUEST_BIT if owner % 3 == 0 else 0
    change = {"owner": owner, "line": line(rng)}
    weights = {"Add": 50, "Get": 20, "Update": 10, "Remove": 8, "Clear": 1, "Merge": 3, "Take": 6, "Forget": 0.5}
    method = rng.choices(list(weights), list(weights.values()))[0]

    def order():
        return {"order": rng.randrange(2000), "owner": owner, "lines": some(rng, lambda: line(rng), range(4))}

    request = {"Get": {"user": owner}, "Clear": {"user": owner}, "Forget": {"user": owner},
               "Merge": {"to": owner, "from": rng.choice([owner, owner + rng.randrange(10)])},
               "Take": {"orders": some(rng, order, [0, 1, 2, 33])}}.get(method, change)
    if method == "Add" and rng.random() < 0.5:  # a basket that fills
        request = {"owner": 1_000_000 + i // 1000, "line": {"product": rng.randrange(1, 200), "count": 1}}
    return f"curtail.shop.Cart/{method}", request, named(rng, request, method) if method == "Add" and rng.random() < 0.3 else []


def tags(rng):
    right = some(rng, lambda: rng.choice(["red", "green", "blue", "shoe", "hat", "x1"]), [0, 0, 1, 1, 2, 3])
    return right + rng.choice([[]] * 20 + [["NO"], ["a" * 33], [""]])


def catalogue(rng, i):
    method = rng.choices(["Put", "List", "Count", "Get"], [35, 30, 10, 25])[0]
    if method == "Put":
        request = {"id": rng.choice([0, 0, 0, rng.randrange(1, 300)]), "tags": tags(rng), "picture": rng.randrange(5),
                   "name": rng.choice(["Hat", "Größe 42", "x" * 100] * 5 + ["", "x" * 101]),
                   "description": rng.choice(["", "warm", "d" * 2000] * 5 + ["d" * 2001]),
                   "cents": rng.choice([1, 999, 12345, 100_000_000] * 4 + [0, -5, 100_000_001]),
                   "grams": rng.choice([0, 300, 100_000] * 5 + [100_001])}
        return "curtail.shop.Catalogue/Put", request, named(rng, request, method) if rng.random() < 0.3 else []
    if method == "Get":
        return "curtail.shop.Catalogue/Get", {"ids": some(rng, lambda: rng.randrange(400), [0, 1, 5, 30] * 8 + [1001])}, []
    query = {"tags": tags(rng), "order": rng.choice([0, 1, 2, 3, 3, 4]), "page": rng.choice([0, 0, 1, 2, 10_000, 10_001]),
             "limit": rng.choice([0, 1, 3, 100, 150])}
    return f"curtail.shop.Catalogue/{method}", query, []


def payment(rng, i):
    def order():
        return i // 20 + rng.randrange(30)

    def charge():
        number = order()
        cents = rng.choice([number * 10, number * 10, number, 2_000_000])
        return {"order": number, "owner": number % 7, "cents": cents, "card_token": f"card-{number % 3}"}

    method = rng.choices(["Authorise", "Capture", "Refund", "Void", "Get"], [40, 20, 10, 10, 20])[0]
    sizes = [0, 1, 1, 1, 2, 5] * 6 + [1001 if method == "Get" else 33]
    request = {"charges": some(rng, charge, sizes)} if method == "Authorise" else {"ids": some(rng, order, sizes)}
    return f"curtail.shop.Payment/{method}", request, []


ADDRESS = {"name": "Ada", "street": "1 High Street", "city": "Ely", "postcode": "CB7"}


def shipping(rng, i):
    method = rng.choices(["Options", "Create", "Track"], [40, 30, 30])[0]
    address = {**ADDRESS, "country": rng.choice(["US", "DE", "FR", "us", "USA", "", "ÄÖ"])}
    if method == "Options":
        grams = rng.choice([0, 1, 999, 1000, 1001, 1_000_000, 1_000_001, 2**63])
        return "curtail.shop.Shipping/Options", {"address": address, "grams": grams}, []

    def order():
        option = rng.choice(["standard", "express", "express", "standard", ""])
        return {"order": rng.randrange(1, 400), "owner": rng.randrange(9), "address": address, "option": option,
                "lines": [{"product": 1, "count": 2}]}

    if method == "Create":
        return "curtail.shop.Shipping/Create", {"orders": some(rng, order, [0, 1, 1, 2, 3, 33])}, []
    return "curtail.shop.Shipping/Track", {"owner": rng.randrange(9), "order": rng.randrange(400)}, []


def invoice(rng, i):
    if rng.random() < 0.5:
        return "curtail.shop.Invoices/Get", {"owner": rng.randrange(5), "order": rng.randrange(1, 500)}, []

    def order():
        number = rng.randrange(1, 400) if rng.random() < 0.95 else 0
        quote = {"id": number, "total_cents": 100 * number, "address": {**ADDRESS, "country": "DE"},
                 "lines": [{"product": 1, "name": "Hat", "cents": 5, "count": 3}]}
        return {"number": number, "order": number + rng.choice([0] * 9 + [1]), "owner": number % 5, "quote": quote}

    return "curtail.shop.Invoices/Issue", {"orders": some(rng, order, [0, 1, 1, 1, 2, 33])}, []


def recommender(rng, i):
    request = {"products": some(rng, lambda: rng.randrange(120), [0, 1, 1, 2, 5, 5, 20, 101]), "limit": rng.choice([0, 1, 7, 100, 200])}
    return f"curtail.shop.Recommender/{rng.choice(['For', 'Similar'])}", request, []


# Of all calls: of which service, in which language.
SHARES = ((cart, "java", 0.32), (catalogue, "go", 0.25), (payment, "go", 0.18), (shipping, "java", 0.1), (invoice, "java", 0.1),
          (recommender, "python", 0.05))


def timeless(reply):
    """A reply without the time at which it was made."""
    if "due_ms" in reply:
        reply = {**reply, "due_ms": int(reply["due_ms"]) - int(reply["created_ms"])}
    return {key: value for key, value in reply.items() if key not in ("created_ms", "issued_ms")}


def prepare_recommender(protos, folder, catalogue):
    """A model of 100 products, some of which are equal or have no taste, and a catalogue of most of them."""
    rng = random.Random(3)
    model = protos.message("curtail.apps.TasteModel")(rank=4, mean=0.4, most=1, items=range(1, 101))
    model.item_bias.extend(rng.choice([-0.9, 0, 0.1, rng.random()]) for _ in range(100))
    rows = [[rng.uniform(-1, 1) for _ in range(4)] for _ in range(20)] + [[0.0] * 4]
    for _ in range(100):
        model.appeal.extend(rng.choice(rows))
    with open(f"{folder}/products.model", "wb") as file:
        file.write(model.SerializeToString())
    for number in range(1, 91):
        protos.call(catalogue.channel, "curtail.shop.Catalogue/Put", {"name": f"product {number}", "cents": number})


class Deployment(contextlib.ExitStack):
    """A service in a language with what it calls, on the data in a folder."""

    def __init__(self, build, protos, name, language, data):
        super().__init__()
        peers = {"payment": ("payment-auth", "transaction-id"), "recommender": ("catalogue",)}.get(name, ())
        callees = {peer: self.start(build, peer, "cpp", data) for peer in peers}
        if name == "recommender" and not os.path.exists(f"{data}/products.model"):
            prepare_recommender(protos, data, callees["catalogue"])
        flags = [word for peer, callee in callees.items() for word in ("--peer", f"{peer}={callee.address}")]
        self.service = self.start(build, name, language, data, *flags)

    def start(self, *args):
        service = Service(*args)
        self.callback(service.end)
        return service


def answers(protos, channel, calls):
    for path, request, metadata in calls:
        status, reply = protos.call(channel, path, request, metadata)
        yield status, timeless(reply)


def compare(build, protos, generate, language, count, seed):
    """The differences, and how often each status came."""
    name = generate.__name__
    rng = random.Random(f"{seed} {name}")
    calls = [generate(rng, i) for i in range(count)]
    reads = [call for call in calls if call[0].split("/")[1] in ("Get", "List", "Count", "Track", "For", "Similar")][-500:]
    differ, statuses = [], {}
    with tempfile.TemporaryDirectory() as own, tempfile.TemporaryDirectory() as other:
        with Deployment(build, protos, name, "cpp", own) as cpp, open(f"{build}/polyglot/{name}.jsonl", "w", encoding="utf-8") as file:
            recorded = list(answers(protos, cpp.service.channel, calls))
            for call, answer in zip(calls, recorded):
                statuses[answer[0]] = statuses.get(answer[0], 0) + 1
                print(json.dumps([*call, *answer], sort_keys=True), file=file)
        with Deployment(build, protos, name, language, other) as variant:
            for call, expected, answer in zip(calls, recorded, answers(protos, variant.service.channel, calls)):
                if expected != answer:
                    differ.append(f"{call[0]} {json.dumps(call[1])[:300]}: C++ {expected}, {language} {answer}")
        # From each other's data.
        with Deployment(build, protos, name, language, own) as variant, Deployment(build, protos, name, "cpp", other) as cpp:
            both = zip(answers(protos, cpp.service.channel, reads), answers(protos, variant.service.channel, reads))
            for call, (expected, answer) in zip(reads, both):
                if expected != answer:
                    differ.append(f"other's data {call[0]} {json.dumps(call[1])[:300]}: C++ {expected}, {language} {answer}")
    return differ, statuses


def main():
    build, count, seed = os.path.abspath(sys.argv[1]), int((sys.argv[2:3] or ["10000"])[0]), int((sys.argv[3:4] or ["1"])[0])
    os.makedirs(f"{build}/polyglot", exist_ok=True)
    failed = False
    for generate, language, share in SHARES:
        from_s = time.monotonic()
        differ, statuses = compare(build, Protos(build, language), generate, language, int(count * share), seed)
        counts = ", ".join(f"{status} {times}" for status, times in sorted(statuses.items()))
        print(f"{generate.__name__}: {sum(statuses.values())} calls to C++ and {language}, {len(differ)} differ,"
              f" {time.monotonic() - from_s:.0f} s; {counts}", flush=True)
        for text in differ[:MOST_NAMED]:
            print(f"  {text}")
        failed = failed or bool(differ) or len(statuses) < 2
    sys.exit(1 if failed else 0)


main()
