# SPDX-License-Identifier: Apache-2.0
"""What the studies share: an application up as processes, its load, the counts of its services, progress."""

import contextlib
import dataclasses
import http.client
import json
import pathlib
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "copies"))
import measure  # noqa: E402  (beside this folder)

VOID = 98  # `curtail load` was itself late: its numbers are kept, and counted
MOST_BUSY = 0.25  # CPUs that others may use when a study begins
CALM_TRIES = 10  # seconds that it waits for that


def cpus_used(seconds=1.0):
    """How many CPUs the machine's programs used during that time."""

    def busy():
        fields = [int(field) for field in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        return (sum(fields) - fields[3] - fields[4]) / 100

    before, begun = busy(), time.monotonic()
    time.sleep(seconds)
    return (busy() - before) / (time.monotonic() - begun)


def wait_until_calm():
    """How many CPUs others used in the last second; it waits for a second in which that was little, for a while."""
    for _ in range(CALM_TRIES):
        used = cpus_used()
        if used <= MOST_BUSY:
            break
    return used


def estimate(values, seed=1):
    """The median of the values and the interval of 95 % of it, by resampling; without values three times not a number."""
    return (float("nan"),) * 3 if not values else measure.interval(values, random.Random(seed))


def ratios(values, base):
    return [mine / other for mine, other in zip(values, base) if other > 0]


def quantile(buckets, share):
    """The quantile of cumulative counts by upper bound, interpolated within a bucket as Prometheus does; None: no counts."""
    total = buckets[-1][1] if buckets else 0
    if total <= 0:
        return None
    low, before = 0.0, 0.0
    for bound, count in buckets:
        if count >= share * total:
            if bound == float("inf"):
                return low
            return low + (bound - low) * (share * total - before) / max(count - before, 1e-9)
        low, before = bound, count
    return low


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=5)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def page(address, path):
    connection = UnixConnection(address.removeprefix("unix:"))
    try:
        connection.request("GET", path)
        return connection.getresponse().read().decode()
    finally:
        connection.close()


BUCKET = re.compile(r'rpc_server_duration_seconds_bucket\{.*rpc_service="([^"]*)".*le="([^"]*)"\} (\d+)')


OF_ALL = {name: name for name in ("breakdown", "slow", "models", "policies", "tracing", "kernel")} | {"monolith": "compared"}


@dataclasses.dataclass(frozen=True)
class Compared:
    """Copies that a study compares with the first one, `services`."""

    title: str  # after that of the application
    copies: dict  # name in a table and flags of `curtail up`
    load: tuple = ()  # flags of `curtail load`
    rates: tuple = ()  # a second; none: the application's


MONOLITH = Compared(
    "as services and as one process", {"services": ("services", []), "monolith": ("one process", ["--monolith"])}
)


@dataclasses.dataclass(frozen=True)
class Limits:
    """Loads whose highest rates a study compares."""

    what: str  # by what they differ
    loads: dict  # flags of `curtail load`, by name in a table
    note: str = ""  # what the picture says of them
    log: bool = False  # rates that differ by more than ten times
    names: int = 110  # the width of the names, in the picture


SKEW = Limits(
    "skew",
    {f"skew {skew}": ["--senders", f"skew:{skew}"] for skew in (0, 50, 80, 90, 95, 99)},
    note="skew s: 100 - s % of the users send 90 % of the requests; ",
)


@dataclasses.dataclass(frozen=True)
class Facts:
    """What the studies have to know of an application; each has a file that makes its own, FACTS."""

    app: str  # its folder in apps/
    title: str  # begins a sentence
    studies: dict  # the studies that it has, by name: their modules here
    front: str  # the service that clients call
    kinds: dict  # of its methods that the studies tell apart: how a table calls them
    rate: int  # requests a second of which the machine makes little
    train_rates: str  # of `curtail train`
    latency_rates: tuple  # a second, from little to what the machine can do
    compared: dict = dataclasses.field(default_factory=lambda: {"monolith": MONOLITH})  # by study
    limits: dict = dataclasses.field(default_factory=dict)  # by study
    victims: tuple = ()  # services whose end the study `recover` looks at, beside the end of the one process
    prompt: tuple = ()  # flags of `curtail load` that leave out what takes long by design
    acknowledged: dict = dataclasses.field(default_factory=dict)  # by method: the file and the query that counts what it has stored
    slow_too: tuple = ()  # what may stand still, too: services without counts of calls, and single processes, as SERVICE-N
    paper_traces: dict = dataclasses.field(default_factory=dict)  # PathFence's cells: mean in ms, p99 in ms, dropped


class Application:
    """One that is up. `run` is the namespace by which measure.py measures."""

    def __init__(self, curtail, facts, file, corpus):
        self.curtail, self.facts, self.file, self.name = curtail, facts, file, file.stem
        self.folder, self.data = file.parent, measure.own_data(file)
        self.corpus = ["--corpus", str(self.data)] if self.data else corpus
        self.run = types.SimpleNamespace(curtail=curtail, app=facts.app, load=corpus, fine=(0, VOID))
        self.void = self.runs = 0

    def processes(self):
        return json.loads(measure.run([self.curtail, "ps", self.name, "--json"]))[0]["processes"]

    def address(self):
        """Of the service that clients call."""
        return json.loads(measure.run([self.curtail, "ps", self.name, "--json"]))[0]["entry"]

    def load(self, flags, seconds, seed):
        """A run of `curtail load`, as its JSON has it, and the CPU of all processes for a request, `cpu_us`."""
        result = measure.measure(self.run, self.file, flags, seconds, seed)
        self.runs += 1
        self.void += not result["valid"]
        return result

    @contextlib.contextmanager
    def under_load(self, flags, seconds, seed=1):
        """The load runs while the block does, for `seconds` at most."""
        plan = f"--quiet --warmup 0s --duration {seconds}s --seed {seed}"
        command = [self.curtail, "load", self.facts.app, self.name, *self.corpus, *plan.split(), *flags]
        load = None
        try:
            load = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
            yield
            if load.poll() is not None:
                sys.exit(f"{' '.join(command)}\nended too soon, with {load.returncode}")
        finally:
            if load:
                load.terminate()
                load.wait()

    def durations(self, processes):
        """The counts by upper bound in seconds, cumulative, of the calls that each service answered, over its processes."""
        services = {}
        for process in processes:
            counts = services.setdefault(process["service"], {})
            text = page(process["http_admin"], "/metrics") if process["http_admin"] else ""
            for name, bound, count in BUCKET.findall(text):
                if not name.startswith(("grpc.", "curtail.admin")):
                    counts[float(bound)] = counts.get(float(bound), 0) + int(count)
        return {service: sorted(counts.items()) for service, counts in services.items()}


def grown(before, after):
    """The counts between two readings of durations()."""
    since = {}
    for service, counts in after.items():
        old = dict(before.get(service, []))
        since[service] = [(bound, count - old.get(bound, 0)) for bound, count in counts]
    return since


class Session:
    """The options of a study: how long its runs are, and how often it repeats them."""

    def __init__(self, options, facts):
        self.facts, self.study = facts, options.study
        self.curtail, self.rounds, self.seconds = options.curtail, options.rounds, options.seconds
        self.settings = [word for setting in options.set for word in ("--set", setting)]
        given = [setting.removeprefix("data=") for setting in options.set if setting.startswith("data=")]
        self.corpus = ["--corpus", given[-1]] if given else []  # what the load has to know, too
        self.begun = time.monotonic()
        self.void = self.runs = 0

    @contextlib.contextmanager
    def up(self, name="study", flags=(), program=None):
        """The application, started for the block with these flags. `program` are the words that stand for the program of its
        services."""
        with tempfile.TemporaryDirectory(prefix="study-") as folder:
            files = measure.write_copies(self.facts.app, [name], folder, {name: program or self.facts.app})
            self.say(f"starting {self.facts.app}")
            with measure.up(self.curtail, files, {name: [*self.settings, *flags]}):
                application = Application(self.curtail, self.facts, files[name], self.corpus)
                yield application
                self.void += application.void
                self.runs += application.runs

    def take_turns(self, copies, turns, rps=(), schedule=(), closed=(), programs=None, load=()):
        """The values of measure.py, by measure and copy, a turn after another. `copies` has the flags of each, `load` more flags of
        `curtail load`; `turns` are those of a round."""
        options = types.SimpleNamespace(
            curtail=self.curtail,
            app=self.facts.app,
            load=[*self.corpus, *load],
            fine=(0, VOID),
            copies={name: [*self.settings, *flags] for name, flags in copies.items()},
            settle={},
            rounds=self.rounds,
            turns=turns if self.seconds >= 1 else 1,
            seconds=self.seconds,
            rps=rps,
            schedule=schedule,
            closed=closed,
        )
        self.say(f"each round starts {len(copies)} copies")
        random.seed(1)
        with tempfile.TemporaryDirectory(prefix="study-") as folder:
            return measure.measure_rounds(options, measure.write_copies(self.facts.app, copies, folder, programs))

    def say(self, words):
        end = "" if sys.stderr.isatty() else "\n"
        passed = int(time.monotonic() - self.begun)
        print(
            f"{chr(13) + chr(27) + '[K' if not end else ''}{passed // 60}:{passed % 60:02d} {words}",
            end=end,
            file=sys.stderr,
            flush=True,
        )

    def step(self, number, of, words):
        passed = time.monotonic() - self.begun
        left = f", {passed / number * (of - number):.0f} s left" if 0 < number < of else ""
        self.say(f"{number} of {of}: {words}{left}")


def markdown(head, rows):
    """A table; the first column stands left, the others right."""
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def ms(us):
    """Microseconds as milliseconds, with three digits that count."""
    value = us / 1000
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def median(values):
    return statistics.median(values) if values else float("nan")
