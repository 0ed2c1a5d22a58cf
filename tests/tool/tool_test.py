#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the curtail command as users do and checks what it prints, writes, returns and leaves behind.

Usage: tool_test.py CASE CURTAIL HDSEARCH SCRATCH_FOLDER

Nothing here depends on how fast the machine is: tables must be there and recall right; latencies may be what they are.
"""

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import time
import xml.etree.ElementTree

from tooling import (MAX_WAIT_S, await_line, expect_no_escapes, expect_nothing_left, expect_valid, marked_processes,
                     run_case, shown)


# Slow machines, and sanitizers, sustain these.
LOADS = "100,200,400"


def check_grid(out, configs):
    """What a training prints: a line a config with a p99 for each load, or why there is none."""
    for config in configs:
        assert re.search(rf"^{config} +(([\d.]+|sat|-|\.) *)+$", out, re.M), f"the grid lacks {config}"
    assert re.search(r"^  from +0/s  \S+$", out, re.M), "no config is chosen for the lowest load"


def test_demo(tools):
    path, html, profile = tools.path("demo.json"), tools.path("demo.html"), tools.path("profile.json")
    code, out, err = tools.run("demo", "--quick", "--loads", LOADS, "--json", path, "--html", html, "--profile", profile)
    assert code == 0, code
    expect_nothing_left()
    expect_no_escapes(out + err)
    check_grid(out, ["SIB1", "SIP1", "SDB1-16", "SDB1-50", "auto"])
    recall = re.search(r"^recall@10 ([\d.]+) over (\d+) judged replies$", out, re.M)
    assert recall and float(recall[1]) >= 0.9 and int(recall[2]) > 100, "recall"
    with open(path) as file:
        result = json.load(file)
    expect_valid("comparison", path)
    expect_valid("profile", profile)
    assert result["schema_version"] == 2 and not result["interrupted"]
    assert result["policies"] == ["mutune", "static:auto", "mutune without fibers"], result["policies"]
    assert "No verdict: no run can be believed" not in out
    assert re.search(r"^A service that may use fibers: .*mutune (found|chose)", out, re.M), "what the demo shows"
    assert {run["policy"] for run in result["runs"]} == set(result["policies"])
    for run in result["runs"]:
        assert [phase["name"] for phase in run["phases"]] == ["before", "spike", "first second after", "after"], run
        for phase in run["phases"]:
            assert phase["due"] > 20 and phase["ok"] + phase["failed"] == phase["due"], phase
    with open(html) as file:
        page = file.read()
    assert page.startswith("<!DOCTYPE html>") and '"kind": "policy_comparison"' in page
    with open(profile) as file:
        assert json.load(file)["service"] == "curtail.hdsearch.Search"
    assert sorted(os.listdir(tools.scratch)) == ["demo.html", "demo.json", "profile.json"], "logs left behind"


def test_demo_interrupted(tools):
    html = tools.path("demo.html")
    process = tools.start("demo", "--quick", "--loads", LOADS, "--html", html)
    await_line(process.stderr, r"^training ")
    # Only the command itself, as when a supervisor stops it; its children must go with it.
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=MAX_WAIT_S)
    print(out, err)
    assert process.returncode == 105, process.returncode
    assert "INTERRUPTED" in out and "p99, ms" in out, "no partial grid"
    expect_nothing_left()

    process = tools.start("demo", "--quick", "--loads", LOADS, "--html", html)
    await_line(process.stderr, r"^run 1/")
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=MAX_WAIT_S)
    assert process.returncode == 105 and "INTERRUPTED" in out, (process.returncode, out)
    assert os.path.exists(html), "no report of what was compared"
    expect_nothing_left()


def test_demo_killed(tools):
    process = tools.start("demo", "--quick", "--loads", LOADS, "--html", tools.path("demo.html"))
    await_line(process.stderr, r"^training ")
    assert len(marked_processes()) >= 6, "4 leaves, a mid-tier and the command"
    process.kill()
    process.communicate(timeout=MAX_WAIT_S)
    expect_nothing_left(grace_s=10)  # the kernel kills the children at once, and they take a moment to be gone


SMALL = ("--corpus", "synthetic:N=2000,D=16", "--leaves", "2")


def test_train(tools):
    """Trains, goes on after an interruption, verifies, compares, serves with the profile."""
    profile = tools.path("profile.json")
    train = ("train", "hdsearch", *SMALL, "--configs", "SIB1,SDB1-4,FIB1", "--loads", "100,300,600", "--seconds", "0.1",
             "--out", profile)
    code, out, _ = tools.run(*train, "--dry-run")
    assert code == 0 and "27 at most" in out and not os.path.exists(profile), out

    process = tools.start(*train)
    await_line(process.stderr, r"repeat 2/3")
    assert not can_lock(profile + ".partial")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=MAX_WAIT_S)
    assert process.returncode == 105 and "--resume" in out, (process.returncode, out)
    expect_nothing_left()
    before = re.search(r"INTERRUPTED after (\d+) cells", out)
    assert before and int(before[1]) >= 3, out
    with open(profile + ".partial") as file:  # as another training has it
        fcntl.flock(file, fcntl.LOCK_EX)
        for resume in ((), ("--resume",)):
            expect_refusal(tools.run(*train, *resume), 104, f"another training writes {profile}.partial: wait for it")
    expect_refusal(tools.run(*train), 104, "interrupted training", "--resume")
    expect_refusal(tools.run(*train, "--seed", "2", "--resume"), 104, "seed")
    code, out, err = tools.run(*train, "--resume")
    assert code == 0 and f"resumed: {before[1]} cells" in err, code
    check_grid(out, ["SIB1", "SDB1-4", "FIB1"])
    expect_no_escapes(out + err)
    assert os.listdir(tools.scratch) == ["profile.json"], "checkpoint or logs left behind"
    with open(profile) as file:
        result = json.load(file)
    assert result["service"] == "curtail.hdsearch.Search" and len(result["cells"]) >= 9
    expect_valid("profile", profile)

    check_verify(tools, profile)
    check_compare(tools, profile)
    check_profiles_are_refused(tools, profile)
    expect_nothing_left()


def can_lock(path):
    with open(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def check_verify(tools, profile):
    verify = ("verify", "hdsearch", profile, *SMALL, "--quick", "--seconds", "0.1")
    code, out, _ = tools.run(*verify, "--count", "1", "--max-loss", "1000")
    # How fast which config is depends on the machine: here only that it judges, and says so.
    assert code in (0, 99) and re.search(r"agrees|within|noise|loses|beyond", out), (code, out)
    expect_refusal(tools.run(*verify, "--loads", "300"), 104, "300")
    expect_refusal(tools.run("verify", "hdsearch"), 104, "profile")
    code, out, err = tools.run("verify", "router", profile, "--quick")
    assert code == 104 and "the profile is of curtail.hdsearch.Search, and the target is " in err and "starting" not in err, (code, out, err)


def check_compare(tools, profile):
    path = tools.path("compare.json")
    compare = ("compare", "hdsearch", *SMALL, "--profile", profile, "--quick", "--json", path)
    code, out, err = tools.run(*compare, "--policies", "mutune,fm,ipi,tbd,online,online+profile,static:FIB1",
                               "--scenarios", "flash-crowd", "--flash-crowd", "100..500")
    assert code == 0, code
    expect_no_escapes(out + err)
    with open(path) as file:
        runs = json.load(file)["runs"]
    expect_valid("comparison", path)
    assert len(runs) == 7 and all(sum(phase["due"] for phase in run["phases"]) > 400 for run in runs)
    os.remove(path)
    expect_refusal(tools.run(*compare, "--policies", "mutune,best"), 104, "best")
    expect_refusal(tools.run(*compare, "--scenarios", "storm"), 104, "storm", "flash-crowd")
    expect_refusal(tools.run(*compare, "--flash-crowd", "5"), 104, "--flash-crowd")
    expect_refusal(tools.run("compare", "hdsearch"), 104, "--profile")
    expect_refusal(tools.run("compare", "nosuch", "--profile", profile), 104, "nosuch")
    expect_refusal(tools.run(*compare, "--rounds", "4", "--max-rounds", "2"), 104, "--max-rounds")

    brief = ("compare", "hdsearch", *SMALL, "--policies", "static:FIB1,static:SIB1", "--scenarios", "steady", "--loads", "300",
             "--seconds", "0.1", "--rounds", "1", "--json", path)
    code, out, err = tools.run(*brief, "--max-rounds", "2")
    assert code == 0 and "1 to 2 rounds" in out, (code, out)
    assert re.search(r"^round 2 follows\. static:FIB1 against static:SIB1: . of the 5 rounds", err, re.M), err
    with open(path) as file:
        result = json.load(file)
    expect_valid("comparison", path)
    assert len(result["runs"]) == 4 and result["judgements"][0]["overall"]["verdict"] == "too_few_rounds"
    os.remove(path)

    process = tools.start(*brief)
    await_line(process.stderr, r"^run 1/")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=MAX_WAIT_S)
    assert process.returncode == 105, process.returncode
    # The run that ended may be void, on a busy machine.
    assert "PARTIAL. No verdict" in out and re.search("nothing is said about: .*static:SIB1", out), out
    os.remove(path)
    expect_nothing_left()


def check_profiles_are_refused(tools, profile):
    """A server does not start with a profile that it should not follow, and says why."""
    with open(profile) as file:
        good = json.load(file)
    broken = tools.path("broken.json")
    serve = (tools.hdsearch, "--service", "mid-tier", "--leaf", "127.0.0.1:1", "--data", "synthetic:N=200,D=8", "--quiet",
             "--listen", "127.0.0.1:0", "--policy", "mutune", "--profile", broken)
    foreign = {**good, "machine": {**good["machine"], "cpus": 4096}}
    for content, complaint in ((json.dumps(foreign), "cpus"), (json.dumps({**good, "service": "x.Y"}), "x.Y"),
                               (json.dumps({**good, "schema_version": 99}), "99"), (json.dumps(good)[:-9], "JSON")):
        with open(broken, "w") as file:
            file.write(content)
        done = subprocess.run(serve, env=tools.env, text=True, capture_output=True, timeout=MAX_WAIT_S)
        assert done.returncode == 104 and complaint in done.stderr and broken in done.stderr, done
    with open(broken, "w") as file:
        json.dump(foreign, file)
    server = subprocess.Popen([*serve, "--any-machine"], env=tools.env, text=True, stdout=subprocess.PIPE)
    await_line(server.stdout, r"^ready ")
    server.terminate()
    assert server.wait(timeout=MAX_WAIT_S) == 0


def expect_refusal(result, code, *texts):
    assert result[0] == code, f"exit code {result[0]}, not {code}"
    for text in texts:
        assert text in result[2], f"{text!r} is missing in: {result[2]}"


def test_demo_refuses(tools):
    small = ("demo", "--html", tools.path("demo.html"), "--corpus", "synthetic:N=100,D=8")
    expect_refusal(tools.run(*small, "--program", "/nonexistent/hdsearch"), 104,
                   "cannot run /nonexistent/hdsearch", "No such file")
    expect_refusal(tools.run("demo", "--corpus", "/nonexistent/data.fvecs"), 104, "/nonexistent/data.fvecs")
    expect_refusal(tools.run("demo", "--configs", "SIB1,XYZ9"), 104, "--configs", "XYZ9")
    expect_refusal(tools.run("demo", "--loads", "100,none"), 104, "--loads", "none")
    expect_refusal(tools.run(*small, "--program", "/bin/false"), 1, "leaf-0 ended with code 1")
    expect_refusal(tools.run("demo", "--no-such-flag"), 104, "hint")
    expect_nothing_left()


def test_help(tools):
    """The words that every command line takes, and what is said of words that are nearly right."""
    for args in (("--version",), ("version",)):
        code, out, _ = tools.run(*args)
        assert code == 0 and re.fullmatch(r"curtail \d+\.\d+\.\d+\n", out), out
    code, whole, _ = tools.run("--help")
    assert code == 0 and tools.run("help")[1] == whole == tools.run("help", "help")[1]
    assert tools.run("help", "load")[1] == tools.run("load", "--help")[1]
    demo = tools.run("help", "demo")[1]
    assert "flash crowd" in demo and "mutune" in demo and "under auto" in demo and "ramp" not in demo, demo
    expect_refusal(tools.run("lod", "--rps", "5"), 104, "no command \"lod\"; did you mean \"load\"?", "curtail help")
    expect_refusal(tools.run("help", "swich"), 104, "did you mean \"switch\"?")
    expect_refusal(tools.run("--quiet", "dance"), 104, "no command \"dance\"\n")
    expect_refusal(tools.run("load", "a:1", "--rsp", "5"), 104, "--rsp: unknown flag or word; did you mean \"--rps\"?\n", "hint: see curtail load --help\n")
    for elsewhere, here in (("--rate", "--rps"), ("--rate=5", "--rps"), ("--concurrency", "--closed")):
        expect_refusal(tools.run("load", "a:1", elsewhere, "5"), 104, f'{elsewhere}: unknown flag or word; did you mean "{here}"?\n')
    expect_refusal(tools.run("top", "hdsearch", "--quite"), 104, "did you mean \"--quiet\"?", "hint: see curtail top --help\n")
    expect_refusal(tools.run("up", "hdsearch", "--lowres=5"), 104, "--lowres=5: unknown flag or word\n")
    expect_refusal(tools.run("report"), 104, "file is missing\n", "hint: see curtail report --help\n")
    for args in ((), ("--quiet",)):
        expect_refusal(tools.run(*args), 104, "name a command\n", "hint: curtail help lists the commands\n")
    expect_refusal(tools.run("--verson"), 104, "--verson: unknown flag or word; did you mean \"--version\"?\n")
    expect_refusal(tools.run("lode"), 104, "there is no command \"lode\"; did you mean \"load\"?\n")
    expect_refusal(tools.run("man", "load"), 104, "man takes no words; curtail help COMMAND is the help of a command\n")
    code, out, _ = tools.run("help", "exit-codes")
    assert code == 0 and all(f"\n{number:4}  " in out for number in (0, 1, 98, 99, 104, 105)), out
    expect_refusal(tools.run("render", "bank", "--to", "k8s"), 104, '--to: unknown value "k8s"; write kubernetes, helm or compose\n')
    for image in ("Bad Image!", "UPPER:tag"):
        expect_refusal(tools.run("render", "bank", "--to", "compose", "--image", image), 104, f"--image: '{image}' is not the name of an image\n")
    expect_refusal(tools.run("render", "hdsearch", "--to", "helm", "--output", "/dev/null/chart"), 1, "/dev/null/chart",
                   "hint: --output takes a folder")
    for args in (("observe", "hdsearch", "--seconds"), ("traces", "hdsearch", "--seconds"), ("top", "--seconds"),
                 ("load", "hdsearch", "--trace-to", "memory", "--trace-sample"), ("up", "hdsearch", "--trace-to", "memory", "--trace-sample")):
        expect_refusal(tools.run(*args, "nan"), 104, f"{args[-1]}: nan is not a number from 0")
    expect_refusal(tools.run("compare", "./x.yaml", "--policies", "mutune"), 104, "compare takes shipped applications only")
    expect_refusal(tools.run("new", "My App"), 104, "a name starts with a lower-case letter and has lower-case letters and digits, at most 40\n")
    expect_refusal(tools.run("new", "kiosk", "--services", "front"), 104, "--services: give 2 to 50 services")
    expect_refusal(tools.run("new", "shop"), 104, "application \"shop\": curtail has an application of this name; choose another\n")
    expect_refusal(tools.run("new", "kiosk", "--services", "front,class"), 104, "--services \"class\": C++ or the files that this writes use the name")
    expect_refusal(tools.run("top", "bank/front-end"), 104, "top takes an application: curtail top bank\n")
    expect_refusal(tools.run("provision", "bank", "--qos", "errors<1%"), 104, "--qos needs a percentile, as in 'p99<50ms'\n")
    expect_refusal(tools.run("provision", "bank", "--rps", "0"), 104, "--rps: 0 is not above 0\n")
    for command in ("load", "logs", "observe", "top", "traces", "status", "switch", "down", "ps"):
        code, _, err = tools.run(command, "hdserach", *(("--rps", "5") if command == "load" else ()))
        assert code in (1, 104) and "unknown application \"hdserach\"; did you mean \"hdsearch\"?" in err, (code, err)
    for args in (("train", "hdserch"), ("verify", "hdserch", "x.json"), ("compare", "hdserch", "--flash-crowd", "1..2"),
                 ("up", "hdserch")):
        code, out, err = tools.run(*args)
        assert code == 104 and out == "", (code, out)
        assert "unknown application \"hdserch\"; did you mean \"hdsearch\"?\n" in err, err
    expect_refusal(tools.run("up", "kiosk"), 104, "unknown application \"kiosk\"; there are bank, fanout, ", "hint: give the path of your own topology, ./NAME.yaml\n")
    for args, text in ((("down", "bank/front-end"), "down takes an application: curtail down bank\n"),
                       (("ps", "bank/front-end"), "ps takes an application: curtail ps bank\n"),
                       (("top", "bank"), "bank is not up, nor is any other application; start it with curtail up bank\n"),
                       (("down", "bank", "--timeout", "5"), "--timeout: '5' is not a duration"),
                       (("scale", "bank/front-end", "3", "--timeout", "0s"), "--timeout: 0s is not above 0"),
                       (("up", "hdsearch", "--start-timeout", "5"), "--start-timeout: '5' is not a duration"),
                       (("traces", "bank", "--slow", "10"), "--slow: '10' is not a duration"),
                       (("observe", "127.0.0.1:1"), "observe takes an application that is up, not an address\n"),
                       (("traces", "127.0.0.1:1"), "save http://127.0.0.1:1/traces as FILE.json and give that\n"),
                       (("traces", "nope.json"), "cannot open nope.json")):
        expect_refusal(tools.run(*args), 104, text)


def commands_in(help_text):
    return re.findall(r"^  ([a-z-]+)  +\S", help_text.partition("\nSubcommands:")[2].partition("\n\n")[0], re.M)


def expect_fits(text, columns):
    wide = [line for line in text.splitlines() if len(line) > columns and " " in line.strip()]
    assert text and not wide, wide


def test_narrow_help(tools):
    """Help and plans fit the terminal: those of each command, and the help of each program."""
    programs = [tools.curtail, *os.environ["CURTAIL_PROGRAMS"].split(":")]
    assert {"social", "curtail-gateway"} <= {os.path.basename(program) for program in programs}, programs
    for program in programs:
        whole = subprocess.run([program, "--help"], text=True, capture_output=True, check=True, timeout=MAX_WAIT_S).stdout
        for words in [], *([command] for command in commands_in(whole)):
            for columns in (60, 80):
                text = shown(tools, columns, program, *words, "--help")
                assert "--help" in text, text
                expect_fits(text, columns)
    loads = ("--scenarios", "steady", "--loads", "100,200,400,800,1600,3200,6400,12800,25600")
    for plan in (("train", "hdsearch"), ("train", "hdsearch", "--fences"), ("provision", "hdsearch"),
                 ("compare", "hdsearch", "--policies", "online,static:auto,static:FIB1,static:SIP1,static:SDB1-16", *loads),
                 ("load", "127.0.0.1:7000", "--schedule", "flash-crowd:100..8000", "--method", "/grpc.health.v1.Health/Check",
                  "--data-hex", "")):
        text = shown(tools, 60, tools.curtail, *plan, "--dry-run")
        expect_fits(text, 60)
        assert "train" not in plan or re.search(r"^configs  SIB1.*,$\n^         \S", text, re.M) or "--fences" in plan, text


def test_docs(tools):
    """The man page and the completions know every command and its flags."""
    commands = commands_in(tools.run("--help")[1])
    assert {"up", "load", "help", "man", "completion"} <= set(commands), commands
    code, page, _ = tools.run("man")
    assert code == 0 and page.startswith(".TH CURTAIL 1 ") and "\\-\\-start\\-timeout" in page, page[:200]
    for command in commands:
        assert re.search(rf"^\.SS curtail {command}\b".replace("-", r"\\?\\-"), page, re.M), command
    for shell in ("bash", "zsh", "fish"):
        code, script, _ = tools.run("completion", shell)
        assert code == 0 and all(command in script for command in commands) and "start-timeout" in script, shell
        with open(tools.path(shell), "w") as file:
            file.write(script)
        if shutil.which(shell):
            subprocess.run([shell, "-n", file.name], check=True, timeout=MAX_WAIT_S)

    def complete(*words):
        line = " ".join(f"'{word}'" for word in words)
        script = f"source {tools.path('bash')}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _curtail; echo ${{COMPREPLY[*]}}"
        return subprocess.run(["bash", "-c", script], text=True, capture_output=True, check=True,
                              timeout=MAX_WAIT_S).stdout.split()
    assert complete("curtail", "co") == ["compare", "compare-results", "completion"], complete("curtail", "co")
    assert complete("curtail", "--quiet", "up", "hd") == ["hdsearch"]
    assert complete("curtail", "up", "hdsearch", "--det") == ["--detach"]
    assert complete("curtail", "help", "swi") == ["switch"]
    assert complete("curtail", "report", "x") == []
    assert complete("curtail", "render", "hdsearch", "--to", "") == ["kubernetes", "helm", "compose"]
    assert "leaf.shards=" in complete("curtail", "up", "hdsearch", "--set", "leaf."), complete("curtail", "up", "hdsearch", "--set", "")
    assert complete("curtail", "switch", "hd") == [], "nothing is up"
    assert re.search(r"^\.B \\-\\-scale \[N\]\nhow many", page, re.M), "the value is called as its description calls it"
    if shutil.which("man"):
        with open(tools.path("curtail.1"), "w") as file:
            file.write(page)
        text = subprocess.run(["man", "-l", file.name], env={**os.environ, "MANWIDTH": "80", "MAN_KEEP_FORMATTING": ""}, text=True,
                              capture_output=True, check=True, timeout=MAX_WAIT_S).stdout
        long = [line for line in text.splitlines() if len(line) > 80 and re.match(r"( {7}| {14})\S", line)]  # examples are set in further
        assert "curtail - microservices" in text and not long, long
    expect_refusal(tools.run("completion", "csh"), 104, "csh")


def test_says(tools):
    """A server says once where it listens, and what it logs is from its program."""
    server = subprocess.Popen([tools.hdsearch, "--service", "leaf", "--data", "synthetic:N=200,D=8", "--listen", "127.0.0.1:0"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        await_line(server.stdout, r"^ready 127\.0\.0\.1:\d+$")
        server.send_signal(signal.SIGTERM)
        out, err = server.communicate(timeout=MAX_WAIT_S)
        assert "listening on" not in out and "hdsearch: draining (SIGTERM)" in err and "curtail: " not in err, (out, err)
    finally:
        server.kill()


def serve_leaf(tools, *flags):
    """A small server, and its address."""
    server = subprocess.Popen(
        [tools.hdsearch, "--service", "leaf", "--data", "synthetic:N=200,D=8", "--listen", "127.0.0.1:0", "--quiet",
         *flags],
        env=tools.env, text=True, stdout=subprocess.PIPE)
    for line in server.stdout:
        if line.startswith("ready "):
            return server, line.split()[1]
    raise AssertionError("the server did not start")


def test_load(tools):
    health = ("--method", "/grpc.health.v1.Health/Check")
    brief = ("--rps", "200", "--duration", "1s", "--warmup", "100ms", *health)
    server, address = serve_leaf(tools)
    try:
        check_load_runs(tools, address, brief)
        check_load_refuses(tools, address, brief, health)
        check_load_looks(tools, address, brief)
        paused = start_paused_runs(tools, address)
        check_load_shares(tools, address)
        check_paused_runs(tools, paused)
        check_load_progress(tools, address, health)
    finally:
        server.terminate()
        server.wait(timeout=MAX_WAIT_S)
    expect_refusal(tools.run("load", "127.0.0.1:1", *brief), 1, "127.0.0.1", "hint: is the server running")
    expect_nothing_left()


def check_load_progress(tools, address, health):
    """What is drawn while a load runs has room in the terminal, so that the next drawing covers it."""
    for columns in (80, 60):
        text = shown(tools, columns, tools.curtail, "load", address, "-c", "2", "--warmup", "0s", "-z", "900ms", *health,
                     stream="stderr")
        lines = re.split(r"[\r\n]|\x1b\[[AJ]", text)
        assert any("in flight" in line for line in lines), text
        assert all(len(line) < columns for line in lines), lines


def test_switch(tools):
    admin = "unix:" + tools.path("admin.sock")
    server, address = serve_leaf(tools, "--admin", admin)
    try:
        for line in server.stdout:
            if line.startswith("admin on "):
                break
        code, out, _ = tools.run("switch", admin)
        assert code == 0 and out == "auto\n", out
        code, out, _ = tools.run("switch", admin, "SDP1-4")
        assert code == 0 and out == "auto -> SDP1-4\n", out
        code, out, _ = tools.run("switch", admin)
        assert code == 0 and out == "SDP1-4\n", out
        health = ("--method", "/grpc.health.v1.Health/Check", "--duration", "200ms", "--warmup", "0ms")
        expect_load(tools.run("load", address, "--rps", "200", *health, "--fail-if", "errors<1%"), 0)
        expect_refusal(tools.run("switch", admin, "junk"), 104, "for example SIB1")
        for config in ("FIB1", "ADB1-2-2", "FDP1-2"):
            code, out, _ = tools.run("switch", admin, config)
            assert code == 0 and out.endswith(f"-> {config}\n"), out
            expect_load(tools.run("load", address, "--rps", "200", *health, "--fail-if", "errors<1%"), 0)
        expect_load(tools.run("load", admin, "--rps", "50", "--method", "curtail.admin.v1.Admin/GetConfig", "--duration",
                              "200ms", "--warmup", "0ms", "--fail-if", "errors<1%"), 0)  # found by reflection
        code, out, _ = tools.run("status", admin, "--json")
        status = json.loads(out)
        assert code == 0 and status["config"] == "FDP1-2" and status["begun"] > 0, out
        assert [(pool["name"], pool["threads"]) for pool in status["pools"]] == [("network", 1), ("workers", 2)], out
        code, out, _ = tools.run("status", admin)
        assert code == 0 and "config FDP1-2" in out and "queue:" in out, out
        expect_refusal(tools.run("status", address), 1, "unknown method", "--admin")
        expect_refusal(tools.run("switch", admin, "SDB1-900"), 104, "was started with 64")
        expect_refusal(tools.run("switch", address, "SIB1"), 1, "unknown method", "--admin")
        profile = tools.path("leaf.json")
        code, out, err = tools.run("train", address, "--admin", admin, "--method", "grpc.health.v1.Health/Check",
                                   "--configs", "SIB1,FIB1,SDB1-900", "--loads", "100,300", "--seconds", "0.1",
                                   "--out", profile)
        assert code == 0 and "SDB1-900: left out" in err, (code, err)
        with open(profile) as file:
            assert json.load(file)["service"] == "grpc.health.v1.Health"
        expect_refusal(tools.run("train", address, "--method", "grpc.health.v1.Health/Check", "--out", profile), 104, "--admin")
    finally:
        server.terminate()
        server.wait(timeout=MAX_WAIT_S)
    expect_nothing_left()


def expect_load(result, wanted):
    """The exit code of a load; on a busy machine its generator may rightly find that it was late."""
    code, out, _ = result
    assert code == wanted or (code == 98 and "VOID" in out), code
    return out


def check_load_runs(tools, address, brief):
    path = tools.path("run.json")
    out = expect_load(tools.run("load", address, *brief, "--json", path, "--fail-if", "errors<1%,max<60s"), 0)
    plan = out.splitlines()[0]
    assert plan.startswith("load ") and "open loop, poisson, 200 a second, seed 1" in plan, plan
    for word in ("requests", "latency (", "send lag (us)", "generator", "codes         OK "):
        assert word in out, word
    with open(path) as file:
        result = json.load(file)
    expect_valid("report", path)
    assert result["schema_version"] == 2 and len(result["runs"]) == 1
    requests = result["runs"][0]["requests"]
    assert requests["failed"] == 0 and 150 < requests["ok"] < 250

    code, out, err = tools.run("load", address, "--rps", "0.2k", "-n", "20", "-H", "x-id: {{uuid}}", "-H", "x-token: abc",
                               *brief[6:], "--json", "-")
    assert code in (0, 98) and "then 20 requests" in err, (code, err)
    result = json.loads(out)
    assert result["plan"]["requests"] == result["runs"][0]["requests"]["sent"] == 20
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", result["started"]), result["started"]
    assert " load " in result["command"] and "x-token: ***" in result["command"] and "abc" not in out
    assert result["request"] == "no bytes; x-id: {{uuid}}; x-token: ***", result["request"]
    expect_load(tools.run("load", address, "-c", "4", "-z", "200ms", *brief[6:], "--csv", path), 0)
    expect_load(tools.run("load", f"dns:///localhost:{address.rsplit(':', 1)[1]}", "--balancer", "round_robin", *brief), 0)
    code, out, err = tools.run("load", address, "-c", "2", "-n", "20", "--method", "grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                               "--stream", "3", "--data", '{"list_services": "*"}', "--json", "-")
    assert code == 0 and "a request is a message and its answer, on 3 streams in turn" in err, (code, err)
    assert json.loads(out)["runs"][0]["requests"]["ok"] == 20, out
    with open(path) as file:
        assert file.readline().startswith("run,end_s,") and file.readline().startswith("1,")

    out = expect_load(tools.run("load", address, "--rps", "200", "-n", "30", "--repeat", "2", *brief[6:], "--raw", path), 0)
    with open(path) as file:
        assert file.readline() == "run,due_us,latency_us,ok\n"
        requests = [line.rstrip("\n").split(",") for line in file]
    for run in ("1", "2"):
        mine = [(float(due), float(latency), ok) for each, due, latency, ok in requests if each == run]
        assert len(mine) == 30 and all(0 <= due < 1e6 and latency > 0 and ok == "1" for due, latency, ok in mine), mine

    junit = tools.path("run.xml")
    out = expect_load(tools.run("load", address, *brief, "--fail-if", "p50<1ns,errors<1%", "--json", path, "--junit", junit), 99)
    assert "FAILED  p50<1ns" in out
    expect_valid("report", path)
    with open(path) as file:
        said = {one["text"]: one["runs"][0]["verdict"] for one in json.load(file)["thresholds"]}
    assert said == {"p50<1ns": "failed", "errors<1%": "met"}, said
    suite = xml.etree.ElementTree.parse(junit).getroot()
    cases = {case.get("name"): [verdict.tag for verdict in case] for case in suite}
    assert cases["p50<1ns"] == ["failure"] and cases["errors<1%"] == [] and suite.get("failures") == "1", cases
    out = expect_load(tools.run("load", address, "--closed", "4", *brief[2:]), 0)
    assert "CLOSED LOOP of 4" in out

    process = tools.start("load", address, "--rps", "100", "--duration", "10m", "--warmup", "0", *brief[6:])
    assert process.stdout.readline().startswith("load ")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=MAX_WAIT_S)
    assert process.returncode == 105 and "INTERRUPTED" in out, (process.returncode, out)


def read_json(path):
    with open(path) as file:
        return json.load(file)


def check_load_shares(tools, address):
    """Three generators that start at one time; then one of them has no result."""
    flags = ("load", address, "--rps", "300", "--duration", "1s", "--warmup", "200ms", "--timeout", "30s", "--method",
             "grpc.health.v1.Health/Check", "--data", '{"service": ""}', "--fail-if", "p50<20s")
    files = [tools.path(f"share{n}.json") for n in (1, 2, 3)]
    for ahead_s in (2, 8, 32):  # a busy machine is not ready so soon
        start = f"{time.time() + ahead_s:.3f}"
        shares = [tools.start(*flags, "--start-at", start, "--share", f"{n}/3", "--json", file) for n, file in enumerate(files, 1)]
        outs = [share.communicate(timeout=MAX_WAIT_S) for share in shares]
        if not any("choose a later time" in err for _, err in outs):
            break
    assert all(share.returncode in (0, 98) for share in shares), outs
    assert "share 2 of 3" in outs[1][0], outs[1]
    code, out, err = tools.run("report", *files, "--json", tools.path("shares.json"))
    assert code in (0, 98) and "on each of 3 generators" in out and "threshold" in out, (code, out, err)
    expect_valid("report", tools.path("shares.json"))
    whole, *parts = [read_json(file)["runs"][0] for file in (tools.path("shares.json"), *files)]
    assert whole["requests"]["ok"] == sum(part["requests"]["ok"] for part in parts) > 150, whole["requests"]
    assert not any("has no result" in reason for reason in whole["invalid_reasons"]), whole["invalid_reasons"]
    assert 0 <= whole["started_unix_us"] / 1e6 - float(start) < MAX_WAIT_S, "it starts when it is told"
    code, out, err = tools.run("report", files[0], files[2], tools.path("died.json"))
    assert code == 98 and "died.json cannot be opened" in out and "share 2 of 3 has no result" in out, (code, out, err)
    expect_refusal(tools.run(*flags, "--share", "1/3", "--start-at", start), 104, "--start-at", "choose a later time")
    expect_refusal(tools.run(*flags, "--share", "4/3"), 104, "--share", "write 2/3")


def start_paused_runs(tools, address):
    """Two runs at known times. The last journeys of the first run pause for longer than the other times between the runs last."""
    check = "method: grpc.health.v1.Health/Check\n    data: '{\"service\": \"\"}'"
    journey = tools.path("paused.yaml")
    with open(journey, "w") as file:
        file.write(f"steps:\n  - name: first\n    {check}\n  - name: second\n    pause: 4500ms\n    {check}\n")
    return tools.start("load", address, "--rps", "20", "--duration", "1s", "--warmup", "0s", "--timeout", "100ms", "--journey", journey,
                       "--repeat", "2", "--start-at", f"{time.time() + 8:.3f}", "--json", tools.path("paused.json"))


def check_paused_runs(tools, process):
    out, err = process.communicate(timeout=MAX_WAIT_S)
    assert process.returncode in (0, 98), (process.returncode, out, err)
    first, second = read_json(tools.path("paused.json"))["runs"]
    assert second["started_unix_us"] - first["started_unix_us"] > 11e6, (first, second)


def check_load_refuses(tools, address, brief, health):
    run = lambda *args: tools.run("load", *args)
    expect_refusal(run(address, *brief, "--json", "/dev/full"), 1, "/dev/full", "hint: free some space")
    expect_refusal(run(address, "--rps", "5", "--method", "/no.Such/Method"), 1, "hint: the server does not serve")
    expect_refusal(run(address, *health), 104, "--rps N, --schedule SHAPE or --closed N")
    expect_refusal(run(address, *brief, "--json", "-", "--csv", "-"), 104, "standard output")
    expect_refusal(run(address, *brief, "--raw", "/dev/full"), 1, "/dev/full")
    expect_refusal(run(address, *brief[2:], "--rps", "5x"), 104, "--rps", "2.5k")
    expect_refusal(run(address, "--rps", "5"), 104, "either --method package.Service/Method")
    expect_refusal(run(address, "--rps", "-5", *health), 104, "--rps")
    expect_refusal(run(address, "--rps", "1e9", *health), 104, "--rps", "10 million")
    expect_refusal(run(address, *brief, "--balancer", "best"), 104, 'no balancer "best"', "round_robin")
    expect_refusal(run(address, *brief, "--timeout", "5"), 104, "--timeout", "write 10s")
    expect_refusal(run(address, *brief, "--fail-if", "p99<5"), 104, "--fail-if", "write 5ms")
    expect_refusal(run(address, "--rps", "5", "--method", "grpc.reflection.v1.ServerReflection/ServerReflectionInfo"), 104,
                   "ServerReflectionInfo streams requests and replies", "--stream N")
    expect_refusal(run(address, *brief, "--stream", "2"), 104, "does not stream; leave --stream out")
    expect_refusal(run(address, "--rps", "5", "--method", "grpc.health.v1.Health/Watch", "--stream", "2"), 104, "write --stream 1")
    expect_refusal(run(f"http://{address}/", "--rps", "5", "--stream", "2"), 104, "--stream is for gRPC methods")
    expect_refusal(run(address, "--rps", "5", "--method", "Health"), 104, "package.Service/Method")
    expect_refusal(run(address, "--rps", "5", "--method", "grpc.health.v1.Health/Chek"), 104, 'did you mean "Check"')
    expect_refusal(run(address, *brief, "--data-hex", "0g"), 104, "--data-hex")
    expect_refusal(run("not an address", *brief), 104, "\"not an address\" has no port, and no application has this name; write HOST:PORT")
    expect_refusal(run(address, *brief, "--pick", "zipf:1"), 104, "--pick")
    expect_refusal(run(address, *brief, "--tls"), 1, "TLS", "hint: leave --tls out")
    expect_refusal(run(address, *brief, "--insecure"), 104, "need --tls")
    expect_refusal(run(address, *brief, "-H", "grpc-x: y"), 104, "--metadata")
    expect_refusal(run(address, *brief, "--data", '{"serivce": 1}'), 104, "serivce", 'did you mean "service"', "1:2")
    expect_refusal(run(address, *brief, "--data", '{"service": "{{zipf}}"}'), 104, "zipf", "1:13")
    trace = tools.path("trace.csv")
    for text, complaint in (("", "no lines"), ("time_s,rate_per_s\n1,5\n0,5\n", ":3:"), ("0,-5\n", ":1:")):
        with open(trace, "w") as file:
            file.write(text)
        expect_refusal(run(address, "--schedule", trace, *health), 104, "--schedule", complaint)
    expect_refusal(run(address, "--schedule", "wobble:1..2", *health), 104, "flash-crowd:100..8000")
    expect_refusal(run(address, "--find-max", "p99<5ms", "--closed", "2", *health), 104, "--rps")
    check_load_flags(tools, address, brief, health)


def check_load_flags(tools, address, brief, health):
    """A wrong flag is named before the plan is printed, with what to write."""
    bytes_only = (address, "--rps", "5", "--method", "a.B/C")
    for args, text in (
            ((address, *brief, "--fail-if", ""), "--fail-if: the condition is empty; write p99<5ms\n"),
            ((address, "--find-max", "--rps", "5", *health), "--find-max: it needs a condition, such as 'p99<5ms'\n"),
            ((*bytes_only, "--proto", "nope.proto"), "cannot find nope.proto, here or in an --import-path\n"),
            ((*bytes_only, "--proto", tools.scratch), f"{tools.scratch} is a folder; name a .proto file\n"),
            ((address, *brief, "--data", "@" + tools.scratch), f"--data: {tools.scratch} is a folder; name a file\n"),
            (("hdsearch", address, "--rps", "5", "--records", "100"), "--records: hdsearch has no such flag; it is for router\n"),
            ((address, *brief, "--records", "100"), "--records: it is for router; leave it out, or name the application\n"),
            ((address, "--rps", "-5", *health), "--rps: -5 is not above 0\n"),
            ((address, "--closed", "0", *health), "--closed: 0 is not from 1 to 100000\n"),
            ((address, *brief, "--connections", "1000000", "--dry-run"), "--connections: 1000000 is not from 1 to 1024\n"),
            ((address, *brief, "--timeout", "0s", "--dry-run"), "--timeout: 0s is not above 0; write 10s, for example\n"),
            ((address, *brief, "--seed", "-1"), "--seed: -1 is below 0\n"),
            ((address, *brief, "--threads", "0"), "--threads: 0 is not from 1 to 256\n"),
            ((address, *brief, "--closed", "2"), "--rps and --closed cannot be combined\n"),
            ((address, "--closed", "2", "--threads", "4", *health), "--closed must be at least --threads, 4\n"),
            ((address, *brief, "--balancer", "best"), "--balancer: there is no balancer"),
            ((":7000", *brief), "curtail: target \":7000\" is not NAME:PORT"),
            ((address, *brief, "--fail-if", "pay.p99<5ms"), "--fail-if: 'pay' needs --journey, or a mix of methods; write p99\n"),
            ((address, *brief, "--data", '{"x": 1}'), "curtail: --data:1:2: grpc.health.v1.HealthCheckRequest has no field \"x\""),
            ((f"http://{address}/", *brief), "--method is for gRPC; with an http:// target use -X\n"),
            ((address, f"http://{address}/", "--rps", "5"), "give only URLs, or only gRPC addresses\n")):
        code, out, err = tools.run("load", *args)
        assert code == 104 and out == "" and text in err, (args, code, out, err)
    expect_refusal(tools.run("load", address, *brief, "--admin", "127.0.0.1:1"), 1, "--admin 127.0.0.1:1: cannot connect: Connection refused; is this the server's --admin?\n")
    expect_refusal(tools.run("load", address, "--rps", "5", "-n", "1", "--method", "grpc.health.v1.Helth/Check"), 1, "there is no service grpc.health.v1.Helth in ", "did you mean \"grpc.health.v1.Health\"?")


def check_load_looks(tools, address, brief):
    code, out, _ = tools.run("load", address, "--list")
    assert code == 0 and "grpc.health.v1.Health/Check(grpc.health.v1.HealthCheckRequest) returns" in out
    with open(tools.path("shop.proto"), "w") as file:
        file.write('syntax = "proto3"; import "google/api/annotations.proto"; import "google/api/httpbody.proto"; service Shop {'
                   ' rpc Buy(google.api.HttpBody) returns (google.api.HttpBody) { option (google.api.http) = {post: "/buy"}; } }')
    code, out, err = tools.run("load", "--list", "--proto", tools.path("shop.proto"))
    assert code == 0 and "Shop/Buy(google.api.HttpBody) returns" in out, (code, out, err)
    code, out, _ = tools.run("load", address, "--debug", "--method", "grpc.health.v1.Health/Check")
    assert code == 0 and json.loads(out) == {"status": "SERVING"}, out

    html, spectrum = tools.path("run.html"), tools.path("run.hgrm")
    steps = ("--schedule", "steps:100,300", *brief[2:])
    out = expect_load(tools.run("load", address, *steps, "--repeat", "2", "--html", html, "--hgrm", spectrum,
                                "--json", tools.path("two.json"), "--data", '{"service": ""}', "-H", "k: v"), 0)
    assert "mean 200, peak 300 a second" in out and "2 runs" in out, out
    with open(html) as file:
        assert file.read().startswith("<!DOCTYPE html>")
    with open(spectrum) as file:
        assert "#[Mean" in file.read()
    code, out, _ = tools.run("report", tools.path("two.json"))
    assert code == 0 and "latency (" in out
    code, out, _ = tools.run("compare-results", tools.path("two.json"), tools.path("two.json"))
    verdict = "valid runs: 0" if "valid runs: 0" in out else "noise"  # both void on a busy machine
    assert code == 0 and verdict in out and "better" not in out.split("WARNING")[0], out
    code, out, _ = tools.run("load", address, "--find-max", "p99<30s", "--rps", "2000", "--duration", "100ms",
                             "--warmup", "0s", *brief[6:], "--timeout", "40s")
    assert code in (0, 1, 98) and "trial 1 " in out and "highest rate" in out, code


if __name__ == "__main__":
    run_case(globals())
