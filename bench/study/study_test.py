#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the studies. Usage: study_test.py parts|quick|another|stacks|interrupted CURTAIL

parts: numbers and pictures, without the services. quick: one study of the social network as its users run it, briefly. another: one
of another application. stacks: the one that has other programs, too. interrupted: Ctrl-C leaves nothing.
"""

import importlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import types
import unittest
import xml.etree.ElementTree as xml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import session  # noqa: E402  (it knows where measure and picture are)
import breakdown  # noqa: E402
import compared  # noqa: E402
import fences  # noqa: E402
import kernel  # noqa: E402
import limits  # noqa: E402
import measure  # noqa: E402
import models  # noqa: E402
import picture  # noqa: E402
import policies  # noqa: E402
import recover  # noqa: E402
import slow  # noqa: E402
import soak  # noqa: E402
import social  # noqa: E402
import social_queries as queries  # noqa: E402
import social_stacks as stacks  # noqa: E402
import study  # noqa: E402
import tracing  # noqa: E402
import viewers  # noqa: E402

MAX_WAIT_S = 160
FACTS = social.FACTS
STUDY = pathlib.Path(__file__).with_name("study.py")
# Little data, so that they start soon.
SMALL = {
    "social": ["--set", "users=12", "--set", "follows=30", "--set", "posts=20"],
    "hdsearch": ["--set", "data=synthetic:N=2000,D=16,seed=7", "--set", "leaf.shards=2"],
}
INF = float("inf")


def words(svg):
    """All that a picture says; it must be XML."""
    return [element.text for element in xml.fromstring(svg).iter() if element.text and element.text.strip()]


class Numbers(unittest.TestCase):
    def test_quantile_is_interpolated_within_its_bucket(self):
        self.assertAlmostEqual(session.quantile([(0.01, 50), (0.02, 100), (INF, 100)], 0.75), 0.015)
        self.assertAlmostEqual(session.quantile([(0.01, 100), (INF, 100)], 0.5), 0.005)

    def test_quantile_beyond_the_last_bound_is_that_bound(self):
        self.assertEqual(session.quantile([(0.01, 10), (INF, 100)], 0.99), 0.01)

    def test_quantile_of_nothing_is_none(self):
        self.assertIsNone(session.quantile([(0.01, 0), (INF, 0)], 0.5))
        self.assertIsNone(session.quantile([], 0.5))

    def test_grown_counts_are_those_since_the_first_reading(self):
        since = session.grown({"user": [(0.01, 5), (INF, 8)]}, {"user": [(0.01, 7), (INF, 11)], "new": [(INF, 2)]})
        self.assertEqual(since, {"user": [(0.01, 2), (INF, 3)], "new": [(INF, 2)]})

    def test_interval_holds_the_median(self):
        middle, low, high = session.estimate([1.0, 2.0, 3.0, 4.0, 100.0])
        self.assertEqual(middle, 3.0)
        self.assertTrue(1.0 <= low <= middle <= high <= 100.0)

    def test_milliseconds_have_three_digits(self):
        self.assertEqual([session.ms(us) for us in (1234, 12345, 123456, 1234567)], ["1.23", "12.3", "123", "1,235"])


class Limits(unittest.TestCase):
    def test_staircase_finds_the_rate_from_both_sides(self):
        for first in (300, 1000, 4000):
            stair = limits.Staircase(first)
            rates = []
            for _ in range(60):
                rates.append(stair.rate)
                stair.told(stair.rate < 1000)
            for rate in rates[-8:]:
                self.assertTrue(1000 / 1.1 < rate < 1000 * 1.1, f"from {first}: {rates}")

    def test_blocks_leave_out_the_turns_before_all_are_near(self):
        far = [{"rate": 1, "settled": False}]
        near = [{"rate": rate, "settled": True} for rate in (100, 100, 400, 400, 50, 50, 50, 50, 9)]
        result = {"trials": {"skew 0": far + near, "skew 99": far * 2 + near[1:]}}
        found = limits.blocks(result, "skew 0", ["skew 99"])
        self.assertEqual(
            [round(one, 6) for one in found], [round((100 * 400 * 400 * 50) ** 0.25, 6), round((50**3 * 9) ** 0.25, 6)]
        )


class Parts(unittest.TestCase):
    def test_shares_of_a_critical_path_are_the_whole(self):
        kind = {
            "mean_us": 10,
            "critical_path": [
                {"service": "a", "part": "handler", "mean_us": 4},
                {"service": "a", "part": "queue", "mean_us": 1},
                {"service": "b", "part": "network", "mean_us": 3},
                {"service": "b", "part": "serialize", "mean_us": 2},
            ],
        }
        self.assertEqual(breakdown.shares(kind), {"a": 0.5, "between services": 0.5})

    def test_a_kind_without_requests_is_blank(self):
        post = {"requests": 9, "mean_us": 2, "p50_us": 1, "critical_path": [{"service": "a", "part": "handler", "mean_us": 2}]}
        result = {"rounds": [{"low": {"post": post}, "saturation": {}}]}
        rows = breakdown.table(result, FACTS).splitlines()
        self.assertEqual(sum("100 (100-100)" in cell for cell in rows[2].split("|")), 1)
        self.assertNotIn("nan", "".join(rows))
        self.assertTrue(any("post, low" in word for word in words(breakdown.draw(result, FACTS))))

    def test_mid_tiers_are_the_services_that_call(self):
        with tempfile.TemporaryDirectory() as folder:
            file = measure.write_copies("social", ["x"], folder)["x"]
            found = models.mid_tiers(types.SimpleNamespace(file=file))
        self.assertIn("front-end", found)
        self.assertIn("compose-post", found)  # whose calls go over two lines
        self.assertFalse({"post-cache", "post-storage", "favorite", "load-balancer"} & set(found))
        self.assertEqual(len(found), len(set(found)))

    def test_late_requests_are_those_after_the_kill(self):
        lines = ["0,100.0,90000.0,1", "0,1100000.0,400.0,1", "0,1200000.0,60000.0,1", "0,1300000.0,20.0,0", "0,2000000.0,50000.0,1"]
        self.assertEqual(recover.late(lines), (0.1, 1))
        self.assertEqual(recover.late(lines[:2]), (0.0, 0))

    def test_upload_is_a_message_of_protobuf(self):
        self.assertEqual(queries.field(1, b"ab"), b"\x0a\x02ab")
        self.assertEqual(queries.field(2, b"x" * 300)[:3], b"\x12\xac\x02")
        self.assertEqual(queries.box(queries.BRANDS)[:8], b"\0\0\0\x18ftyp")

    def test_a_stopped_process_runs_again(self):
        with subprocess.Popen(["sleep", "60"]) as process:
            try:
                with slow.slow([process.pid]):
                    os.waitid(os.P_PID, process.pid, os.WSTOPPED)
                os.waitid(os.P_PID, process.pid, os.WCONTINUED)
            finally:
                process.kill()


class Applications(unittest.TestCase):
    def test_each_has_its_facts(self):
        for app in study.APPLICATIONS:
            facts = importlib.import_module(app).FACTS
            self.assertEqual(facts.app, app)
            topology = (STUDY.parents[2] / "apps" / app / "topology.yaml").read_text()
            self.assertIn(f"\n  {facts.front}:\n", topology)
            protos = "".join(path.read_text() for path in (STUDY.parents[2] / "apps" / app).glob("*.proto"))
            for method in facts.kinds:
                self.assertIn(f"  rpc {method}(", protos)
            for name, module in facts.studies.items():
                self.assertIn(f"\n  {name} ", study.__doc__)
                self.assertTrue(callable(importlib.import_module(module).run), module)
                named = {"compared": facts.compared, "limits": facts.limits}.get(module)
                self.assertTrue(named is None or name in named, name)
            services = [re.sub(r"-\d+$", "", name) for name in (*facts.victims, *facts.slow_too, facts.front)]
            self.assertEqual([name for name in services if f"\n  {name}:" not in topology], [])


class Pictures(unittest.TestCase):
    def test_ticks_are_round_and_within(self):
        self.assertEqual(picture.ticks(0, 100, False), [0, 20, 40, 60, 80, 100])
        self.assertEqual(picture.ticks(0.9, 60, True), [1, 2, 5, 10, 20, 50])
        self.assertEqual([round(at, 9) for at in picture.ticks(0.7, 1.4, True)], [0.8, 1.0, 1.2, 1.4])

    def test_dots_show_each_value_and_its_interval(self):
        svg = picture.dots(
            "a <heading>",
            "a note",
            "ms",
            ["p50", "p99"],
            [("one", [(1, 0.5, 2), (10, 9, 30)]), ("two", [(3, 3, 3), None])],
            log=True,
        )
        self.assertIn("a <heading>", words(svg))
        self.assertIn("one, p99: 10 (9 to 30)", words(svg))
        self.assertEqual(svg.count('class="whisker"'), 3)

    def test_stacks_show_sums(self):
        self.assertIn("30", words(picture.stacks("h", "n", "%", ["a", "b"], [("row", [10, 20])])))

    def test_heat_has_a_cell_each_and_is_darker_where_it_says(self):
        svg = picture.heat("h", "n", ["r"], ["a", "b", "c"], [[1.26, 250, None]], lambda i, k: (0, 1, 0)[k])
        self.assertEqual(svg.count('class="cell"'), 3)
        self.assertTrue({"1.3", "250"} <= set(words(svg)))
        self.assertIn(picture.shade(1)[0], svg)

    def test_all_studies_draw_and_tell(self):
        def load(value):
            return {"p50": 1000 * value, "p99": 9000 * value, "good": 500 / value, "cpu_us": 900 * value, "failed": 1}

        path = [{"service": "user", "part": part, "mean_us": us} for part, us in (("handler", 7.5), ("network", 2.5))]
        kind = {"mean_us": 10.0, "p50_us": 9.0, "critical_path": path}
        level = dict.fromkeys(FACTS.kinds.values(), kind)
        seen = {
            "services": {"user": {"p99_ms": 40, "calls": 90}, "front-end": {"p99_ms": 55, "calls": 90}},
            "culprits": {"post": {"service": "user", "slow": 5, "others": 9}},
        }
        calm = {"services": {"user": {"p99_ms": 1, "calls": 90}, "front-end": {"p99_ms": 3, "calls": 90}}, "culprits": {}}
        told = {
            breakdown: ({"rounds": [dict.fromkeys(breakdown.LEVELS, level)] * 2}, "75 (75-75)"),
            limits: (
                {
                    "study": "skew",
                    "trials": {
                        f"skew {s}": [{"rate": 1000 - s, "cpu_us": 900, "settled": True}] * 8 for s in (0, 50, 80, 90, 95, 99)
                    },
                },
                "0.90 (0.90-0.90)",
            ),
            kernel: (
                {"rounds": [{level: {"user": [3, 1], "front-end": [1, 3]} for level in kernel.LEVELS}] * 2},
                "| user, low | 75 % | 25 % | 50 % |",
            ),
            recover: (
                {"kills": {"services": {"user": [[0.5, 3]] * 3}, "monolith": {"front-end": [[2, 40]] * 3}}},
                "| the one process | 2.00 (2.00-2.00) | 40 |",
            ),
            soak: (
                {
                    "seconds": 300,
                    "parts": [{"kills": 60, "ok": 59_000, "failed": 40, "p50_us": 800, "p99_us": 90_000}] * 2,
                    "at_most": {"before": [2000] * 5, "after": [1900] * 5},
                    "told": {"Pay": 18_000},
                    "stored": {"Pay": 18_002},
                    "audit": "",
                },
                "18,000 of Pay were acknowledged, 18,002 stored. The audit: clean.",
            ),
            slow: (
                {"order": ["user", "front-end"], "calm": [calm, calm], "rows": {"user": seen}},
                "| user | 55 | front-end | 1 of 1 |",
            ),
            models: ({"turns": {"FIB1": [load(2)], "auto": [load(1)]}}, "2 (2.00-2.00)"),
            policies: ({"turns": {"auto": [load(1)], "online": [load(1)]}}, "1 (1.00-1.00)"),
            tracing: (
                {"values": {"p50": {"off": [10, 10], "default": [11, 11], "all": [12, 12]}}},
                "+20.0 % (+20.0 to +20.0)",
            ),
            stacks: (
                {"at_a_time": 32, "turns": {s: {mix: [load(v)] * 2 for mix in stacks.MIXES} for v, s in enumerate(stacks.STACKS, 1)}},
                "| compose, curtail, fibers | 250 (250-250) | 0.50 (0.50-0.50) | 1.50 (1.50-1.50) | 1.80 | 18.0 | 2 |",
            ),
            compared: (
                {
                    "study": "monolith",
                    "values": {
                        f"{what} at {rate}/s, us": {"services": [2000] * 2, "monolith": [500] * 2, "redis": [2000] * 2}
                        for what in ("p50", "p99", "CPU a request")
                        for rate in FACTS.latency_rates
                    }
                },
                "| p50 at 100/s, ms | 2.00 | 0.50 (0.25-0.25) | 2.00 (1.00-1.00) |",
            ),
            fences: (
                {
                    "values": {
                        f"{what} in {fences.schedule(trace)}{unit}": {c: [4000 * v] * 2 for v, c in enumerate(fences.COPIES, 1)}
                        for what, unit in (("mean", ", us"), ("p99", ", us"), ("failed", ""))
                        for trace in fences.TRACES
                    }
                },
                "| slow, asynchronous calls | 8 (8-8) | 2.00 (2.00-2.00) | 8 (8-8) | 16000 | 244, 598, 0 |",
            ),
            viewers: (
                {
                    "rounds": [
                        {f: {str(c): {"segments": 9, "p50_us": 900, "p99_us": 4000, "stalls": 1} for c in viewers.VIEWERS} for f in viewers.FORMS}
                    ]
                    * 2
                },
                "| 50 viewers, nginx | 9 | 0.90 | 4.00 | 2 |",
            ),
            queries: ({"rounds": {"repost": [[(2000, True)] * 4, [(4000, False)]]}}, "| repost | 5 | 1 |"),
        }
        for study, (result, line) in told.items():
            result = json.loads(json.dumps(result))
            self.assertIn(line, study.table(result, FACTS), study.__name__)
            self.assertGreater(len(words(study.draw(result, FACTS))), 4, study.__name__)


def start(curtail, folder, app, *flags):
    """A study that has a run folder of its own."""
    return subprocess.Popen(
        [sys.executable, "-B", str(STUDY), app, *flags, "--curtail", curtail, "--busy", *SMALL[app]],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(folder),
    )


def environment(folder):
    return {**os.environ, "XDG_RUNTIME_DIR": folder, "TMPDIR": folder}


def check_nothing_is_left(curtail, folder):
    up = subprocess.run(
        [curtail, "ps"], env=environment(folder), capture_output=True, text=True, timeout=MAX_WAIT_S, check=True
    )
    assert up.stdout == "nothing is up\n", up.stdout
    left = [path for path in pathlib.Path("/proc").glob("[0-9]*/cmdline") if folder.encode() in read(path)]
    assert not left, [read(path) for path in left]


def read(path):
    try:
        return path.read_bytes()
    except OSError:  # it has ended
        return b""


def end(study):
    """Has it end with what it has started, unless it has."""
    if study.poll() is None:
        study.send_signal(signal.SIGINT)
        try:
            study.communicate(timeout=MAX_WAIT_S / 4)
        except subprocess.TimeoutExpired:
            study.kill()


def briefly(curtail, app, name, check):
    """Runs a study as its users do; check(numbers, words of its picture) judges it. It is the same when it is drawn again."""
    with tempfile.TemporaryDirectory() as folder:
        numbers, drawn = pathlib.Path(folder) / "n.json", pathlib.Path(folder) / "n.svg"
        study = start(curtail, folder, app, name, "--quick", "--json", str(numbers), "--svg", str(drawn))
        try:
            out, errors = study.communicate(timeout=MAX_WAIT_S)
        finally:
            end(study)
        assert study.returncode == 0, errors
        check(json.loads(numbers.read_text()), words(drawn.read_text()))
        again = subprocess.run(
            [sys.executable, "-B", str(STUDY), app, name, "--from", str(numbers)],
            capture_output=True,
            text=True,
            timeout=MAX_WAIT_S,
            check=True,
        )
        assert again.stdout == out and out.startswith("| "), out
        check_nothing_is_left(curtail, folder)


def check_breakdown(result, drawn):
    home = result["rounds"][0]["low"]["home timeline"]
    shares = breakdown.shares(home)
    assert home["requests"] > 0 and abs(sum(shares.values()) - 1) < 0.01, home
    assert "post-storage" in shares
    assert any("post-storage" in word for word in drawn)


def check_models(result, drawn):
    assert result["mid_tiers"] == ["mid-tier"], result
    for model, turns in result["turns"].items():
        assert all(one["good"] > 0 and one["p50"] > 0 for one in turns), result
        assert any(model in word for word in drawn), drawn


def check_stacks(result, drawn):
    configs = result["configs"]
    assert configs["fibers"] == ["FIB1"] and configs["threads"] == ["SDB1-16"], configs  # of all services
    for stack, name in stacks.NAMES.items():
        for mix in stacks.MIXES:
            assert all(one["good"] > 0 and one["failed"] == 0 for one in result["turns"][stack][mix]), result
        assert name in drawn, drawn


def interrupted(curtail):
    with tempfile.TemporaryDirectory() as folder:
        study = start(curtail, folder, "social", "slow")
        try:
            # The moment at which a thread and a process start, and a service stands still.
            assert any("post-cache is slow" in line for line in study.stderr)
            study.send_signal(signal.SIGINT)
            study.communicate(timeout=MAX_WAIT_S)
        finally:
            end(study)
        assert study.returncode == 130, study.returncode
        check_nothing_is_left(curtail, folder)


if __name__ == "__main__":
    form, program = sys.argv[1:]
    if form == "parts":
        unittest.main(argv=sys.argv[:1])
    else:
        forms = {
            "quick": lambda: briefly(program, "social", "breakdown", check_breakdown),
            "another": lambda: briefly(program, "hdsearch", "models", check_models),
            "stacks": lambda: briefly(program, "social", "stacks", check_stacks),
            "interrupted": lambda: interrupted(program),
        }
        forms[form]()
