#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the standby of one shard of movie-db its primary while users add movies and read pages: each movie that was acknowledged is
there, pages are answered meanwhile, and writes go on after it.

Usage: failover_test.py CURTAIL MEDIA
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../kit/testing"))
from rest import MAX_WAIT_S, rest  # noqa: E402

WRITERS, MOVIES = 2, 10


class User(threading.Thread):
    """Acts again and again until it is stopped. `failure` is what ended it before."""

    def __init__(self, act):
        super().__init__()
        self.act, self.done, self.stopped, self.failure = act, [], threading.Event(), None

    def run(self):
        try:
            while not self.stopped.is_set():
                self.done.append(self.act(len(self.done)))
        except BaseException as failure:
            self.failure = failure

    def await_more(self, count):
        limit, least = time.monotonic() + MAX_WAIT_S, len(self.done) + count
        while len(self.done) < least:
            assert self.failure is None and time.monotonic() < limit, self.failure
            time.sleep(0.02)


def add_movie(address, token, title):
    """Adds a movie, again until the answer says that it is there. Returns the title and how long that took."""
    movie = {"title": title, "year": 2000, "genres": ["Short"], "cast": ["Somebody"], "plot": title}
    begun = time.monotonic()
    while True:
        status, reply = rest(address, "POST", "/v1/movies", movie, token)
        if status in (200, 409):
            return title, time.monotonic() - begun
        assert status >= 500 and time.monotonic() < begun + MAX_WAIT_S, (status, reply)
        time.sleep(0.02)


def read_page(address, movie):
    """The parts that it lacks; None if the movie could not be read in time."""
    status, page = rest(address, "GET", f"/v1/movies/{movie['id']}")
    if status >= 500:
        return None
    assert status == 200 and page["movie"] == movie, page
    return page.get("missing", [])


def expect_nothing_lost(address, titles):
    for title in titles:
        status, movie = rest(address, "GET", f"/v1/movies?title={title}&year=2000")
        assert status == 200, (title, movie)
        limit = time.monotonic() + MAX_WAIT_S
        while (page := rest(address, "GET", f"/v1/movies/{movie['id']}")[1]).get("missing"):
            assert time.monotonic() < limit, page
        assert page.get("plot") == title and page.get("cast") == ["Somebody"], page


def main(curtail, media):
    with tempfile.TemporaryDirectory() as scratch:
        env = {**os.environ, "XDG_RUNTIME_DIR": scratch, "XDG_STATE_HOME": scratch + "/state", "NO_COLOR": "1",
               "PATH": os.path.dirname(media) + ":" + os.environ["PATH"]}

        def run(*args, codes=(0,)):
            done = subprocess.run([curtail, *args], env=env, text=True, capture_output=True, timeout=MAX_WAIT_S)
            print("$ curtail", *args, f"-> {done.returncode}\n{done.stdout}{done.stderr}")
            assert done.returncode in codes, done.returncode
            return done.stdout + done.stderr

        run("up", "media", "--detach", "--set", "users=2", "--set", f"movies={MOVIES}", "--set", "reviews=5", "--stores", "movie-db",
            "--set", "movie-db.replicas=2")
        try:
            processes = {p["name"]: p for p in json.loads(run("ps", "--json"))[0]["processes"]}
            assert {f"movie-db-{shard}.{replica}" for shard in (0, 1) for replica in (0, 1)} < set(processes), sorted(processes)
            address = processes["load-balancer"]["address"]
            token = rest(address, "POST", "/v1/users", {"name": "eve", "password": "a password"})[1]["token"]
            limit = time.monotonic() + MAX_WAIT_S
            while len(known := rest(address, "GET", "/v1/search?firstYear=1870")[1].get("movies", [])) < MOVIES:
                assert time.monotonic() < limit, known
            users = [User(lambda i, w=w: add_movie(address, token, f"movie{w}x{i}")) for w in range(WRITERS)]
            users.append(User(lambda i: read_page(address, known[i % len(known)])))
            assert "name one: media/movie-db.0" in run("failover", "media/movie-db", codes=(104,))
            for user in users:
                user.start()
            try:
                for shard in (1, 0):
                    for user in users:
                        user.await_more(10)
                    told = run("failover", f"media/movie-db.{shard}")
                    assert re.search("no write was possible for", told), told
                for user in users:
                    user.await_more(10)
            finally:
                for user in users:
                    user.stopped.set()
                    user.join()
            assert all(user.failure is None for user in users), [user.failure for user in users]
            added = [one for user in users[:WRITERS] for one in user.done]
            print(len(added), "movies, the slowest after", max(seconds for _, seconds in added), "s;", len(users[-1].done),
                  "pages, of which", sum(bool(missing) for missing in users[-1].done), "lacked a part")
            failed = users[-1].done.count(None)
            assert failed * 10 <= len(users[-1].done), f"{failed} of {len(users[-1].done)} pages could not be read"
            expect_nothing_lost(address, [title for title, _ in added])
        finally:
            run("down", "media")


if __name__ == "__main__":
    main(*sys.argv[1:])
