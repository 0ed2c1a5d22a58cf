#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Starts the whole application, loads it, and uses it over REST. Usage: up_test.py FORM CURTAIL SHOP"""
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../kit/testing"))
from rest import MAX_WAIT_S, rest, use_page  # noqa: E402

FORMS = {"processes": ["--stores", "servers", "--scale", "2"], "monolith": ["--monolith"], "polyglot": ["--polyglot"]}
MIXES = ("mixed", "boutique", "socks", "browse", "order")


def decided(address, token, order):
    """The order, once it is decided."""
    deadline = time.monotonic() + MAX_WAIT_S
    while "state" not in (order := rest(address, "GET", f"/v1/orders/{order['id']}", token=token)[1]):
        assert time.monotonic() < deadline, order
    return order


def use(address):
    """A user looks for a product, puts it into the basket, and orders it, as clients of HTTP do."""
    credentials = {"name": "eve", "password": "a password"}
    status, session = rest(address, "POST", "/v1/users", credentials)
    assert status == 200, session
    token = session["token"]
    home = rest(address, "GET", "/v1/home?limit=3")[1]
    assert len(home["newest"]) == 3 and "missing" not in home, home
    product = home["newest"][0]
    listed = rest(address, "GET", f"/v1/products?order=NEWEST&limit=1&tags={product['tags'][0]}&tags={product['tags'][1]}")[1]
    assert listed["products"] == [product], listed
    assert rest(address, "GET", "/v1/products?limit=1&page=-1")[0] == 400
    shown = rest(address, "GET", f"/v1/products/{product['id']}")[1]
    assert shown["product"] == product and int(shown["available"]) > 90, shown
    assert rest(address, "GET", "/v1/products/999999")[0] == 404

    line = {"product": product["id"], "count": 2}
    assert rest(address, "POST", "/v1/basket", line)[0] == 401
    status, basket = rest(address, "POST", "/v1/basket", line, token, key="add")
    assert status == 200 and basket["lines"] == [line], basket
    assert rest(address, "POST", "/v1/basket", line, token, key="add") == (200, basket)
    assert rest(address, "POST", "/v1/basket", {**line, "count": 0}, token)[0] == 400
    assert rest(address, "PUT", f"/v1/basket/{product['id']}", {"count": 3}, token)[1]["lines"][0]["count"] == 3

    place = {"name": "Eve", "street": "1 Main Street", "city": "Springfield", "postcode": "12345", "country": "US"}
    address_id = rest(address, "POST", "/v1/addresses", {"address": place}, token)[1]["id"]
    card = rest(address, "POST", "/v1/cards", {"number": "4111111111111111", "expires": "2099-12"}, token)[1]
    assert card["lastFour"] == "1111" and "token" not in card, card
    page = rest(address, "GET", "/v1/checkout", token=token)[1]
    assert page["basket"]["goodsCents"] == str(3 * int(product["cents"])) and len(page["shipping"]) == 2, page
    wanted = {"address": address_id, "card": card["id"], "shipping": "express", "code": "WELCOME"}
    status, quote = rest(address, "POST", "/v1/quotes", wanted, token)
    assert status == 200 and quote["discountCents"] == str(3 * int(product["cents"]) // 10), quote
    assert rest(address, "POST", "/v1/quotes", {**wanted, "shipping": "by pigeon"}, token)[0] == 404
    status, order = rest(address, "POST", "/v1/orders", {"quote": quote["id"]}, token, key="order")
    assert status == 200, order
    order = decided(address, token, order)
    assert order["state"] == "COMMITTED" and order["quote"]["totalCents"] == quote["totalCents"], order
    assert rest(address, "POST", "/v1/orders", {"quote": quote["id"]}, token, key="order") == (200, order)
    assert rest(address, "POST", "/v1/orders", {"quote": "7"}, token, key="order")[0] == 409
    assert rest(address, "POST", "/v1/orders", {"quote": "7"}, token)[0] == 404
    assert rest(address, "DELETE", f"/v1/orders/{order['id']}", token=token)[0] == 400, "it is committed"
    for follows in ("shipment", "invoice"):
        until(lambda: rest(address, "GET", f"/v1/orders/{order['id']}/{follows}", token=token)[0] == 200)
    invoice = rest(address, "GET", f"/v1/orders/{order['id']}/invoice", token=token)[1]
    assert invoice["number"] == order["number"] and invoice["quote"] == order["quote"], invoice
    until(lambda: not rest(address, "GET", "/v1/basket", token=token)[1].get("lines"))
    assert rest(address, "GET", "/v1/orders", token=token)[1]["orders"] == [order]
    assert rest(address, "POST", f"/v1/orders/{order['id']}/refund", {}, token)[0] == 403, "the clerk refunds"
    bob = rest(address, "POST", "/v1/users", {"name": "bob", "password": "a password"})[1]["token"]
    for path in ("", "/invoice", "/shipment"):
        assert rest(address, "GET", f"/v1/orders/{order['id']}{path}", token=bob)[0] == 404, "another's"


def journeys(curtail, run, scratch, products, users):
    """The files of journeys, with the numbers of this shop: users are called by the number of a product."""
    folder = os.path.join(os.path.dirname(__file__), "../journeys")
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="ascii") as file:
            text = file.read()
        for written, here in (("uniform 1 1000", f"uniform 1 {products}"), ("uniform 1 99", f"uniform 1 {users - 1}"),
                              ("uniform 0 98", f"uniform 0 {users - 2}")):
            text = text.replace(written, here)
        with open(f"{scratch}/{name}", "w", encoding="ascii") as file:
            file.write(text)
        run(curtail, "load", "shop/front-end", "--journey", f"{scratch}/{name}", "--rps", "5", "--requests", "6", "--timeout", "10s",
            "--json", scratch + "/run.json", codes=(0, 98))
        result = json.load(open(scratch + "/run.json"))["runs"][0]
        assert result["requests"]["ok"] == result["requests"]["sent"] == 6, result
        assert all(step["ok"] == 6 for step in result["steps"]), result["steps"]


def until(holds):
    """Waits until something holds that follows an answer within a second or so."""
    deadline = time.monotonic() + MAX_WAIT_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def live(address, train):
    """A guest fills a basket and becomes a customer, who shares wishes, is told of products, and leaves."""
    product = rest(address, "GET", "/v1/products?limit=1")[1]["products"][0]
    line = {"product": product["id"], "count": 2}
    guest = rest(address, "POST", "/v1/guests", {})[1]["token"]
    assert rest(address, "POST", "/v1/basket", line, guest)[1]["lines"] == [line]
    assert rest(address, "POST", "/v1/addresses", {"address": {}}, guest)[0] == 401, "a guest has a basket only"
    credentials = {"name": "ada", "password": "a password"}
    token = rest(address, "POST", "/v1/users", credentials)[1]["token"]
    for _ in range(2):
        assert rest(address, "POST", "/v1/basket/adopt", {"guestToken": guest}, token)[1]["lines"] == [line]
    until(lambda: rest(address, "GET", "/v1/basket", token=guest)[0] == 401)

    assert product["tags"][0] in [tag["name"] for tag in rest(address, "GET", "/v1/tags")[1]["tags"]]
    words = urllib.parse.quote(product["name"])
    until(lambda: product in rest(address, "GET", f"/v1/search?text={words}")[1].get("products", []))
    with urllib.request.urlopen(f"http://{address}/v1/pictures/{product['picture']}", timeout=MAX_WAIT_S) as picture:
        assert picture.headers["content-type"] == "image/png" and picture.read(4) == b"\x89PNG"
    assert rest(address, "GET", "/v1/pictures/999999")[0] == 404
    assert rest(address, "GET", "/v1/discounts")[1]["discounts"][0]["code"] == "WELCOME"

    assert rest(address, "POST", "/v1/wishlist", {"product": "999999"}, token)[0] == 404
    assert rest(address, "POST", "/v1/wishlist", {"product": product["id"]}, token)[0] == 200
    wishes = rest(address, "POST", "/v1/wishlist/share", {}, token)[1]
    assert [wish["product"] for wish in wishes["wishes"]] == [product["id"]], wishes
    shared = f"/v1/wishlists/{wishes['share']}"
    assert rest(address, "GET", shared) == (200, wishes)

    assert rest(address, "GET", "/v1/recommendations", token=token)[0] == 400, "nothing was learned"
    told = train()
    assert "products bought by" in told and "RMSE" in told, told
    best = rest(address, "GET", "/v1/recommendations?limit=5", token=token)[1]["products"]
    assert len(best) == 5 and product not in best, best

    assert rest(address, "GET", "/v1/account", token=token)[1]["name"] == "ada"
    assert rest(address, "DELETE", "/v1/account", {**credentials, "password": "another one"})[0] == 401
    assert rest(address, "DELETE", "/v1/account", credentials) == (200, {"changed": True})
    assert rest(address, "POST", "/v1/sessions", credentials)[0] == 401
    assert rest(address, "POST", "/v1/wishlist", {"product": product["id"]}, token)[0] == 401, "it comes late"
    until(lambda: rest(address, "GET", shared)[0] == 404)
    assert rest(address, "POST", "/v1/users", credentials)[0] == 200, "the name is free"


def main(form, curtail, shop):
    with tempfile.TemporaryDirectory() as scratch:
        env = {**os.environ, "XDG_RUNTIME_DIR": scratch, "XDG_STATE_HOME": scratch + "/state", "NO_COLOR": "1",
               "PATH": os.path.dirname(shop) + ":" + os.environ["PATH"]}

        def run(*args, codes=(0,)):
            done = subprocess.run(args, env=env, text=True, capture_output=True, timeout=MAX_WAIT_S)
            print("$", *args, f"-> {done.returncode}\n{done.stdout}{done.stderr}")
            assert done.returncode in codes, done.returncode
            return done.stdout

        def audit():
            deadline = time.monotonic() + MAX_WAIT_S
            while "is still open" in subprocess.run([shop, "audit"], env=env, text=True, capture_output=True).stderr:
                assert time.monotonic() < deadline
            run(shop, "audit")

        run(curtail, "up", "shop", "--detach", "--set", "users=4", "--set", "products=50", "--set", "orders=20", *FORMS[form])
        try:
            addresses = {p["service"]: p["address"] for p in json.loads(run(curtail, "ps", "--json"))[0]["processes"]}
            for mix in MIXES:
                run(curtail, "load", "shop", "--mix", mix, "--rps", "40", "--requests", "20", "--timeout", "10s", "--json",
                    scratch + "/run.json", codes=(0, 98))
                result = json.load(open(scratch + "/run.json"))["runs"][0]
                assert result["requests"]["ok"] == result["requests"]["sent"] == 20, result
            journeys(curtail, run, scratch, products=50, users=4)
            if form != "polyglot":  # the front end in node has no page
                use_page(addresses["load-balancer"])
            use(addresses["load-balancer"])
            live(addresses["load-balancer"], lambda: run(shop, "train"))
            audit()
            front_end = addresses["front-end"]
            run(shop, "fill", "--target", front_end, "--users", "1", "--products", "50", "--orders", "20")  # finds all
            run(shop, "fill", "--target", front_end, "--users", "1", "--pictures", scratch, codes=(104,))
            audit()
        finally:
            run(curtail, "down", "shop")


if __name__ == "__main__":
    main(*sys.argv[1:])
