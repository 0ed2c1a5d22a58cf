#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds the limits of the toy's two path classes, and has its front begin with them. Usage: fence_test.py CURTAIL TOY"""
import json
import os
import subprocess
import sys
import tempfile

MAX_WAIT_S = 60
FRONT = "curtail.toy.Front"
COMPOSE = {"curtail.toy.Text", "curtail.toy.User", "curtail.toy.PostStorage", "curtail.toy.Timeline"}
READ = {"curtail.toy.User", "curtail.toy.PostStorage", "curtail.toy.Timeline"}
METHODS = ("Compose", "Read")
USERS = 500  # so that no timeline gets long


def main(curtail, toy):
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory() as scratch:
        env = {**os.environ, "XDG_RUNTIME_DIR": scratch, "NO_COLOR": "1",
               "PATH": os.path.dirname(toy) + ":" + os.environ["PATH"]}
        profile = os.path.join(scratch, "profile.json")
        requests = {method: os.path.join(scratch, method + ".jsonl") for method in METHODS}
        for method, path in requests.items():
            words = {"words": {"text": "hello world"}} if method == "Compose" else {}
            with open(path, "w") as file:
                file.writelines(json.dumps({"user": f"u{i}", **words}) + "\n" for i in range(USERS))

        def run(*args):
            done = subprocess.run([curtail, *args], env=env, text=True, capture_output=True, timeout=MAX_WAIT_S)
            shown = f"({len(done.stdout)} bytes)\n" if "--json" in args else done.stdout
            print("$ curtail", *args, f"-> {done.returncode}\n{shown}{done.stderr}")
            return done

        def up(*args):
            assert run("up", os.path.join(here, "topology.yaml"), "--detach", *args).returncode == 0
            processes = json.loads(run("ps", "--json").stdout)[0]["processes"]
            return next(p for p in processes if p["name"] == "front")

        def down():
            assert run("down", "toy").returncode == 0

        def train(front, method, *more):
            return run("train", front["address"], "--admin", front["admin"], "--method", f"{FRONT}/{method}", "--data",
                       "@" + requests[method], "--timeout", "10s", "--fences", "--out", profile, *more)

        def refuse(done, code, *words):
            assert done.returncode == code, done.returncode
            assert all(word in done.stderr for word in words), done.stderr

        front = up("--fence", "strict")
        try:
            refuse(train(front, "Read"), 1, "--fence strict", "--fence dry-run")
        finally:
            down()
        assert not os.path.exists(profile)
        front = up("--fence", "dry-run")
        try:
            for method in METHODS:
                for seconds in ("0.5", "2", "8"):  # a busy machine has too few answers in a short time, and is told so
                    done = train(front, method, "--quick", "--seconds", seconds)
                    if "more --seconds" not in done.stderr:
                        break
                assert done.returncode == 0 and f": {method}" in done.stdout and "permits" in done.stdout
            refuse(train(front, "Read", "--loads", "10"), 104, "--loads")
            refuse(run("train", front["address"], "--admin", front["admin"], "--method", "grpc.health.v1.Health/Check",
                       "--data", "{}", "--fences", "--out", profile), 104, profile, f'of the service "{FRONT}"')
        finally:
            down()
        trained = {frozenset(of["services"]): of["limit"] for of in json.load(open(profile))["fences"]}
        assert set(trained) == {frozenset(COMPOSE), frozenset(READ)}, trained
        assert all(1 <= limit <= 256 for limit in trained.values()), trained

        # Where the permits suffice, the classes have just these.
        front = up("--fence", "on", "--profile", profile)
        try:
            for method in METHODS:
                sent = run("load", front["address"], "--method", f"{FRONT}/{method}", "--data", "@" + requests[method],
                           "--closed", "1", "--requests", "40", "--duration", "20s", "--warmup", "0s", "--timeout", "10s")
                assert sent.returncode in (0, 98), sent.returncode
            classes = json.loads(run("status", front["admin"], "--json").stdout)["fences"]["classes"]
            began = {frozenset(of["services"].split("+")): of["permits"] for of in classes if of["permits"] > 0}
            room = sum(trained.values()) <= 200
            for services in (COMPOSE, READ):
                limit, permits = trained[frozenset(services)], began[frozenset(services)]
                assert permits == limit if room else 1 <= permits <= limit, (services, trained, began)
        finally:
            down()

        with open(profile, "r+") as file:
            file.truncate(os.path.getsize(profile) // 2)
        refuse(run("train", "recommend", "--fences", "--out", profile), 104, profile, "JSON")


if __name__ == "__main__":
    main(*sys.argv[1:])
