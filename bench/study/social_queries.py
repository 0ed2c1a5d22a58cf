# SPDX-License-Identifier: Apache-2.0
"""Latency by kind of request, beside the same load (DeathStarBench, section 3.8): posts of text, with images, with some MB of
video, reposts, and what else users do."""

import json
import random
import string

import measure
import picture
import session

LOAD = 200  # requests a second of the release's mix, all the time
PROBES = 10  # requests a second of one kind
IMAGE, VIDEO = 100 << 10, 3 << 20
GIF = b"GIF89a"
BRANDS = b"ftypisom\0\0\2\0isommp42"
BUDGET = {"rounds": 4, "seconds": 2.5}
QUICK = {"rounds": 1, "seconds": 0.5}
SOCIAL = "curtail.social.Social/"


def field(number, data):
    """A field of bytes of a protobuf message."""
    size, length = b"", len(data)
    while length > 127:
        size, length = size + bytes([length % 128 + 128]), length // 128
    return bytes([number * 8 + 2]) + size + bytes([length]) + data


def box(content):
    """A box of an mp4, whose content begins with its type."""
    return (4 + len(content)).to_bytes(4, "big") + content


class Caller:
    """Makes requests of the users that the load has, too."""

    def __init__(self, up, rng):
        self.up, self.rng, self.target, self.folder = up, rng, up.address(), up.folder
        users = [line.split()[1:] for line in (up.data / "load-users").read_text().splitlines()]
        # A user has few uploads that wait for a post.
        self.uploaders, self.users = users[: len(users) // 3], users[len(users) // 3 :]
        self.posts = []
        for name, token in self.users[:20]:
            page = self.call("ReadUserTimeline", json.dumps({"token": token, "name": name, "limit": 20}))
            self.posts += [post["id"] for post in page.get("posts", [])]

    def call(self, method, data, flag="--data"):
        done = measure.run([self.up.curtail, "load", self.target, "--method", SOCIAL + method, flag, data, "--debug"])
        return json.loads(done[done.index("{") :])

    def user(self):
        """The name and the token of one of them."""
        return self.rng.choice(self.users)

    def other(self, token):
        """The name of a user who has another token."""
        return self.rng.choice([name for name, held in self.users if held != token])

    def letters(self, count):
        return "".join(self.rng.choices(string.ascii_lowercase + string.digits, k=count))

    def text(self):
        """As those of the load: 256 characters, names, URLs."""
        names = ["@" + self.user()[0] for _ in range(self.rng.randint(1, 6))]
        return " ".join([self.letters(256), *names, *("http://" + self.letters(64) for _ in range(self.rng.randint(1, 6)))])

    def upload(self, token, size):
        """A file with the request of an upload: an image, or a video of the boxes that an mp4 begins with and has its frames in."""
        path = self.folder / "upload"
        if size < VIDEO:
            kind, data = b"image/gif", GIF + self.rng.randbytes(size - len(GIF))
        else:
            kind, brands = b"video/mp4", box(BRANDS)
            data = brands + box(b"mdat" + self.rng.randbytes(size - len(brands) - 8))
        path.write_bytes(field(1, token.encode()) + field(2, field(1, kind) + field(2, data)))
        return str(path)


def each(message):
    """The flags of the load for requests that message(caller, token) makes."""

    def flags(caller, count):
        path = caller.folder / "requests.jsonl"
        lines = []
        for _ in range(count):
            _, token = caller.user()
            lines.append(json.dumps({"token": token, **message(caller, token)}))
        path.write_text("\n".join(lines))
        return ["--data", f"@{path}", "--pick", "in-turn"]

    return flags


def post(refers=()):
    """A text, which refers to an older post by the fields in `refers`."""
    return each(lambda caller, _: {"text": caller.text(), **{name: caller.rng.choice(caller.posts) for name in refers}})


def post_with(size):
    """Each has an upload of its own, which is made before."""

    def message(caller, token):
        item = caller.call("UploadMedia", caller.upload(token, size), "--data-binary")
        return {"text": caller.text(), "media": [{"id": item["id"]}]}

    return each(message)


def upload(size):
    """All of one user, which no other turn has."""
    return lambda caller, count: ["--data-binary", caller.upload(caller.uploaders.pop()[1], size)]


# By kind: the method, and the flags of the load for so many requests. An upload is the first of the two requests of a post
# with media of its own.
KINDS = {
    "home timeline": ("ReadHomeTimeline", each(lambda caller, _: {"limit": 10})),
    "user timeline": ("ReadUserTimeline", each(lambda caller, _: {"name": caller.user()[0], "limit": 10})),
    "one post": ("GetPost", each(lambda caller, _: {"id": caller.rng.choice(caller.posts)})),
    "search": ("SearchPosts", each(lambda caller, _: {"text": caller.user()[0], "limit": 10})),
    "like": ("AddFavorite", each(lambda caller, _: {"id": caller.rng.choice(caller.posts)})),
    "direct message": ("SendMessage", each(lambda caller, token: {"to": caller.other(token), "text": caller.letters(256)})),
    "post, text": ("Compose", post()),
    "post with an image": ("Compose", post_with(IMAGE)),
    "upload of 100 KiB": ("UploadMedia", upload(IMAGE)),
    "post with a video": ("Compose", post_with(VIDEO)),
    "upload of 3 MiB": ("UploadMedia", upload(VIDEO)),
    "reply": ("Compose", post(["reply_to"])),
    "repost": ("Compose", post(["repost_of"])),
}


def probe(caller, method, make, seconds, seed):
    """The (latency in us, ok) of each request of a kind. The first is left out: the generator sends it twice, to connect."""
    count = 1 + max(3, round(PROBES * seconds))
    raw = caller.folder / "raw.csv"
    plan = f"--rps {PROBES} --requests {count} --seed {seed} --quiet --json - --raw {raw}"
    command = [caller.up.curtail, "load", caller.target, "--method", SOCIAL + method, *plan.split(), *make(caller, count)]
    valid = json.loads(measure.run(command, fine=(0, session.VOID)))["valid"]
    caller.up.runs += 1
    caller.up.void += not valid
    lines = [line.split(",") for line in raw.read_text().splitlines()[1:]]
    return [(float(latency), ok == "1") for _, _, latency, ok in sorted(lines, key=lambda line: float(line[1]))[1:]]


def run(s):
    found = {kind: [] for kind in KINDS}
    rng = random.Random(1)
    with s.up() as up:
        caller = Caller(up, rng)
        with up.under_load(["--rps", str(LOAD)], 600):
            for number in range(s.rounds):
                for k, kind in enumerate(sorted(KINDS, key=lambda _: rng.random())):
                    s.step(number * len(KINDS) + k, s.rounds * len(KINDS), kind)
                    method, make = KINDS[kind]
                    found[kind].append(probe(caller, method, make, s.seconds, 1 + number))
    return {"rounds": found}


def of_kind(result, kind, share):
    """The quantile of all requests of a kind, and its interval, by resampling the rounds."""
    rng = random.Random(1)
    rounds = [[latency for latency, _ in one] for one in result["rounds"][kind]]

    def value(chosen):
        ordered = sorted(latency for one in chosen for latency in one)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    resampled = sorted(value(rng.choices(rounds, k=len(rounds))) for _ in range(2000))
    return value(rounds), resampled[49], resampled[1949]


def written(found):
    return "{} ({}-{})".format(*(session.ms(value) for value in found))


def table(result, _):
    rows = []
    for kind, rounds in result["rounds"].items():
        failed = sum(not ok for one in rounds for _, ok in one)
        quantiles = [written(of_kind(result, kind, share)) for share in (0.5, 0.95)]
        rows.append([kind, sum(map(len, rounds)), failed, *quantiles])
    return session.markdown(["kind", "requests", "failed", "p50, ms", "p95, ms"], rows)


def draw(result, _):
    rows = [
        (kind, [tuple(value / 1000 for value in of_kind(result, kind, share)) for share in (0.5, 0.95)])
        for kind in result["rounds"]
    ]
    return picture.dots(
        "Latency by kind of request",
        f"{PROBES} requests a second of a kind, beside {LOAD} a second of the mix; lines: intervals of 95 %",
        "ms",
        ["p50", "p95"],
        rows,
        log=True,
        names=190,
    )
