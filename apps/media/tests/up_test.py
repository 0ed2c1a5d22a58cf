#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Starts the whole application, loads it, and uses it over REST. Usage: up_test.py FORM CURTAIL MEDIA"""
import base64
import hashlib
import hmac
import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../kit/testing"))
from rest import MAX_WAIT_S, rest, use_page  # noqa: E402

FORMS = {"processes": ["--stores", "postgresql,payment-auth-postgresql,movie-db", "--scale", "2"], "monolith": ["--monolith"],
         "nginx": ["--variant", "movie-files=nginx"]}
PROCESSES = {"processes": 45, "monolith": 6, "nginx": 31}
SKIPPED = 77
SEGMENT = bytes(range(256)) * 2000


def use(address, files, data):
    """A user adds a movie, reviews, rents and watches it, as clients of HTTP do."""
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
    assert rest(address, "GET", "/v1/search?firstYear=1959&lastYear=1959&genre=Drama")[1]["movies"][0] == added, "the newest"

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
    watch(address, files, data, token, session["user"], added["id"])
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


def get(address, path, headers=None):
    """Status, headers and bytes of a path, which is sent as it is."""
    connection = http.client.HTTPConnection(address, timeout=MAX_WAIT_S)
    connection.request("GET", path, headers=headers or {})
    reply = connection.getresponse()
    return reply.status, reply.headers, reply.read()


def write_video(folder):
    """A video of two segments, in the form that `media render` gives it."""
    os.makedirs(folder + "/300k")
    files = {"main.m3u8": "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=300000,RESOLUTION=320x180\n300k/index.m3u8\n",
             "300k/index.m3u8": "#EXTM3U\n#EXTINF:4.0,\nseg000.ts\n#EXTINF:4.0,\nseg001.ts\n#EXT-X-ENDLIST\n"}
    for name, text in files.items():
        with open(f"{folder}/{name}", "w", encoding="ascii") as file:
            file.write(text)
    for number in range(2):
        with open(f"{folder}/300k/seg00{number}.ts", "wb") as file:
            file.write(SEGMENT[number:])


def sign(data, user, movie, rental, ends_s):
    """A pass as the application signs it."""
    with open(data + "/secret", "rb") as file:
        secret = file.read()

    def encode(raw):
        return base64.urlsafe_b64encode(raw).rstrip(b"=")

    claims = {"iss": "media streams", "sub": str(user), "jti": f"{movie}.{rental}.{ends_s * 1000}", "exp": int(time.time()) + 1000}
    text = encode(b'{"alg":"HS256"}') + b"." + encode(json.dumps(claims).encode())
    return (text + b"." + encode(hmac.new(secret, text, hashlib.sha256).digest())).decode()


def watch(address, files, data, token, user, movie):
    """A player with a pass gets the files of its movie, until the rental is refunded."""
    assert rest(address, "GET", f"/v1/movies/{movie}/video")[0] == 404
    write_video(data + "/videos/0")
    assert rest(address, "GET", f"/v1/movies/{movie}/video")[1]["lengthMs"] == 8000
    assert rest(address, "POST", f"/v1/movies/{movie}/streams", None, token)[0] == 400, "not rented"
    rental = rest(address, "POST", "/v1/rentals", {"movie": movie, "days": 1}, token)[1]
    status, ticket = rest(address, "POST", f"/v1/movies/{movie}/streams", None, token)
    assert status == 200 and ticket["endsMs"] == rental["endsMs"], ticket
    path = ticket["playlist"].removesuffix("main.m3u8")
    status, headers, body = get(files, ticket["playlist"])
    assert status == 200 and b"300k/index.m3u8" in body, (status, body)
    assert headers["content-type"] == "application/vnd.apple.mpegurl", headers

    def status_of(path):
        return get(files, path)[0]

    for name in ("../secret", "300k/../../secret", "%2e%2e/secret", "300k/%2e%2e/%2e%2e/secret", "poster.png"):
        assert status_of(path + name) in (400, 403, 404), name
    assert status_of(path.replace(f"/{movie}/", "/7/") + "main.m3u8") == 403, "a foreign pass"
    assert status_of(path[:-5] + "AAAA/main.m3u8") == 403, "a forged pass"
    now_s = int(time.time())
    mine = sign(data, user, movie, rental["id"], now_s + 100)
    assert status_of(f"/v1/streams/{movie}/{mine}/main.m3u8") == 200, "signed as the application does"
    ended = sign(data, user, movie, rental["id"], now_s - 100)
    assert status_of(f"/v1/streams/{movie}/{ended}/main.m3u8") == 410

    assert rest(address, "POST", f"/v1/rentals/{rental['id']}/refund", None, token)[0] == 200
    deadline = time.monotonic() + 10.5
    while status_of(ticket["playlist"]) == 200:
        assert time.monotonic() < deadline, "a refund takes effect within 10 s"
    assert status_of(ticket["playlist"]) == 403
    assert status_of(path + "300k/seg000.ts") == 403

    rental = rest(address, "POST", "/v1/rentals", {"movie": movie, "days": 1}, token)[1]
    ticket = rest(address, "POST", f"/v1/movies/{movie}/streams", None, token)[1]
    segment = ticket["playlist"].replace("main.m3u8", "300k/seg001.ts")
    assert status_of(ticket["playlist"]) == 200, "and the segment is watched all the same"
    status, headers, body = get(files, segment)
    assert status == 200 and body == SEGMENT[1:] and headers["content-type"] == "video/mp2t", (status, headers)
    assert rest(address, "POST", f"/v1/rentals/{rental['id']}/refund", None, token)[0] == 400, "it was watched"
    status, headers, body = get(files, segment, {"range": "bytes=1000-1999"})
    assert status == 206 and body == SEGMENT[1001:2001], status
    assert headers["content-range"] == f"bytes 1000-1999/{len(SEGMENT) - 1}", headers
    assert get(files, segment, {"range": "bytes=9999999-"})[0] == 416
    assert get(address, segment)[2] == SEGMENT[1:], "the load balancer has them, too, for the page"
    status, headers, body = get(address, segment, {"range": "bytes=1000-1999"})
    assert status == 206 and body == SEGMENT[1001:2001], status
    assert get(address, ticket["playlist"])[1]["content-type"] == "application/vnd.apple.mpegurl"


def wrk2(address, path, values, form=True):
    """The status of what the scripts of DeathStarBench's release send."""
    body = urllib.parse.urlencode(values) if form else json.dumps(values)
    connection = http.client.HTTPConnection(address, timeout=MAX_WAIT_S)
    connection.request("POST", "/wrk2-api/" + path, body, {"content-type": "application/x-www-form-urlencoded" if form else "application/json"})
    reply = connection.getresponse()
    reply.read()
    return reply.status


def use_wrk2(address):
    """Fills and loads as the release does: users, casts, movies, plots, reviews."""
    user = {"first_name": "first_name_1", "last_name": "last_name_1", "username": "username_1", "password": "password_1"}
    assert wrk2(address, "user/register", user) == 200
    assert wrk2(address, "user/register", user) == 409
    assert wrk2(address, "user/register", {"username": "username_2"}) == 400
    cast = {"cast_info_id": 85, "name": "Johnny Depp", "gender": True, "intro": "An actor."}
    movie = {"movie_id": "299534", "title": "Avengers: Endgame", "plot_id": 299534, "thumbnail_ids": ["/a.jpg"], "photo_ids": [],
             "video_ids": [], "avg_rating": 8.3, "num_rating": 100,
             "casts": [{"cast_id": 1, "character": "Nobody", "cast_info_id": 85}]}
    for _ in range(2):  # a repetition changes nothing
        assert wrk2(address, "cast-info/write", cast, form=False) == 200
        assert wrk2(address, "movie-info/write", movie, form=False) == 200
        assert wrk2(address, "plot/write", {"plot_id": 299534, "plot": "The end."}, form=False) == 200
        assert wrk2(address, "movie/register", {"title": movie["title"], "movie_id": "299534"}) == 200
    assert wrk2(address, "movie/register", {"title": "", "movie_id": "1"}) == 400
    review = {"counter": 1, "username": "username_1", "password": "password_1", "title": movie["title"], "rating": 0, "text": "x" * 256}
    for _ in range(2):
        assert wrk2(address, "review/compose", review) == 200
    assert wrk2(address, "review/compose", {**review, "username": "username_9"}) == 404
    assert wrk2(address, "review/compose", {**review, "title": "No such movie"}) == 404
    assert wrk2(address, "review/compose", {**review, "rating": 11}) == 400
    status, page = rest(address, "GET", "/v1/movies/299534")
    assert status == 200 and page["cast"] == ["Johnny Depp"] and page["plot"] == "The end.", page
    assert page["rating"] == {"reviews": "2"} and len(page["reviews"]) == 2, page


def promote(address):
    """A user promotes a movie; another one sees the ad, and clicks it as often as it was shown."""
    tokens = [rest(address, "POST", "/v1/users", {"name": name, "password": "a password"})[1]["token"] for name in ("ada", "ben")]
    movie = rest(address, "GET", "/v1/search?firstYear=1870&limit=1")[1]["movies"][0]
    assert rest(address, "POST", "/v1/ads", {"movie": "7"}, tokens[0])[0] == 404
    status, ad = rest(address, "POST", "/v1/ads", {"movie": movie["id"]}, tokens[0], key="my ad")
    assert status == 200 and ad["movie"] == movie, ad
    assert rest(address, "POST", "/v1/ads", {"movie": movie["id"]}, tokens[0], key="my ad") == (200, ad)
    assert rest(address, "GET", "/v1/ads?limit=5", token=tokens[0]) == (200, {}), "it is the caller's own"
    assert rest(address, "POST", f"/v1/ads/{ad['id']}/click", None, tokens[1])[0] == 400, "not shown yet"
    assert rest(address, "GET", "/v1/ads?limit=5", token=tokens[1]) == (200, {"ads": [ad]})
    assert rest(address, "POST", f"/v1/ads/{ad['id']}/click", None, tokens[1]) == (200, ad)
    assert rest(address, "POST", f"/v1/ads/{ad['id']}/click", None, tokens[1])[0] == 400
    assert rest(address, "DELETE", f"/v1/ads/{ad['id']}", token=tokens[1])[0] == 404, "another's"
    assert rest(address, "DELETE", f"/v1/ads/{ad['id']}", token=tokens[0])[0] == 200
    assert rest(address, "GET", "/v1/ads", token=tokens[1]) == (200, {})


def recommend(address, train):
    """A user who has reviewed a movie is told of others, once the reviews were learned from."""
    token = rest(address, "POST", "/v1/users", {"name": "bob", "password": "a password"})[1]["token"]
    assert rest(address, "GET", "/v1/recommendations", token=token) == (200, {"untrained": True}), "nothing was learned"
    told = train()
    assert "reviews of" in told and "RMSE" in told, told
    best = rest(address, "GET", "/v1/recommendations?limit=5", token=token)[1]["movies"]
    assert len(best) == 5, best
    review = {"title": best[0]["title"], "year": best[0]["year"], "text": "Seen", "stars": 9}
    assert rest(address, "POST", "/v1/reviews", review, token)[0] == 200
    others = rest(address, "GET", "/v1/recommendations?limit=5", token=token)[1]["movies"]
    assert others[:4] == best[1:], (best, others)
    similar = rest(address, "GET", f"/v1/movies/{best[0]['id']}/similar?limit=3")[1]["movies"]
    assert len(similar) == 3 and best[0] not in similar, similar
    assert rest(address, "GET", "/v1/recommendations")[0] == 401


def main(form, curtail, media):
    if form == "nginx" and shutil.which("nginx") is None:
        print("nginx is not installed")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as scratch:
        env = {**os.environ, "XDG_RUNTIME_DIR": scratch, "XDG_STATE_HOME": scratch + "/state", "NO_COLOR": "1",
               "PATH": os.path.dirname(media) + ":" + os.environ["PATH"]}

        def run(*args, codes=(0,), told=""):
            done = subprocess.run(args, env=env, text=True, capture_output=True, timeout=MAX_WAIT_S)
            print("$", *args, f"-> {done.returncode}\n{done.stdout}{done.stderr}")
            assert done.returncode in codes, done.returncode
            assert told in done.stderr, told
            return done.stdout

        run(curtail, "up", "media", "--detach", "--set", "users=4", "--set", "movies=50", "--set", "reviews=30",
            "--set", "wrk2_without_authentication=on", *FORMS[form])
        try:
            processes = json.loads(run(curtail, "ps", "--json"))[0]["processes"]
            assert len(processes) == PROCESSES[form], processes
            for mix in ("mixed", "browse", "compose", "rent"):
                run(curtail, "load", "media", "--mix", mix, "--rps", "40", "--requests", "20", "--timeout", "10s", "--json",
                    scratch + "/run.json", codes=(0, 98))
                result = json.load(open(scratch + "/run.json"))["runs"][0]
                assert result["requests"]["ok"] == result["requests"]["sent"] == 20, result
            addresses = {p["service"]: p["address"] for p in processes}
            use_page(addresses["load-balancer"])
            use(addresses["load-balancer"], addresses["movie-files"], scratch + "/state/curtail/media")
            promote(addresses["load-balancer"])
            use_wrk2(addresses["load-balancer"])
            if "service-discovery" in addresses:
                listed = run(media, "instances", "--target", addresses["service-discovery"]).split("\n")
                assert {line.split()[0] for line in listed if line} == {"front-end", "streaming"}, listed
                opened = run(curtail, "load", "media", "--mix", "open", "--rps", "40", "--requests", "20", "--timeout", "10s", "--json",
                             scratch + "/run.json", codes=(0, 98))
                assert json.load(open(scratch + "/run.json"))["runs"][0]["requests"]["ok"] == 20, opened
            if form == "monolith":  # a caller who says who it is
                inner = rest(addresses["load-balancer"], "POST", "/curtail.media.Streaming/Open", {"user": "1", "movie": "1"})
                assert inner[0] == 404, inner
                for command in (("maintain", "--job", "sums"), ("instances",)):  # clients reach the front end alone
                    run(media, *command, "--target", addresses["front-end"], codes=(104,), told="curtail ps")
            else:
                for job in ("sums", "index", "books"):
                    run(media, "maintain", "--job", job, "--target", addresses["maintenance"])
            recommend(addresses["load-balancer"], lambda: run(media, "train"))
            films = scratch + "/films"
            os.mkdir(films)
            with open(films + "/a.json", "w", encoding="ascii") as file:
                json.dump([{"title": "From a file", "year": 1900, "cast": ["A"], "genres": [], "extract": "P"}] * 2, file)
            front_end = next(p["address"] for p in processes if p["service"] == "front-end")
            fill = (media, "fill", "--target", front_end, "--users", "1", "--films", films, "--reviews", "1")
            run(*fill)
            with open(scratch + "/state/curtail/media/load-users", encoding="ascii") as file:
                token = file.readline().split()[2]
            wallet = rest(addresses["load-balancer"], "GET", "/v1/wallet", token=token)
            run(*fill)
            assert rest(addresses["load-balancer"], "GET", "/v1/wallet", token=token) == wallet, "it has its movie"
            run(media, "fill", "--target", front_end, "--users", "1", "--films", films + "/none", codes=(104,))
        finally:
            run(curtail, "down", "media")


if __name__ == "__main__":
    main(*sys.argv[1:])
