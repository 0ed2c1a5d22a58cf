#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Starts the whole bank, loads it, uses it over REST, and audits it. Usage: up_test.py FORM CURTAIL BANK"""
import json
import os
import re
import socket
import stat
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../kit/testing"))
from rest import MAX_WAIT_S, rest, use_page  # noqa: E402

FORMS = {"servers": ["--stores", "servers", "--scale", "2", "--tls"], "monolith": ["--monolith"]}
PROCESSES = {"servers": 41, "monolith": 2}
ENTRIES = {"servers": 34, "monolith": 2}
DEPOSIT = 5000
MIXES = ("mixed", "anthos", "balance", "activity", "pay", "transfer", "hot", "hot --merchants 6", "card", "new-card", "quote", "loan",
         "mortgage", "deposit", "wealth", "info", "contact", "customer", "offers", "login")


def use(address, payer, payee):
    """A payment between two customers, each a token, an account and its IBAN, as a client of HTTP makes it."""
    token, account, _ = payer
    order = {"from": account, "iban": payee[2], "cents": "120", "text": "rent"}
    status, paid = rest(address, "POST", "/v1/payments", order, token, key="rent of May")
    assert status == 200 and paid["cents"] == "120", paid
    assert rest(address, "POST", "/v1/payments", order, token, key="rent of May") == (200, paid)
    status, balance = rest(address, "GET", f"/v1/accounts/{account}/balance?atLeast={paid['version']}", token=token)
    assert status == 200 and int(balance["version"]) >= int(paid["version"]), balance
    assert rest(address, "GET", f"/v1/accounts/{payee[1]}/balance", token=token)[0] == 404
    assert rest(address, "POST", "/v1/payments", {**order, "cents": "1.5"}, token)[0] == 400
    assert rest(address, "POST", "/v1/payments", {**order, "cents": "99999"}, token)[0] == 400
    assert rest(address, "POST", "/v1/payments", {**order, "cents": "100001"}, token)[0] == 403
    assert rest(address, "POST", "/v1/payments", order)[0] == 401
    deadline = time.monotonic() + MAX_WAIT_S
    listed = []
    while "rent" not in listed:
        assert time.monotonic() < deadline, listed
        status, page = rest(address, "GET", f"/v1/accounts/{payee[1]}/activity?limit=100", token=payee[0])
        assert status == 200, page
        listed = [movement["text"] for movement in page["movements"]]
    assert rest(address, "GET", f"/v1/payments/{paid['id']}", token=token)[1]["state"] == "ARRIVED"

    sent = "filter.direction=SENT&filter.leastCents=120"
    listed = rest(address, "GET", f"/v1/accounts/{account}/activity?limit=1&{sent}", token=token)[1]["movements"]
    export = urllib.request.Request(f"http://{address}/v1/accounts/{account}/activity.csv?{sent}",
                                    headers={"authorization": f"Bearer {token}"})
    with urllib.request.urlopen(export, timeout=MAX_WAIT_S) as reply:
        lines = reply.read().decode().split("\r\n")
        assert reply.headers["content-type"].startswith("text/csv"), reply.headers
    assert lines[0] == "version,booked,amount,balance,iban,text" and lines[1].startswith(listed[0]["version"] + ","), lines
    assert rest(address, "GET", f"/v1/accounts/{account}/activity?filter.leastCents=-1", token=token)[0] == 400

    applied = rest(address, "POST", "/v1/card-applications", {"incomeCents": "1000", "limitCents": "3001"}, token)
    assert applied[1]["state"] == "DECLINED", applied
    card = rest(address, "GET", "/v1/cards", token=token)[1]["cards"][0]
    bought = {"iban": payee[2], "cents": "300", "text": "books"}
    status, purchase = rest(address, "POST", f"/v1/cards/{card['id']}/purchases", bought, token, key="books")
    assert status == 200 and purchase["cents"] == "300", purchase
    assert rest(address, "POST", f"/v1/cards/{card['id']}/purchases", bought, token, key="books") == (200, purchase)
    assert rest(address, "POST", f"/v1/cards/{card['id']}/payments", {"from": account, "cents": "20"}, token)[0] == 200
    balance = rest(address, "GET", f"/v1/cards/{card['id']}/balance", token=token)[1]
    assert int(balance.get("debtCents", 0)) + int(balance["availableCents"]) == int(card["limitCents"]), balance
    assert rest(address, "GET", f"/v1/cards/{card['id']}/balance", token=payee[0])[0] == 404

    products = rest(address, "GET", "/v1/loan-products")[1]["products"]
    assert [product["name"] for product in products] == ["personal", "mortgage"], products
    status, quote = rest(address, "GET", "/v1/loan-quotes?product=personal&cents=100000&months=12")
    assert status == 200 and sum(int(one["cents"]) for one in quote["instalments"]) == 100000 + int(quote["interestCents"])
    loan = {"product": "personal", "cents": "100000", "months": 12, "features": [{"name": "housing", "value": "own"}]}
    status, refused = rest(address, "POST", "/v1/loans", loan, token)
    assert status == 400 and "is missing" in refused["message"], refused
    with open(os.path.join(os.path.dirname(__file__), "../load/applicant.h"), encoding="ascii") as file:
        good = re.findall(r'\{"(\w+)",\s*"([^"]*)"', file.read())
    loan["features"] = [{"name": name, "value": value} for name, value in good]
    status, offer = rest(address, "POST", "/v1/loans", loan, token, key="car")
    assert status == 200 and rest(address, "POST", "/v1/loans", loan, token, key="car") == (200, offer), offer
    for _ in range(2):
        running = rest(address, "POST", f"/v1/loans/{offer['id']}/acceptance", {"account": account}, token)[1]
        assert running["state"] == "RUNNING" and running["debtCents"] == "100000", running
    due = {"number": 1, "from": account}
    while (repaid := rest(address, "POST", f"/v1/loans/{offer['id']}/repayments", due, token, key="first"))[0] == 400:
        assert time.monotonic() < deadline, repaid  # the money is on its way
    assert rest(address, "POST", f"/v1/loans/{offer['id']}/repayments", due, token, key="first")[1] == repaid[1], repaid
    assert rest(address, "POST", f"/v1/loans/{offer['id']}/repayments", due, token)[0] == 400
    seen = rest(address, "GET", f"/v1/loans/{offer['id']}", token=token)[1]
    assert [one.get("paid") for one in seen["quote"]["instalments"]] == [True] + 11 * [None], seen
    assert rest(address, "GET", f"/v1/loans/{offer['id']}", token=payee[0])[0] == 404
    status, deposit = rest(address, "POST", "/v1/deposits", {"from": account, "cents": "10", "days": 30}, token)
    assert status == 200 and rest(address, "GET", f"/v1/deposits/{deposit['id']}", token=token) == (200, deposit)
    assert rest(address, "GET", f"/v1/deposits/{deposit['id']}", token=payee[0])[0] == 404
    while (broken := rest(address, "DELETE", f"/v1/deposits/{deposit['id']}", token=token))[0] == 503:
        assert time.monotonic() < deadline, broken
    assert broken[1]["state"] == "PAID_BACK", broken

    near = rest(address, "GET", "/v1/representatives?topic=loans&near.latitude=50&near.longitude=8&limit=1")[1]
    assert [one["topic"] for one in near["representatives"]] == ["loans"], near
    adviser = near["representatives"][0]["id"]
    slot = rest(address, "GET", f"/v1/representatives/{adviser}/slots")[1]["startsMs"][-1]
    booking = {"representative": adviser, "startsMs": slot}
    status, booked = rest(address, "POST", "/v1/bookings", booking, token, key="advice")
    assert status == 200 and rest(address, "POST", "/v1/bookings", booking, token, key="advice") == (200, booked), booked
    assert rest(address, "POST", "/v1/bookings", booking, payee[0])[0] == 400
    assert rest(address, "DELETE", f"/v1/bookings/{booked['id']}", token=payee[0])[0] == 404
    assert rest(address, "DELETE", f"/v1/bookings/{booked['id']}", token=token)[1]["cancelled"] is True
    assert rest(address, "GET", "/v1/branches?near.latitude=50&near.longitude=8&limit=1")[1]["branches"], near
    assert rest(address, "GET", "/v1/banks?iban=GB29NWBK60161331926819")[1]["banks"][0]["bic"].startswith("NWBKGB")
    assert rest(address, "GET", "/v1/banks?iban=GB28NWBK60161331926819")[0] == 400
    abroad = {**order, "iban": "GB29 NWBK 6016 1331 9268 19"}
    assert rest(address, "POST", "/v1/payments", abroad, token)[1]["iban"] == "GB29NWBK60161331926819"
    assert rest(address, "GET", "/v1/bank-search?text=commerzbank%20berlin&limit=1")[1]["banks"][0]["country"] == "DE"
    offered = {one["symbol"]: int(one["shareCents"]) for one in rest(address, "GET", "/v1/investments")[1]["investments"]}
    assert set(offered) == {"AAPL", "AMZN", "GOOG", "IBM", "MSFT"}, offered
    units = {"units": "1", "account": account}
    status, bought = rest(address, "POST", "/v1/investments/AAPL/purchases", units, token, key="apples")
    assert status == 200 and bought["state"] == "BOOKED", bought
    assert rest(address, "POST", "/v1/investments/AAPL/purchases", units, token, key="apples") == (200, bought)
    held = rest(address, "GET", "/v1/portfolio", token=token)[1]["holdings"]
    assert {one["symbol"] for one in held} >= {"AAPL"}, held
    assert rest(address, "POST", "/v1/investments/AAPL/sales", {**units, "units": "1000000"}, token)[0] == 400
    assert rest(address, "POST", "/v1/investments/XYZ/sales", units, token)[0] == 404
    status, sold = rest(address, "POST", "/v1/investments/AAPL/sales", units, token)
    assert status == 200 and rest(address, "GET", f"/v1/trades/{sold['id']}", token=token) == (200, sold), sold
    assert rest(address, "GET", f"/v1/trades/{sold['id']}", token=payee[0])[0] == 404
    assert rest(address, "POST", "/v1/messages", {"text": "Thank you"}, token)[0] == 200
    assert [one["text"] for one in rest(address, "GET", "/v1/messages", token=token)[1]["messages"]] == ["Thank you"]

    credentials = {"name": "eve", "password": "a password"}
    fresh = rest(address, "POST", "/v1/customers", credentials)[1]["token"]
    guessed = [rest(address, "POST", "/v1/sessions", {"name": "nobody", "password": "a wrong guess"})[0] for _ in range(6)]
    assert guessed == [401] * 5 + [429], guessed
    opened = rest(address, "POST", "/v1/accounts", {}, fresh)[1]
    assert rest(address, "GET", "/v1/accounts", token=fresh)[1] == {"accounts": [opened]}, opened
    empty = rest(address, "GET", f"/v1/accounts/{opened['id']}/balance", token=fresh)
    assert empty == (200, {}), empty  # JSON leaves out what is 0
    assert rest(address, "DELETE", "/v1/sessions", token=fresh)[0] == 200
    while rest(address, "GET", "/v1/accounts", token=fresh)[0] != 401:  # at the other front end within a second
        assert time.monotonic() < deadline
    status, session = rest(address, "POST", "/v1/sessions", credentials)
    assert status == 200, session
    known = {"email": "eve@example.org", "phone": "+49 221 123456"}
    status, customer = rest(address, "PUT", "/v1/customer", known, session["token"])
    assert status == 200 and customer["phone"] == "+49221123456", customer
    assert rest(address, "GET", "/v1/customer", token=session["token"]) == (200, customer)
    assert rest(address, "PUT", "/v1/customer", {"email": "eve"}, session["token"])[0] == 400
    offered = [one["product"] for one in rest(address, "GET", "/v1/offers", token=token)[1]["offers"]]
    assert "electronic-mail" in offered, offered
    for status in (200, 200):
        answered = rest(address, "POST", "/v1/offers/electronic-mail/answer", {"accepted": True}, token)
        assert answered[0] == status and answered[1]["state"] == "ACCEPTED", answered
    assert rest(address, "POST", "/v1/offers/electronic-mail/answer", {}, token)[0] == 400
    assert rest(address, "POST", "/v1/offers/yacht/answer", {}, token)[0] == 404
    left = rest(address, "GET", "/v1/offers", token=token)[1].get("offers", [])
    assert [one["product"] for one in left] == [one for one in offered if one != "electronic-mail"], left
    assert rest(address, "DELETE", "/v1/customer", token=token)[0] == 400
    assert rest(address, "DELETE", "/v1/customer", token=session["token"]) == (200, {"changed": True})
    while rest(address, "GET", "/v1/customer", token=session["token"])[0] != 401:  # as above
        assert time.monotonic() < deadline
    assert rest(address, "POST", "/v1/sessions", credentials)[0] == 401


def journeys(load, scratch, payer):
    """New customers use what they were answered, up to a payment of `payer`, a token, an account and its IBAN, to each of them."""
    with open(os.path.join(os.path.dirname(__file__), "../journey.yaml"), encoding="ascii") as file:
        steps = file.read()
    pay = """
  - name: pay
    method: curtail.bank.Bank/Pay
    data: '{"from": "%s", "iban": "{{reply.list.accounts[0].iban}}", "cents": 1}'
    metadata: {authorization: "Bearer %s"}
"""
    file, out = scratch + "/journey.yaml", scratch + "/journeys.json"

    def run(text, seed, *how, codes=(0, 98)):
        with open(file, "w", encoding="ascii") as written:
            written.write(text)
        return load("--journey", file, "--seed", str(seed), "--timeout", "10s", "--json", out, *how, codes=codes)

    for seed, how in (1, ("--rps", "10")), (2, ("--closed", "2")):
        printed = run(steps + pay % (payer[1], payer[0]), seed, "--requests", "10", *how)
        assert "journey: register, open, list, balance, pay" in printed, printed
        result = json.load(open(out))["runs"][0]
        assert result["requests"]["ok"] == result["requests"]["sent"] == 10, result
        assert [(step["name"], step["ok"], step["failed"]) for step in result["steps"]] == [
            (name, 10, 0) for name in ("register", "open", "list", "balance", "pay")], result["steps"]
        latency = result["latency_us"]
        assert latency["with_pauses"]["min"] >= latency["all"]["min"] + 20000, latency
    printed = run(steps, 3, "--requests", "5", "--rps", "10", "--fail-if", "list.p99<9s,list.errors<1%")
    assert "ok      list.p99<9s" in printed, printed
    run(steps, 3, "--requests", "5", "--rps", "10", "--fail-if", "sing.p99<9s", codes=(104,))
    # A step that the first journey cannot take refuses the run: no account pays itself, and the names of seed 3 are taken.
    run(steps + pay % ("{{reply.open.id}}", "{{reply.register.token}}"), 4, "--requests", "5", "--rps", "10", codes=(1,))
    run(steps, 3, "--requests", "5", "--rps", "10", codes=(1,))


def expect_tls(processes, run_folder):
    """Services speak TLS with each other, and nothing else; what clients call speaks plain text. All are well, and others read no key."""
    plain = []
    for process in processes:
        if process["protocol"] != "grpc":
            continue
        assert process["health"] == "serving", process
        with socket.socket(socket.AF_UNIX) if process["address"].startswith("unix:") else socket.socket() as client:
            client.settimeout(MAX_WAIT_S)
            host, port = process["address"].rsplit(":", 1)
            client.connect(port if host == "unix" else (host, int(port)))
            client.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
            if client.recv(9)[3:4] == b"\4":  # settings of HTTP/2
                plain.append(process["service"])
    assert set(plain) == {"front-end"}, plain
    keys = [name for name in os.listdir(run_folder + "/tls") if name.endswith(".key")]
    assert {"posting.key", "front-end.client.key"} <= set(keys), keys
    assert {stat.S_IMODE(os.stat(f"{run_folder}/tls/{name}").st_mode) for name in keys} == {0o600}


def main(form, curtail, bank):
    with tempfile.TemporaryDirectory() as scratch:
        env = {**os.environ, "XDG_RUNTIME_DIR": scratch, "XDG_STATE_HOME": scratch + "/state", "NO_COLOR": "1",
               "PATH": os.path.dirname(bank) + ":" + os.environ["PATH"]}

        def run(*args, codes=(0,)):
            done = subprocess.run(args, env=env, text=True, capture_output=True, timeout=MAX_WAIT_S)
            print("$", *args, f"-> {done.returncode}\n{done.stdout}{done.stderr}")
            assert done.returncode in codes, done.returncode
            return done.stderr if "--force" in done.stderr else done.stdout

        def ps():
            """The processes, once each has answered. `curtail ps` waits 500 ms for an answer, and a busy machine takes longer."""
            deadline = time.monotonic() + MAX_WAIT_S
            while True:
                found = json.loads(run(curtail, "ps", "--json"))[0]["processes"]
                if all(process["health"] != "no answer" for process in found):
                    return found
                assert time.monotonic() < deadline, found

        if form == "monolith":  # customers who have nothing cannot do what curtail load asks of them
            refused = run(curtail, "up", "bank", "--monolith", "--set", "deposit=0", "--set", "customers=2", codes=(104,))
            assert re.search("first request of /curtail.bank.Bank/Pay.* failed: FAILED_PRECONDITION", refused), refused
            run(curtail, "up", "bank", "--monolith", "--set", "deposit=0", "--detach", "--force")
            run(curtail, "down", "bank")
        run(curtail, "up", "bank", "--detach", "--set", "customers=6", "--set", f"deposit={DEPOSIT}", *FORMS[form])
        try:
            processes = ps()
            assert len(processes) == PROCESSES[form], processes
            assert len({process["service"] for process in processes}) == ENTRIES[form], processes
            if form == "servers":
                expect_tls(processes, scratch + "/curtail/bank")
            for mix in MIXES:
                run(curtail, "load", "bank", "--mix", *mix.split(), "--rps", "40", "--requests", "20", "--timeout", "10s", "--json",
                    scratch + "/run.json", codes=(0, 98))
                result = json.load(open(scratch + "/run.json"))["runs"][0]
                assert result["requests"]["ok"] == result["requests"]["sent"] == 20, result
                assert result["score"]["mean"] == 1, result
                if mix in ("mixed", "card"):  # a row a method
                    assert sum(method["ok"] for method in result["methods"]) == 20, result["methods"]
            with open(scratch + "/state/curtail/bank/load-users", encoding="ascii") as users:
                customers = [line.split()[2:5] for line in users]
            balancer = next(p["address"] for p in processes if p["service"] == "load-balancer")
            use(balancer, *customers[:2])
            front_end = next(p["address"] for p in processes if p["service"] == "front-end")
            journeys(lambda *args, codes: run(curtail, "load", front_end, *args, codes=codes), scratch, customers[2])
            use_page(balancer)
            run(bank, "check", "--target", front_end, "--operations", "60")
            run(bank, "audit")
            for keeper in ("front-end", "bank-info-search") if form == "servers" else ():
                names = [process["name"] for process in processes if process["service"] == keeper]
                stores = [store for name in names for store in json.loads(run(curtail, "status", f"bank/{name}", "--json"))["stores"]]
                caches = [store for store in stores if store["name"].startswith("memcached")]
                assert caches and all(store["up"] for store in caches), stores
        finally:
            run(curtail, "down", "bank")
        assert not os.path.exists(scratch + "/curtail/bank/tls")


if __name__ == "__main__":
    main(*sys.argv[1:])
