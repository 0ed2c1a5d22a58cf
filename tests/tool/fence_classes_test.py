#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The path class that a server learns of each method is the one that the method declares, for every application.

Usage: fence_classes_test.py APP PROGRAM APPS_FOLDER CURTAIL SCRATCH_FOLDER

Each application runs twice: once its fences go by what methods declare, once they learn. 200 requests go to each method.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

MAX_WAIT_S = 100
REQUESTS = 200

# Small data, and where requests that the application's workload lacks go: service of the topology, method, message.
APPS = {
    "fanout": ([], [("leaf", "Leaf/Echo", {})]),
    "hdsearch": (["data=synthetic:N=500,D=16"], [("leaf", "Leaf/Get", {})]),
    "recommend": (["data=synthetic:users=50,items=40,ratings=900,rank=2,noise=0.5,seed=1"], []),
    "router": (["records=200"], [("mid-tier", "Router/Delete", {"key": "none"}), ("mid-tier", "Router/Replicas", {}),
                                 ("leaf", "Store/Get", {"key": "none"}), ("leaf", "Store/Set", {}), ("leaf", "Store/Delete", {}),
                                 ("leaf", "Store/Flush", {}), ("leaf", "Store/Recall", {})]),
    "setalgebra": (["data=synthetic:N=500,words=200,seed=7"], []),
    "bank": (["customers=6"], []),
    "media": (["users=6", "movies=50", "reviews=50"], []),
    "shop": (["users=6", "products=50", "orders=20", "pictures=none"], []),
    "social": (["users=12", "follows=30", "posts=30"], []),
}
# Applications of which the load reaches a part of the methods, and of these the calls of requests that go well. All that
# it reaches is declared.
PARTLY = {"bank", "media", "shop", "social"}
# They call others once a model has been trained.
UNTRAINED = {"/curtail.shop.Recommender/Similar"}


class App:
    def __init__(self, name, program, apps, curtail, scratch):
        self.name, self.curtail = name, curtail
        self.topology = os.path.join(apps, name, "topology.yaml")
        self.scratch = scratch
        self.env = {**os.environ, "XDG_RUNTIME_DIR": scratch, "TMPDIR": scratch, "XDG_STATE_HOME": scratch, "NO_COLOR": "1",
                    "PATH": os.path.dirname(program) + ":" + os.environ["PATH"],
                    "XDG_CACHE_HOME": os.path.join(os.path.dirname(scratch), "cache")}

    def run(self, *args, codes=(0,)):
        done = subprocess.run([self.curtail, *args], env=self.env, text=True, capture_output=True, timeout=MAX_WAIT_S)
        print("$ curtail", *args, "->", done.returncode)
        assert done.returncode in codes, f"{done.stdout}{done.stderr}"
        return done.stdout

    def classes(self, fence):
        """{method: set of services} of every process, after 200 requests to each method."""
        file = os.path.join(self.scratch, "topology.yaml")
        with open(self.topology) as original, open(file, "w") as copy:
            copy.write(re.sub(rf"(run: {self.name} .*)", rf"\1 {fence}", original.read()))
        sets, more = APPS[self.name]
        set_flags = [word for text in sets for word in ("--set", text)]
        self.run("up", file, "--detach", *set_flags)
        try:
            processes = json.loads(self.run("ps", "--json"))[0]["processes"]
            ours = [p for p in processes if p.get("admin")]
            self.send(ours, more)
            return self.read(ours)
        finally:
            self.run("down", self.name)

    def send(self, processes, more):
        flags = ("--closed", "1", "--requests", str(REQUESTS), "--duration", "60s", "--warmup", "0s", "--timeout", "10s")
        self.run("load", self.name, *flags, codes=(0, 98))
        for service, method, message in more:
            for process in processes:
                if process["name"] == service or re.match(rf"{service}-\d", process["name"]):
                    self.run("load", process["address"], "--method", f"curtail.{self.name}.{method}", "--data",
                             json.dumps(message), *flags, codes=(0, 98, 99, 1))

    def read(self, processes):
        found = {}
        for process in processes:
            fences = json.loads(self.run("status", process["admin"], "--json"))["fences"]
            assert not fences["undeclared"], fences["undeclared"]
            for of in fences["classes"]:
                for method in of["methods"]:
                    if not method.startswith(f"/curtail.{self.name}."):
                        continue
                    services = frozenset(of["services"].split("+"))
                    if services == {"unknown"} and method in found:
                        continue  # this instance had too few requests
                    if found.get(method) == {"unknown"}:
                        del found[method]
                    assert found.setdefault(method, services) == services, f"{method} differs between instances"
        return found


def main(name, program, apps, curtail, scratch):
    assert name in APPS, f"say in this test how the methods of {name} are called"
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        app = App(name, program, apps, curtail, folder)
        declared = app.classes("--fence dry-run")
        learned = app.classes("--fence dry-run --fence-learn")
    if name in PARTLY:
        learned = {method: services for method, services in learned.items() if "unknown" not in services and method not in UNTRAINED}
        declared = {method: declared[method] for method in learned}
        learned = {method: declared[method] if services < declared[method] else services
                   for method, services in learned.items()}
    print(declared)
    assert declared and not any("unknown" in services for services in declared.values()), f"not declared: {declared}"
    assert learned == declared, f"learned {learned}\ndeclared {declared}"
    assert len(declared) >= 2 and len(set(declared.values())) >= 2, declared


if __name__ == "__main__":
    main(*sys.argv[1:])
