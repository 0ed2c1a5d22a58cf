# SPDX-License-Identifier: Apache-2.0
"""The front end of the shop called by gRPC, and by HTTP and JSON through the load balancer (DeathStarBench, section 5). The same
requests go both ways, a turn after another."""

import json

import compared
import measure
import picture
import session

AT_A_TIME = 16
BUDGET = {"rounds": 8, "seconds": 1.5}
QUICK = {"rounds": 1, "seconds": 0.3}
RATES = {"product": 200, "list": 200, "basket": 200, "order": 40}


def requests(up, http):
    """The words of `curtail load` for each kind of request, both ways."""
    _, _, token, address, card, *_ = (up.data / "load-users").read_text().splitlines()[0].split()
    products = [line.split()[0] for line in (up.data / "load-products").read_text().splitlines()]
    product, page = f"{{{{uniform 1 {len(products)}}}}}", f"{{{{uniform 0 {(len(products) - 1) // 10}}}}}"
    bearer = ["-H", f"authorization: Bearer {token}"]
    purchase = f'{{"lines": [{{"product": "{product}", "count": "1"}}], "address": "{address}", "card": "{card}"}}'
    both = {
        "product": ("GetProduct", f'{{"product": "{product}"}}', f"/v1/products/{product}", []),
        "list": ("ListProducts", f'{{"page": "{page}", "limit": 10}}', f"/v1/products?limit=10&page={page}", []),
        "basket": ("GetBasket", "{}", "/v1/basket", bearer),
        "order": ("Buy", purchase, "/v1/purchases", bearer),
    }
    grpc = up.address()
    words = {}
    for kind, (method, data, path, header) in both.items():
        body = ["--data", data] if kind == "order" else []
        words[kind] = {
            "services": [grpc, "--method", f"curtail.shop.Shop/{method}", "--data", data, *header],
            "rest": [f"http://{http}{path}", *body, *header],
        }
    return words


def send(up, words, seconds, seed):
    """A run, as its JSON has it, and the CPU of all processes for a request."""
    command = [up.curtail, "load", *words, "--warmup", f"{measure.WARMUP_S}s", "--duration", f"{seconds}s", "--seed", str(seed)]
    before = measure.cpu_seconds(up.run, up.file)
    report = json.loads(measure.run([*command, "--quiet", "--json", "-"], up.run.fine))
    up.runs += 1
    up.void += not report["valid"]
    result = report["runs"][0]
    if result["requests"]["ok"] == 0:
        raise SystemExit(f"{' '.join(command)}\nno request succeeded: try the command, it says why")
    answered = result["requests"]["ok"] * (1 + measure.WARMUP_S / result["measured_s"])
    result["cpu_us"] = 1e6 * (measure.cpu_seconds(up.run, up.file) - before) / answered
    return result


def run(s):
    values = {}
    with s.up() as up:
        http = next(process["address"] for process in up.processes() if process["service"] == "load-balancer")
        words = requests(up, http)
        for number in range(s.rounds):
            for k, (kind, ways) in enumerate(words.items()):
                s.step(number * len(words) + k, s.rounds * len(words), kind)
                for way in list(ways) if number % 2 == 0 else list(ways)[::-1]:
                    level = send(up, [*ways[way], "--rps", str(RATES[kind])], s.seconds, 1 + number)
                    most = send(up, [*ways[way], "--closed", str(AT_A_TIME)], s.seconds, 1 + number)
                    latency, at = level["latency_us"]["all"], f"{kind}, {RATES[kind]}/s"
                    for name, value in (
                        (f"p50 of {at}, us", latency["p50"]),
                        (f"p99 of {at}, us", latency["p99"]),
                        (f"CPU of {at}, us", level["cpu_us"]),
                        (f"{kind}, {AT_A_TIME} at a time, /s", most["rates_per_s"]["good"]),
                    ):
                        values.setdefault(name, {}).setdefault(way, []).append(value)
    return {"values": values}


table = compared.table


def draw(result, facts):
    ways = facts.compared[result["study"]].copies
    rows = []
    for name, by_way in result["values"].items():
        if name.startswith("p"):
            in_ms = [session.estimate([value / 1000 for value in by_way[way]]) for way in ways]
            rows.append((name.removesuffix(", us"), in_ms))
    return picture.dots(
        f"{facts.title} {facts.compared[result['study']].title}",
        "dots: medians of the rounds, lines: their intervals of 95 %",
        "ms",
        [shown_as for shown_as, _ in ways.values()],
        rows,
        log=True,
        names=180,
    )
