#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Studies of an application, beside those of the DeathStarBench paper: each starts it as processes of this machine, loads it,
prints a table, and writes its numbers and a picture.

  monolith   services as processes, and the same in one process: latency over load
  breakdown  where the time of requests goes, at low load and at saturation
  slow       one slow service: whose latency follows
  models     the twelve threading models on the mid-tiers
  policies   the policies that choose one
  tracing    with traces and without
  kernel     the CPU time of each service, in its own code and in the kernel
  all        each of them but soak, into the folder --out: a table, the numbers, a picture

Of some of them:
  skew       the highest load within p99 < 50 ms, by how few users send most requests
  queries    latency by kind of request, or the highest load within p99 < 50 ms of each kind
  fences     a pool of threads, asynchronous calls, fences and fibers under traces of load
  stacks     the same handlers with fibers, with a thread a call, and on grpc++

Of the bank, of the movie reviews and of the shop:
  network    0.5 ms to each service that a payment, a page or an order needs
  soak       an hour in which a process is killed every 5 s; then the audit

Of the bank alone:
  hot        the highest load within p99 < 50 ms of payments to few accounts
  stores     files, one PostgreSQL, a server for each service
  tls        services that call each other by plain text, and by TLS
  recover    for how long requests are late after a process was killed

Of the movie reviews alone:
  viewers    viewers at the pace of movies: how long segments take, and stalls

Of the shop alone:
  ordering   orders in rounds of 32, of 8, and one after the other
  languages  all services in C++, and seven in Go, Java, Python and JavaScript
  rest       the front end called by gRPC, and by HTTP and JSON through the load balancer

Each takes 2 to 6 minutes, and wants the machine for itself: it does not begin while other programs use it. Ctrl-C ends it,
and all that it has started.

Examples:
  study.py social breakdown --json breakdown.json --svg breakdown.svg
  study.py social skew --rounds 8 --seconds 0.5        # shorter, and less sure
  study.py social slow --from slow.json --svg slow.svg # draws again what was measured
  study.py hdsearch models --quick --busy              # a try, on a machine that does other things
  study.py bank all --out bank                         # all tables and pictures, in three quarters of an hour

Exit codes: 0 done, 1 a command failed or the machine is busy, 104 bad flags, 130 interrupted.
"""

import argparse
import importlib
import json
import os
import pathlib
import subprocess
import sys

import session

APPLICATIONS = ("social", "hdsearch", "bank", "media", "shop")
CURTAIL = pathlib.Path(__file__).resolve().parents[2] / "build/bench/tools/curtail/curtail"


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.print_usage(sys.stderr)
        self.exit(104, f"{self.prog}: {message}\n")


def parse(words):
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("application", choices=APPLICATIONS)
    parser.add_argument("study")
    parser.add_argument(
        "--curtail",
        default=str(CURTAIL),
        help="the program, built with optimisation, with the application in the same build [build/bench's]",
    )
    parser.add_argument("--rounds", type=int, help="how often all is measured [as the study needs]")
    parser.add_argument("--seconds", type=float, help="length of a run [as the study needs]")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="as of `curtail up`, such as users=500"
    )
    parser.add_argument("--quick", action="store_true", help="a few short runs, which say little")
    parser.add_argument("--busy", action="store_true", help="measure although other programs use the machine")
    parser.add_argument("--json", metavar="FILE", help="write the numbers here")
    parser.add_argument("--svg", metavar="FILE", help="write the picture here")
    parser.add_argument("--out", metavar="FOLDER", help="of `all`: write everything here")
    parser.add_argument("--from", dest="source", metavar="FILE", help="measure nothing: the numbers of this file")
    options = parser.parse_args(words)
    facts = importlib.import_module(options.application).FACTS
    if (options.study == "all") != bool(options.out):
        parser.error("--out belongs to `all`, and `all` needs it")
    if options.study == "all":
        return options, facts, None
    if options.study not in facts.studies:
        parser.error(f"{options.application} has no study {options.study!r}: choose from {', '.join(sorted(facts.studies))}")
    study = importlib.import_module(facts.studies[options.study])
    for name, usual in (study.QUICK if options.quick else study.BUDGET).items():
        if getattr(options, name) is None:
            setattr(options, name, usual)
    if options.rounds < 1 or not 0.1 <= options.seconds <= 60:
        parser.error("--rounds is 1 or more, --seconds 0.1 to 60")
    if not options.source and not os.access(options.curtail, os.X_OK):
        build = f"cmake --build build/bench --target curtail_command curtail-gateway {options.application}"
        parser.error(f"{options.curtail} is not a program; build it: {build}")
    return options, facts, study


def take(options, facts, study):
    """Measures. The result has what the machine did before."""
    used = session.cpus_used() if options.busy else session.wait_until_calm()
    if used > session.MOST_BUSY and not options.busy:
        sys.exit(f"other programs used {used:.1f} CPUs in the last second: wait until they are done, or say --busy")
    running = session.Session(options, facts)
    result = study.run(running)
    running.say(f"done: {running.runs} runs of the load generator, {running.void} of them void\n")
    return {
        "application": options.application,
        "study": options.study,
        "rounds": options.rounds,
        "seconds": options.seconds,
        "cpus_used_before": round(used, 2),
        "runs": running.runs,
        "void": running.void,
        **result,
    }


def take_all(words, folder, facts):
    """Each study of the application, one after the other; those that fail are named at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    failed = []
    for name in facts.studies:
        if name == "soak":
            continue  # it takes an hour
        files = [word for end in ("json", "svg") for word in (f"--{end}", str(folder / f"{name}.{end}"))]
        done = subprocess.run([sys.executable, __file__, facts.app, name, *words, *files], stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode == 130:
            sys.exit(130)
        if done.returncode == 0:
            (folder / f"{name}.md").write_text(done.stdout)
            print(f"## {name}\n\n{done.stdout}", flush=True)
        else:
            failed.append(name)
    if failed:
        sys.exit(f"these studies failed: {', '.join(failed)}")


def main(words):
    options, facts, study = parse(words)
    session.measure.end_cleanly_on_signals()
    if study is None:
        of_each = ["--curtail", options.curtail, *(word for one in options.set for word in ("--set", one))]
        of_each += [word for name in ("rounds", "seconds") if (value := getattr(options, name)) for word in (f"--{name}", str(value))]
        of_each += [f"--{name}" for name in ("quick", "busy") if getattr(options, name)]
        try:
            return take_all(of_each, pathlib.Path(options.out), facts)
        except KeyboardInterrupt:
            sys.exit(130)
    try:
        result = json.loads(pathlib.Path(options.source).read_text()) if options.source else take(options, facts, study)
    except KeyboardInterrupt:
        sys.exit(130)
    of = (result.get("application"), result.get("study"))
    if of != (options.application, options.study):
        sys.exit(f"{options.source} is of {of[0]}, study {of[1]}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(result, indent=1) + "\n")
    if options.svg:
        pathlib.Path(options.svg).write_text(study.draw(result, facts))
    print(study.table(result, facts))


if __name__ == "__main__":
    main(sys.argv[1:])
