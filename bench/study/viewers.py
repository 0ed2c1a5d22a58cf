# SPDX-License-Identifier: Apache-2.0
"""Viewers who play rented movies at the pace of the movies, each segment before it is due: how long segments take, and how often a viewer
has to wait, with the files served by the gateway and by nginx."""

import http.client
import json
import pathlib
import random
import re
import threading
import time

import measure
import picture
import session

VIEWERS = (10, 50)
FORMS = {"gateway": [], "nginx": ["--variant", "movie-files=nginx"]}
RENDITION = "800k"
VIDEOS, VIDEO_S = 4, 60
AHEAD_S = 8  # of video that a viewer keeps
BUDGET = {"rounds": 3, "seconds": 20}
QUICK = {"rounds": 1, "seconds": 3}


def get(connection, verb, path, token=None):
    connection.request(verb, path, headers={"authorization": f"Bearer {token}"} if token else {})
    reply = connection.getresponse()
    body = reply.read()
    if reply.status != 200:
        raise RuntimeError(f"{verb} {path}: {reply.status} {body[:200]!r}")
    return body


def segments(playlist):
    """The name and the length of each, in seconds."""
    return [(name, float(length)) for length, name in re.findall(r"#EXTINF:([\d.]+),\n(\S+)", playlist)]


class Viewer(threading.Thread):
    """Plays a movie from a segment on, again and again. A stall moves all that comes after it."""

    def __init__(self, front, files, user, start, end):
        super().__init__()
        self.front, self.files, self.user, self.start_at, self.end_at = front, files, user, start, end
        self.took_us, self.stalls, self.failure = [], 0, None

    def run(self):
        try:
            self.play()
        except (OSError, RuntimeError, http.client.HTTPException) as failure:
            self.failure = failure

    def play(self):
        token, movie = self.user
        ticket = json.loads(get(http.client.HTTPConnection(self.front, timeout=10), "POST", f"/v1/movies/{movie}/streams", token))
        folder = ticket["playlist"].removesuffix("main.m3u8") + RENDITION
        files = http.client.HTTPConnection(self.files, timeout=10)
        listed = segments(get(files, "GET", folder + "/index.m3u8").decode())
        due = self.start_at
        for number in range(10**9):
            name, length = listed[number % len(listed)]
            time.sleep(max(0, due - AHEAD_S - time.monotonic()))
            begun = time.monotonic()
            if begun >= self.end_at:
                return
            get(files, "GET", f"{folder}/{name}")
            done = time.monotonic()
            self.took_us.append(1e6 * (done - begun))
            if number > 0 and done > due:
                self.stalls += 1
                due = done
            due = max(due, done) if number == 0 else due
            due += length


def watch(up, count, seconds, seed):
    """The results of viewers who begin at random within four seconds."""
    addresses = {process["service"]: process["address"] for process in up.processes()}
    lines = (up.data / "load-users").read_text().splitlines()
    users = [(line.split()[2], line.split()[3]) for line in lines]
    dice, begun = random.Random(seed), time.monotonic()
    viewers = [
        Viewer(addresses["load-balancer"], addresses["movie-files"], users[i % len(users)], begun + dice.uniform(0, 4), begun + seconds)
        for i in range(count)
    ]
    for viewer in viewers:
        viewer.start()
    for viewer in viewers:
        viewer.join()
    for viewer in viewers:
        if viewer.failure:
            raise SystemExit(f"a viewer failed: {viewer.failure}")
    took = sorted(us for viewer in viewers for us in viewer.took_us)
    return {
        "segments": len(took),
        "p50_us": took[len(took) // 2],
        "p99_us": took[min(len(took) - 1, len(took) * 99 // 100)],
        "stalls": sum(viewer.stalls for viewer in viewers),
    }


def run(s):
    program = pathlib.Path(s.curtail).resolve().parents[2] / "apps" / s.facts.app / s.facts.app
    rounds = []
    for number in range(s.rounds):
        rounds.append({})
        for k, (form, flags) in enumerate(FORMS.items()):
            s.step(number * len(FORMS) + k, s.rounds * len(FORMS), form)
            with s.up(flags=flags) as up:
                measure.run([str(program), "render", "--data", str(up.data), "--videos", str(VIDEOS), "--seconds", str(VIDEO_S)])
                rounds[-1][form] = {str(count): watch(up, count, s.seconds, 1 + number) for count in VIEWERS}
    return {"rounds": rounds}


def values(result, form, count, key):
    return [one[form][str(count)][key] for one in result["rounds"]]


def cells(result):
    return [(form, count) for count in VIEWERS for form in FORMS]


def table(result, facts):
    rows = []
    for form, count in cells(result):
        rows.append(
            [
                f"{count} viewers, {form}",
                f"{session.median(values(result, form, count, 'segments')):.0f}",
                *(session.ms(session.median(values(result, form, count, key))) for key in ("p50_us", "p99_us")),
                sum(values(result, form, count, "stalls")),
            ]
        )
    return session.markdown(["", "segments", "p50, ms", "p99, ms", "stalls in all rounds"], rows)


def draw(result, facts):
    rows = []
    for form, count in cells(result):
        for key, name in (("p50_us", "p50"), ("p99_us", "p99")):
            in_ms = [value / 1000 for value in values(result, form, count, key)]
            rows.append((f"{name}, {count} viewers, {form}", [session.estimate(in_ms)]))
    return picture.dots(
        "How long segments of movies take",
        f"viewers at the pace of the movies, {RENDITION}bit/s; dots: medians of the rounds, lines: their intervals of 95 %",
        "ms",
        ["a segment"],
        rows,
        log=True,
        names=230,
    )
