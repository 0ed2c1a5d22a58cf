#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Starts and ends applications as users do: in the foreground and in the background, with a terminal and without.

Usage: up_test.py CASE CURTAIL HDSEARCH SCRATCH_FOLDER

Whatever ends `curtail up`, its processes end with it.
"""

import fcntl
import glob
import json
import os
import pathlib
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import time

from tooling import (MAX_WAIT_S, await_line, await_ps, expect_no_escapes, expect_nothing_left, free_address, marked_processes, ps,
                     ps_answered, shown)

DATA = "data=synthetic:N=2000,D=16,seed=1"
SMALL = ["--set", DATA, "--set", "leaf.shards=2"]
NAMES = ["leaf-0", "leaf-1", "mid-tier"]


def up(tools, *args):
    """In the foreground; returns the process once all serve."""
    process = tools.start("up", "hdsearch", *SMALL, *args)
    await_line(process.stdout, r"^hdsearch is up: mid-tier at ")
    return process


def expect_serving(tools, names=None):
    found = ps_answered(tools)
    assert sorted(found) == sorted(names or NAMES), found
    for p in found.values():
        assert p["state"] == "ready" and p["health"] == "serving" and p["pid"] > 0, p
        assert p["resident_mib"] > 0, p
    return found


def test_background(tools):
    code, out, err = tools.run("up", "hdsearch", *SMALL, "--detach", "--config", "SDB1-4")
    out_up = out
    assert code == 0 and "hdsearch is up: mid-tier at 127.0.0.1:" in out, (code, out, err)
    said = re.search(r"memory: about (\d+) MiB; .* are available", err)
    assert said, err
    expect_no_escapes(out + err)
    found = expect_serving(tools)
    resident = sum(process["resident_mib"] for process in found.values())
    assert 0.5 * resident < float(said[1]) < 2 * resident, (said[0], resident)
    assert found["mid-tier"]["config"] == "SDB1-4" and found["leaf-0"]["config"] == "auto", found

    # One at a time, and the application's name stands for its address and its data.
    code, _, err = tools.run("up", "hdsearch", *SMALL)
    assert code == 1 and "is up already" in err and "curtail down hdsearch" in err, (code, err)
    code, out, _ = tools.run("load", "hdsearch", "--rps", "50", "--duration", "1s", "--warmup", "0s", "--timeout", "30s")
    assert code in (0, 98) and re.search(r"^recall@10 +mean (1\.0|0\.99)", out, re.M), (code, out)
    assert re.search(r"\b0 failed", out), out
    assert "curtail switch hdsearch" in out_up and found["mid-tier"]["admin"] in out_up, out_up
    code, _, _ = tools.run("switch", found["mid-tier"]["admin"], "SDB1-4")
    assert code == 0
    check_names(tools, found)
    code, _, _ = tools.run("switch", "hdsearch", "FIB1")
    assert code == 0, code
    await_ps(tools, lambda found: found["mid-tier"]["config"] == "SDB1-4 FIB1")  # both what it began with and what it has

    code, out, _ = tools.run("logs", "hdsearch", "leaf")
    assert code == 0 and "leaf-0 | --- " in out and "leaf-1 | " in out and "mid-tier" not in out, out
    code, out, _ = tools.run("down", "hdsearch")
    assert code == 0 and out == "hdsearch is down\n", (code, out)
    expect_nothing_left()
    assert ps(tools) == {}
    for args, wanted in ((("down", "hdsearch"), 0), (("ps", "hdsearch"), 1), (("down", "setalgebra"), 0),
                         (("down", "hdserch"), 104), (("ps", "hdserch"), 104), (("down", "../x"), 104)):
        code, _, err = tools.run(*args)
        text = f"unknown application \"{args[1]}\"" if wanted == 104 else f"{args[1]} is not up"
        assert code == wanted and text in err, (args, code, err)
    code, out, _ = tools.run("logs", "hdsearch", "mid-tier")
    assert code == 0 and "mid-tier | --- " in out, "the logs outlive it"
    with open(glob.glob(tools.scratch + "/**/mid-tier.log", recursive=True)[0], "a") as log:
        log.write("cut off")
    code, out, _ = tools.run("logs", "hdsearch", "mid-tier")
    assert code == 0 and out.endswith("mid-tier | cut off\n"), out


def check_names(tools, found):
    """What is up is called by its names."""
    code, out, _ = tools.run("switch", "hdsearch/leaf", "FIB1")
    assert code == 0 and out == "leaf-0: auto -> FIB1\nleaf-1: auto -> FIB1\n", out
    code, out, _ = tools.run("switch", "hdsearch/leaf.1")
    assert code == 0 and out == "FIB1\n", out
    code, out, _ = tools.run("loglevel", "hdsearch/leaf", "DEBUG")
    assert code == 0 and out == "leaf-0: info -> debug\nleaf-1: info -> debug\n", out
    code, out, _ = tools.run("loglevel", "hdsearch/leaf.1")
    assert code == 0 and out == "debug\n", out
    code, out, _ = tools.run("status", "hdsearch", "--json")
    assert code == 0 and json.loads(out)["config"] == "SDB1-4", out
    code, out, _ = tools.run("status", "hdsearch/leaf", "--json")
    assert code == 0 and [status["config"] for status in json.loads(out)] == ["FIB1", "FIB1"], out
    code, out, _ = tools.run("load", "hdsearch/leaf-0", "--method", "grpc.health.v1.Health/Check", "--timeout", "30s",
                            "--debug")
    assert code == 0 and "SERVING" in out, out
    code, out, _ = tools.run("logs", "hdsearch/leaf.0")
    assert code == 0 and "leaf-0 | --- " in out and "leaf-1" not in out, out
    code, out, _ = tools.run("ps")
    assert code == 0 and all(p["admin"] in out and p["http_admin"] in out for p in found.values()), out
    lines = shown(tools, 80, tools.curtail, "ps").splitlines()
    assert lines and all(len(line) <= 80 for line in lines) and any("leaf-0" in line and "serving" in line for line in lines), lines
    for p in found.values():
        assert "rpc_server_duration_seconds_count" in metrics(p), p
    for args, texts in ((("switch", "hdserch", "FIB1"), ["unknown application \"hdserch\"; hdsearch is up; did you mean \"hdsearch\"?"]),
                        (("status", "hdsearch/leav"), ["there are leaf (2), mid-tier; did you mean \"leaf\"?"]),
                        (("load", "hdsearch/x", "--rps", "5", "--method", "a.B/C"), ["no service or process x"]),
                        (("logs", "hdsearch", "leave-0"), ["no log of leave-0; there are curtail-up, leaf-0", "did you mean \"leaf-0\"?"]),
                        (("scale", "hdsearch/leaf", "3"), ["leaf does not scale, as each of its 2 shards has its own data; "
                                                           "start the application with more: --set leaf.shards=N; these scale: mid-tier\n"]),
                        (("loglevel", "hdsearch", "loud"), ["is not a log level", "debug, info, warning or error"]),
                        (("logs", "kiosk"), ["unknown application \"kiosk\"; hdsearch is up"])):
        code, _, err = tools.run(*args)
        assert code == 104 and all(text in err for text in texts), (code, err)


def metrics(process):
    """The text that Prometheus would scrape of a process."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(MAX_WAIT_S)
        client.connect(process["http_admin"].removeprefix("unix:"))
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        text = b""
        while block := client.recv(65536):
            text += block
    assert text.startswith(b"HTTP/1.1 200 "), text[:200]
    return text.decode()


def test_observed(tools):
    """The counts move with the requests; a count that the machine denies is named, and is not zero."""
    code, _, err = tools.run("observe", "hdsearch")
    assert code == 104 and "hdsearch is not up" in err, (code, err)
    process = up(tools)
    load = tools.start("load", "hdsearch", "--rps", "100", "--duration", "20s", "--warmup", "0s", "--judged", "0")
    code, out, err = tools.run("observe", "hdsearch", "--seconds", "2", "--json", "-")
    assert code == 0 and re.search(r"^mid-tier: 1 process", err, re.M), (code, err)
    services = {s["service"]: s for s in json.loads(out)["services"]}
    assert sorted(services) == ["leaf", "mid-tier"] and services["leaf"]["processes"] == 2, out
    for service in services.values():
        counts, absent = service["counts"], service["absent"]
        assert service["requests"] > 0 and counts["cpu_us"]["count"] > 0, service
        assert counts["switches_voluntary"]["per_request"] > 0, service
        for name in ("wakeups", "syscalls", "futex_waits", "instructions", "cache_misses", "hitm"):
            assert (name in counts) != (name in absent), (name, service)
        assert all(reason for reason in absent.values()), absent
        latency = service["wakeup_latency"]
        assert (latency is None) == ("wakeup_latency" in absent), service
        if latency:  # no more wake-ups than threads that ran afterwards
            assert 0 < latency["p50_us"] <= latency["p99_us"] <= latency["max_us"], latency
            assert sum(band["count"] for band in latency["bands"]) == latency["count"] > service["requests"] / 2, service
        if "wakeups" in counts:  # a thread that went to sleep was woken
            assert counts["wakeups"]["per_request"] > 0, service
        if "syscalls" in counts:  # each request is read and answered
            assert counts["syscalls"]["per_request"] >= 2, service
    code, out, _ = tools.run("observe", "hdsearch/leaf.1", "--seconds", "0.2")
    assert code == 0 and out.startswith("leaf: 1 process, ") and "mid-tier" not in out, out
    load.send_signal(signal.SIGINT)
    load.communicate(timeout=MAX_WAIT_S)
    running = tools.start("observe", "hdsearch", "--seconds", "600")
    await_signal_handler(running)
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate(timeout=MAX_WAIT_S)
    assert running.returncode == 105 and "switches_voluntary" in out, (running.returncode, out)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=MAX_WAIT_S)
    expect_nothing_left()


def await_signal_handler(process):
    """Until the process catches SIGINT."""
    limit = time.monotonic() + MAX_WAIT_S
    while time.monotonic() < limit:
        with open(f"/proc/{process.pid}/status") as status:
            caught = int(re.search(r"^SigCgt:\s*(\w+)", status.read(), re.M)[1], 16)
        if caught & (1 << (signal.SIGINT - 1)):
            return
        time.sleep(0.01)
    raise AssertionError("it catches no SIGINT")


def test_foreground(tools):
    for ender in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        process = up(tools, "--exec", "leaf=env WRAPPED=leaf${instance}")
        found = expect_serving(tools)
        for name, p in found.items():
            environment = pathlib.Path(f"/proc/{p['pid']}/environ").read_text()
            number = name.removeprefix("leaf-")
            assert ("WRAPPED" in environment) == number.isdigit(), name
            assert not number.isdigit() or f"WRAPPED=leaf{number}\0" in environment, environment
        process.send_signal(ender)
        out, err = process.communicate(timeout=MAX_WAIT_S)
        assert process.returncode == 0, (process.returncode, err)
        assert "ending hdsearch" in err, err
        expect_nothing_left()


def test_terminal_closed(tools):
    """Closing the terminal hangs up its foreground process; nothing else does."""
    leader, follower = pty.openpty()

    def own_terminal():
        os.setsid()
        fcntl.ioctl(0, 0x540E, 0)  # TIOCSCTTY

    process = subprocess.Popen([tools.curtail, "up", "hdsearch", *SMALL], env=tools.env, stdin=follower,
                               stdout=follower, stderr=follower, preexec_fn=own_terminal)
    os.close(follower)
    text = b""
    limit = time.monotonic() + MAX_WAIT_S
    while b"Ctrl-C" not in text:
        assert time.monotonic() < limit, text
        if select.select([leader], [], [], 1)[0]:
            text += os.read(leader, 4096)
    expect_serving(tools)
    os.close(leader)
    process.wait(timeout=MAX_WAIT_S)
    expect_nothing_left()


def test_killed(tools):
    """Nothing can be done about SIGKILL, but the kernel ends the processes, and the next start is not in the way."""
    process = up(tools)
    process.kill()
    process.communicate()
    expect_nothing_left(grace_s=10)
    assert ps(tools) == {}, "a state without its keeper is a thing of the past"
    code, _, err = tools.run("up", "hdsearch", *SMALL, "--detach")
    assert code == 0, err
    os.kill(json.loads(tools.run("ps", "--json")[1])[0]["pid"], signal.SIGKILL)
    expect_nothing_left(grace_s=10)


def test_stopped(tools):
    """`curtail down` also ends what Ctrl-Z has stopped."""
    process = up(tools)
    process.send_signal(signal.SIGSTOP)
    code, out, err = tools.run("down", "hdsearch", "--timeout", "20s")
    assert code == 0 and out == "hdsearch is down\n", (code, out, err)
    process.communicate(timeout=MAX_WAIT_S)
    expect_nothing_left()


def test_overdue(tools):
    """A process that does not end in time is killed, and the processes that it has started are."""
    shell = pathlib.Path(tools.path("shell"))
    shell.write_text("#!/bin/sh\ntrap '' TERM\n\"$@\"\n")
    shell.chmod(0o755)
    process = up(tools, "--exec", f"leaf={shell}")
    code, out, err = tools.run("down", "hdsearch", "--timeout", "1s")
    assert code == 1 and "hdsearch did not end in 1s and was killed" in err, (code, out, err)
    process.communicate(timeout=MAX_WAIT_S)
    expect_nothing_left(grace_s=10)


def test_restarts(tools):
    process = up(tools)
    before = expect_serving(tools)
    os.kill(before["leaf-1"]["pid"], signal.SIGKILL)
    after = await_ps(tools, lambda p: p["leaf-1"]["state"] == "ready" and p["leaf-1"]["restarts"] >= 1)
    assert after["leaf-1"]["pid"] != before["leaf-1"]["pid"]
    assert after["leaf-1"]["address"] == before["leaf-1"]["address"], "where its callers look for it"
    assert "killed by signal 9" in after["leaf-1"]["problem"], after["leaf-1"]
    assert after["mid-tier"]["pid"] == before["mid-tier"]["pid"], "the others are left alone"
    assert re.search(r"^leaf-1 was killed by signal 9 \(Killed\), \d+ s ago$", tools.run("ps")[1], re.M), "why, and when"
    os.kill(after["leaf-0"]["pid"], signal.SIGSTOP)
    code, out, err = tools.run("restart", "hdsearch/leaf.0", "--timeout", "20s")
    assert code == 0 and out == "hdsearch/leaf.0: 1 process restarted\n", (code, out, err)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=MAX_WAIT_S)
    assert "leaf-1 was killed by signal 9" in err and "leaf-1 is back at" in err, err
    expect_nothing_left()


def test_links(tools):
    """A network between two services shows in what clients see, and its relays in the list of processes."""
    process = up(tools, "--link", "mid-tier>leaf=delay=30ms")
    found = ps(tools)
    assert sorted(found) == sorted([*NAMES, "mid-tier-to-leaf-0", "mid-tier-to-leaf-1"]), found
    assert all(p["state"] == "ready" for p in found.values()), found
    path = tools.path("linked.json")
    code, out, err = tools.run("load", "hdsearch", "--rps", "20", "--duration", "2s", "--warmup", "0s", "--timeout", "30s",
                              "--json", path)
    assert code in (0, 98), (out, err)
    with open(path) as file:
        run = json.load(file)["runs"][0]
    assert list(run["codes"]) == ["OK"] and run["latency_us"]["all"]["min"] >= 60_000, run["latency_us"]
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=MAX_WAIT_S)
    expect_nothing_left()


def test_refuses(tools):
    def refused(code, *texts_and_args):
        texts, args = texts_and_args[0], texts_and_args[1:]
        got, out, err = tools.run("up", *args)
        assert got == code, (got, out, err)
        for text in texts:
            assert text in err, (text, err)
        expect_nothing_left()

    refused(104, ["unknown application \"kiosk\"", "hdsearch"], "kiosk")
    refused(104, ["no variable 'colour'", "leaf.KEY"], "hdsearch", "--set", "colour=red")
    refused(104, ["SERVICE=ADDRESS"], "hdsearch", "--use", "x")
    for link in ("mid-tier", "mid-tier>leaf"):
        refused(104, ["CALLER>SERVICE=delay=20ms"], "hdsearch", "--link", link, "--dry-run")
    refused(104, ["hdsearch has no service front"], "hdsearch", "--link", "front>leaf=delay=1ms", "--dry-run")
    refused(104, ["--link: there is no 'fast'"], "hdsearch", "--link", "mid-tier>leaf=fast=1", "--dry-run")
    refused(104, ["leaf has a link to mid-tier, which it does not call"], "hdsearch", "--link", "leaf>mid-tier=delay=1ms", "--dry-run")
    refused(104, ["config"], "hdsearch", "--config", "XYZ")
    refused(104, ["--fence yes", "on, dry-run or strict"], "hdsearch", "--fence", "yes")
    refused(104, ["/nowhere.json", "No such file"], "hdsearch", *SMALL, "--policy", "mutune", "--profile", "/nowhere.json")
    refused(104, ["policy \"mutun\""], "hdsearch", "--policy", "mutun", "--dry-run")
    refused(104, ["--dashboard: "], "hdsearch", "--dashboard", "99999", "--dry-run")
    refused(104, ["leaf: cpus '1023': this machine has CPUs "], "hdsearch", "--set", "leaf.cpus=1023", "--dry-run")
    refused(104, ["--exec: the program prf is missing"], "hdsearch", "--exec", "leaf=prf record")
    refused(1, ["does not fit", "--force"], "hdsearch", "--set", "data=synthetic:N=900000000,D=2048")
    refused(1, ["does not fit", "mid-tier 953.7 GiB", "--force"], "hdsearch", *SMALL, "--set", "mid-tier.memory_mib=976562")
    own = tools.path("own.yaml")
    with open(own, "w") as file:
        file.write("application: own\nservices:\n  a:\n    run: no-such-program\n    entry: true\n")
    refused(104, ["no-such-program is missing"], own)
    with open(own, "w") as file:
        file.write("application: own\nservices:\n  a:\n    ruin: x\n")
    refused(104, ["own.yaml:4", "'ruin' is not a key"], own)

    # A port that is taken is reported as such.
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = "127.0.0.1:%d" % taken.getsockname()[1]
        refused(104, [address, "in use"], "hdsearch", *SMALL, "--set", "mid-tier.listen=" + address)

    code, out, _ = tools.run("up", "hdsearch", "--scale", "--fence", "strict", "--dry-run")
    assert code == 0 and out.count("N=500000,D=2048") == 5 and "--shard 3/4" in out, out
    assert out.count("--fence strict") == 5, out
    code, out, _ = tools.run("up", "social", "--scale", "2", "--stores", "redis,postgresql", "--dry-run")
    assert code == 0 and all(out.count(f"--service {name} ") == 2 for name in ("read-post", "front-end")), out
    assert out.count("--service post-storage ") == 1 and "social postgresql" in out and "social redis" in out, out
    code, out, _ = tools.run("up", "social", "--stores", "servers", "--dry-run")
    assert code == 0 and out.count("social postgresql ") == 6 and out.count("social redis ") == 4, out
    assert "--of user " in out and "--store user-postgresql=" in out, out
    code, out, _ = tools.run("up", "hdsearch", "--exec", "mid-tier=perf record -o x", "--dry-run")
    assert code == 0 and "mid-tier: perf record -o x hdsearch --service mid-tier" in out, out
    for words, text in (("middle=perf", "hdsearch has no service middle"), ("leaf=", "SERVICE=PROGRAM FLAGS"),
                        ("leaf", "SERVICE=PROGRAM FLAGS"), ("leaf=env ${nowhere}", "nowhere")):
        refused(104, [text], "hdsearch", "--exec", words, "--dry-run")
    refused(104, ["--scale 0", "1 to 64"], "social", "--scale", "0")
    refused(104, ["--scale many", "1 to 64"], "social", "--scale", "many")
    for flag in ("--scale", "--dashboard"):
        code, out, err = tools.run("up", flag, "hdsearch", "--dry-run")
        assert code == 0 and "--service mid-tier" in out, (flag, code, err)
        refused(104, ['did you mean "hdsearch"'], flag, "hdsearc", "--dry-run")
    refused(104, ["APP is missing"], "--scale", "2", "--dry-run")
    refused(104, ["APP is missing"], "--scale", "--dry-run")
    code, out, err = tools.run("render", "--scale", "hdsearch", "--to", "kubernetes")
    assert code == 0 and "N=500000,D=2048" in out, (code, err)
    refused(104, ["--monolith"], "social", "--scale", "2", "--monolith")
    refused(104, ["no service that scales"], "router", "--scale", "2")
    refused(104, ["mysql", "post-cache, redis, postgresql, social-graph-redis"], "social", "--stores", "mysql")


FOREIGN = [sys.executable, "-B", os.path.join(os.path.dirname(os.path.abspath(__file__)), "foreign_server.py")]


def foreign_topology(tools, *services):
    """The path of a topology whose services are NAME: MODE and further keys; the first one is what clients call."""
    path = tools.path("foreign.yaml")
    with open(path, "w") as file:
        file.write("application: foreign\nservices:\n")
        for name, run, keys in services:
            entry = ", entry: true" if name == services[0][0] else ""
            file.write(f"  {name}: {{run: \"{' '.join(FOREIGN)} {run}\", {keys}{entry}}}\n")
    return path


def test_foreign(tools):
    """Programs that know nothing of curtail: gRPC servers with and without health checks, and any program with a port."""
    fixed = free_address()
    path = foreign_topology(
        tools, ("web", "${address} serving to ${cart.address} ${stock.address} ${host} ${port}", "calls: [cart, stock]"),
        ("cart", fixed + " no-health", f"hosted: false, listen: \"{fixed}\""),
        ("stock", "${address} port", "protocol: tcp, shards: 2, listen: [\"127.0.0.1:0\", \"127.0.0.1:0\"], memory_mib: 12"))
    code, out, _ = tools.run("up", path, "--dry-run")
    assert code == 0 and f"{fixed} no-health\n" in out, out
    assert "<web> serving to <cart> <stock-0>,<stock-1> <web> <web>\n" in out, out
    code, out, err = tools.run("up", path, "--detach")
    assert code == 0 and "foreign is up: web at 127.0.0.1:" in out, (out, err)
    assert "memory: about 24 MiB; " in err, err  # two of stock; of web nothing is known
    found = ps_answered(tools)
    health = {name: p["health"] for name, p in found.items()}
    assert health == {"web": "serving", "cart": "-", "stock-0": "-", "stock-1": "-"}, health
    assert found["cart"]["address"] == fixed and not any(p["admin"] for p in found.values()), found
    web = found["web"]["address"]
    told = f"words: to {fixed} {found['stock-0']['address']},{found['stock-1']['address']} 127.0.0.1 {web[10:]}"
    code, out, _ = tools.run("logs", "foreign", "web")
    assert code == 0 and told in out, (told, out)

    os.kill(found["web"]["pid"], signal.SIGTERM)
    again = await_ps(tools, lambda p: p["web"]["state"] == "ready" and p["web"]["restarts"] == 1)
    assert again["web"]["address"] == web
    code, _, _ = tools.run("down", "foreign")
    assert code == 0
    expect_nothing_left()


def test_elsewhere(tools):
    """Relative paths of a topology begin at its folder, those of the command line where the caller is."""
    folder = tools.path("sub")
    os.mkdir(folder)
    with open(os.path.join(folder, "elsewhere.yaml"), "w") as file:
        file.write("application: elsewhere\nservices:\n  web: {run: \"./serve ${address} serving\", "
                   "protocol: grpc, entry: true}\n")
    with open(os.path.join(folder, "serve"), "w") as file:
        file.write(f"#!/bin/sh\nexec {' '.join(FOREIGN)} \"$@\"\n")
    os.chmod(file.name, 0o755)
    path = os.path.relpath(file.name.replace("serve", "elsewhere.yaml"))
    code, out, err = tools.run("up", path, "--detach")
    assert code == 0 and "elsewhere is up: web at 127.0.0.1:" in out, (out, err)
    assert tools.run("down", "elsewhere")[0] == 0
    expect_nothing_left()

    os.mkdir(tools.path("home"))
    with open(tools.path("home/none.json"), "w") as file:
        file.write("no profile")
    with open(os.path.join(folder, "own.yaml"), "w") as file:
        file.write(f"application: own\nservices:\n  web:\n    run: {tools.hdsearch} --service leaf --shard 0/1 "
                   "--data synthetic:N=2000,D=16\n    entry: true\n")
    profile = os.path.relpath(tools.path("home/none.json"))
    code, out, err = tools.run("up", os.path.join(folder, "own.yaml"), "--policy", "mutune", "--profile", profile)
    assert code == 104 and "No such file" not in err and "none.json" in err, (code, err)
    expect_nothing_left()


def test_not_ready(tools):
    """One that ends, and ones that never become ready: what is said of them."""
    def refused(code, texts, name, run, keys, *args):
        got, out, err = tools.run("up", foreign_topology(tools, (name, run, keys)), *args)
        assert got == code, (got, out, err)
        for text in texts:
            assert text in err, (text, err)
        expect_nothing_left()

    brief = ("--start-timeout", "3s")
    refused(1, ["web ended with code 3", "the disk is on fire", "hosted: false"], "web", "${address} fails", "shards: 1")
    refused(1, ["web ended with code 3", "the disk is on fire"], "web", "127.0.0.1:1 fails", "hosted: true")
    path = tools.path("hosted.yaml")
    with open(path, "w") as file:
        file.write('application: hosted\nservices:\n  leaf: {run: "hdsearch --service leaf --data /nowhere", entry: true}\n')
    code, out, err = tools.run("up", path)
    assert code == 104 and "/nowhere" in err and "hosted: false" not in err and "memory:" not in err, (code, out, err)
    refused(1, ["web was not ready within 3s", "NOT_SERVING", "protocol: tcp"], "web", "${address} not-serving",
            "protocol: grpc", *brief)
    refused(1, ["was not ready within 3s", "protocol: tcp"], "web", "${address} port", "protocol: grpc", *brief)
    refused(1, ["was not ready within 3s: at 127.0.0.1:", "nothing accepts connections"], "web", "${address} silent",
            "protocol: tcp", *brief)
    refused(1, ["was not ready within 3s: it did not say where it listens", "hosted: false"], "web",
            "127.0.0.1:1 silent", "protocol: grpc", *brief)
    refused(104, ["web has no address; give the key listen"], "web", "127.0.0.1:1 serving", "hosted: false")
    refused(104, ["config is for curtail services"], "web", "${address} serving", "shards: 1", "--config", "SIB1")

    # A topology is a file: what would block its reader, or is none, is refused at once.
    fifo = tools.path("fifo.yaml")
    os.mkfifo(fifo)
    for path in (fifo, tools.scratch + "/", "/dev/null"):
        got, _, err = tools.run("up", path)
        assert got == 104 and "is not a regular file" in err, (got, err)


def test_interrupted(tools):
    """A start that is broken off leaves nothing, also one in the background."""
    for detach in ([], ["--detach"]):
        process = tools.start("up", "hdsearch", "--set", "data=synthetic:N=300000,D=256", *detach)
        await_line(process.stderr, r"^memory: ")
        limit = time.monotonic() + 30
        while len(marked_processes()) < (3 if detach else 2):  # some leaf is loading
            assert time.monotonic() < limit
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=MAX_WAIT_S)
        assert process.returncode == 105, process.returncode
        expect_nothing_left()


if __name__ == "__main__":
    from tooling import run_case
    run_case(globals())
