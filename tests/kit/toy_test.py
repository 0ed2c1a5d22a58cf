#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Starts the toy application, composes posts and reads them back. Usage: toy_test.py CURTAIL TOY FORM CONFIG"""
import json
import os
import stat
import subprocess
import sys
import tempfile

MAX_WAIT_S = 60
SERVICES = ["count", "text", "user", "post", "timeline", "front"]


def main(curtail, toy, form, config):
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory() as scratch:
        env = {**os.environ, "XDG_RUNTIME_DIR": scratch, "NO_COLOR": "1",
               "PATH": os.path.dirname(toy) + ":" + os.environ["PATH"]}

        def run(*args):
            done = subprocess.run([curtail, *args], env=env, text=True, capture_output=True, timeout=MAX_WAIT_S)
            print("$ curtail", *args, f"-> {done.returncode}\n{done.stdout}{done.stderr}")
            return done

        def call(method, **fields):
            return run("load", entry, "--method", f"curtail.toy.Front/{method}", "--data", json.dumps(fields), "--timeout", "30s",
                       "--debug")

        settings = ["--config", config]
        if form == "monolith":
            settings += ["--monolith"]
        else:
            settings += [word for name in SERVICES for word in ("--set", f"{name}.config={config}")]
        up = run("up", os.path.join(here, "topology.yaml"), "--detach", *settings)
        try:
            assert up.returncode == 0
            processes = json.loads(run("ps", "--json").stdout)[0]["processes"]
            assert len(processes) == (3 if form == "monolith" else 8), processes
            entry = next(p["address"] for p in processes if p["name"] == "front")

            assert '"number": 2' in call("Compose", user="ann", words={"text": "hello world"}).stdout
            assert call("Compose", user="ann", words={"text": "once more and again"}).returncode == 0
            read = call("Read", user="ann")
            assert read.stdout.count("User ann") == 2 and "hello world" in read.stdout, read.stdout
            for fields, error in (({"user": "ann"}, "text is empty"), ({"user": "nobody", "words": {"text": "x"}}, "no user")):
                failed = call("Compose", **fields)
                assert failed.returncode != 0 and error in failed.stdout + failed.stderr

            loaded = run("load", entry, "--method", "curtail.toy.Front/Read", "--data", '{"user": "ann"}', "--closed",
                         "16", "--duration", "1s", "--warmup", "100ms", "--timeout", "10s", "--json", scratch + "/run.json")
            assert loaded.returncode in (0, 98), loaded.returncode
            result = json.load(open(scratch + "/run.json"))
            requests = result["runs"][0]["requests"]
            assert requests["ok"] > 0 and requests["ok"] == requests["sent"], requests
        finally:
            assert run("down", "toy").returncode == 0
            left = [entry.path for entry in os.scandir(os.path.join(scratch, "curtail", "toy"))
                    if stat.S_ISSOCK(entry.stat().st_mode)]
            assert not left, f"sockets left behind: {left}"


if __name__ == "__main__":
    main(*sys.argv[1:])
