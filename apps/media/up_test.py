#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Starts the whole application, loads it, and uses it over REST. Usage: up_test.py FORM CURTAIL MEDIA"""
import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../kit/testing"))
from rest import MAX_WAIT_S, rest  # noqa: E402

FORMS = {"processes": ["--stores", "postgresql,rental-db,ledger-db", "--scale", "2"], "monolith": ["--monolith"]}
PROCESSES = {"processes": 32, "monolith": 5}


def use(address):
    """Two users add a movie and review it, as clients of HTTP do."""
    credentials = {"name": "eve", "password": "a password"}
    status, session = rest(address, "POST", "/v1/users", credentials)
    assert status == 200, session
    token = session["token"]
    assert rest(address, "POST", "/v1/sessions", credentials)[0] == 200
    assert rest(address, "POST", "/v1/sessions", {**credentials, "password": "another one"})[0] == 401

    movie = {"title": "Die Brücke", "year": 1959, "genres": ["Drama"], "cast": ["Fritz Wepper"], "plot": "A bridge."}
    assert rest(address, "POST", "/v1/movies", movie)[0] == 401
    status, added = rest(address, "POST", "/v1/movies", movie, token)
    assert status == 200 and added["addedBy"] == session["user"], added
    assert rest(address, "POST", "/v1/movies", movie, token)[0] == 409
    assert rest(address, "GET", "/v1/movies?title=Die%20Br%C3%BCcke") == (200, added)
    assert rest(address, "GET", "/v1/movies?title=Die%20Br%C3%BCcke&year=1960")[0] == 404

    deadline = time.monotonic() + MAX_WAIT_S
    while not (found := rest(address, "GET", "/v1/search?text=fritz%20bridge")[1]).get("movies"):
        assert time.monotonic() < deadline
    assert found == {"movies": [added]}, found
    assert rest(address, "GET", "/v1/search?text=bridge&genre=Drama&firstYear=1959&lastYear=1959") == (200, found)
    for narrow in ("genre=Western", "firstYear=1960", "lastYear=1958", "skip=1"):
        assert rest(address, "GET", f"/v1/search?text=bridge&{narrow}") == (200, {}), narrow
    assert rest(address, "GET", "/v1/search?text=.")[0] == 400

    review = {"title": "Die Brücke", "year": 1959, "text": "Großartig", "stars": 10}
    assert rest(address, "POST", "/v1/reviews", review)[0] == 401
    status, written = rest(address, "POST", "/v1/reviews", review, token, key="my first")
    assert status == 200 and written["text"] == "Großartig" and written["movie"] == added["id"], written
    assert rest(address, "POST", "/v1/reviews", review, token, key="my first") == (200, written)
    assert rest(address, "POST", "/v1/reviews", review, token)[0] == 409
    for change, refused in (({"stars": 11}, 400), ({"text": ""}, 400), ({"text": "x" * 4097}, 400), ({"text": "\ud800"}, 400),
                            ({"title": "Unknown"}, 404)):
        assert rest(address, "POST", "/v1/reviews", {**review, "viewing": "1", **change}, token)[0] == refused, change
    assert rest(address, "POST", "/v1/reviews", {**review, "viewing": "1", "stars": 4}, token)[0] == 200

    status, page = rest(address, "GET", f"/v1/movies/{added['id']}")
    assert status == 200 and page["cast"] == ["Fritz Wepper"] and page["plot"] == "A bridge.", page
    assert page["rating"] == {"reviews": "2", "stars": "14"} and page["reviews"][1] == written, page
    assert "missing" not in page, page
    assert rest(address, "GET", "/v1/movies/7")[0] == 404
    newest = rest(address, "GET", f"/v1/movies/{added['id']}/reviews?limit=1")[1]
    older = rest(address, "GET", f"/v1/movies/{added['id']}/reviews?limit=1&before={newest['next']}")[1]
    assert older["reviews"] == [written], older
    assert rest(address, "GET", "/v1/users/eve/reviews")[1]["reviews"] == page["reviews"]
    assert rest(address, "GET", "/v1/users/nobody/reviews")[0] == 404
    assert rest(address, "GET", f"/v1/movies/{added['id']}/rating")[1] == page["rating"]
    assert rest(address, "GET", f"/v1/movies/{added['id']}/rating/mine", token=token)[1] == page["rating"]

    rent(address, token, added["id"])
    assert rest(address, "DELETE", "/v1/sessions", token=token)[0] == 200
    while rest(address, "POST", "/v1/reviews", {**review, "stars": 11}, token)[0] != 401:  # at the other front end within a second
        assert time.monotonic() < deadline


def rent(address, token, movie):
    """A user pays in, rents a movie, and has the money given back."""
    rental = {"movie": movie, "days": 2}
    assert rest(address, "POST", "/v1/rentals", rental)[0] == 401
    assert rest(address, "POST", "/v1/rentals", rental, token)[0] == 400, "the wallet is empty"
    assert rest(address, "GET", "/v1/wallet", token=token) == (200, {})
    for cents in (0, -5, 10**9 + 1):
        assert rest(address, "POST", "/v1/wallet/deposits", {"cents": cents}, token)[0] == 400
    paid_in = rest(address, "POST", "/v1/wallet/deposits", {"cents": 500}, token, key="pay in")
    assert paid_in == (200, {"cents": "500", "version": "1"}), paid_in
    assert rest(address, "POST", "/v1/wallet/deposits", {"cents": 500}, token, key="pay in") == paid_in
    for wrong, refused in (({"days": 0}, 400), ({"days": 31}, 400), ({"movie": "7"}, 404)):
        assert rest(address, "POST", "/v1/rentals", {**rental, **wrong}, token)[0] == refused, wrong
    status, rented = rest(address, "POST", "/v1/rentals", rental, token, key="my rental")
    assert status == 200 and rented["state"] == "ACTIVE" and rented["cents"] == "300", rented
    assert rest(address, "POST", "/v1/rentals", rental, token, key="my rental") == (200, rented)
    assert rest(address, "POST", "/v1/rentals", {**rental, "days": 1}, token, key="my rental")[0] == 409
    assert rest(address, "GET", f"/v1/rentals/{rented['id']}", token=token) == (200, rented)
    assert rest(address, "GET", "/v1/wallet", token=token)[1]["cents"] == "200"
    status, refunded = rest(address, "POST", f"/v1/rentals/{rented['id']}/refund", None, token)
    assert status == 200 and refunded == {**rented, "state": "REFUNDED"}, refunded
    assert rest(address, "GET", "/v1/wallet", token=token)[1]["cents"] == "500"
    assert rest(address, "POST", "/v1/rentals/7/refund", None, token)[0] == 404
    mine = rest(address, "GET", "/v1/rentals", token=token)[1]["rentals"]
    assert [one["state"] for one in mine] == ["REFUNDED", "REFUSED"], mine


def main(form, curtail, media):
    with tempfile.TemporaryDirectory() as scratch:
        env = {**os.environ, "XDG_RUNTIME_DIR": scratch, "XDG_STATE_HOME": scratch + "/state", "NO_COLOR": "1",
               "PATH": os.path.dirname(media) + ":" + os.environ["PATH"]}

        def run(*args, codes=(0,)):
            done = subprocess.run(args, env=env, text=True, capture_output=True, timeout=MAX_WAIT_S)
            print("$", *args, f"-> {done.returncode}\n{done.stdout}{done.stderr}")
            assert done.returncode in codes, done.returncode
            return done.stdout

        run(curtail, "up", "media", "--detach", "--set", "users=4", "--set", "movies=50", "--set", "reviews=30", *FORMS[form])
        try:
            processes = json.loads(run(curtail, "ps", "--json"))[0]["processes"]
            assert len(processes) == PROCESSES[form], processes
            for mix in ("mixed", "browse", "compose", "rent"):
                run(curtail, "load", "media", "--mix", mix, "--rps", "40", "--requests", "20", "--timeout", "10s", "--json",
                    scratch + "/run.json", codes=(0, 98))
                result = json.load(open(scratch + "/run.json"))["runs"][0]
                assert result["requests"]["ok"] == result["requests"]["sent"] == 20, result
            use(next(p["address"] for p in processes if p["service"] == "load-balancer"))
            films = scratch + "/films"
            os.mkdir(films)
            with open(films + "/a.json", "w", encoding="ascii") as file:
                json.dump([{"title": "From a file", "year": 1900, "cast": ["A"], "genres": [], "extract": "P"}] * 2, file)
            front_end = next(p["address"] for p in processes if p["service"] == "front-end")
            run(media, "fill", "--target", front_end, "--users", "1", "--films", films, "--reviews", "1")
            run(media, "fill", "--target", front_end, "--users", "1", "--films", films + "/none", codes=(104,))
        finally:
            run(curtail, "down", "media")


if __name__ == "__main__":
    main(*sys.argv[1:])
