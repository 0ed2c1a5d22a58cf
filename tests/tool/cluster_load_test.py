#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `curtail load --kubernetes` says when a cluster fails it, and that no Job is left.

Usage: cluster_load_test.py CASE CURTAIL HDSEARCH SCRATCH_FOLDER

A stand-in for kubectl gives the errors of real clusters. What works is proved on a real one: tests/kubernetes/run.
"""

import json
import os
import signal
import stat
import time

from tooling import MAX_WAIT_S, expect_nothing_left, run_case

JOB = "hdsearch-load-x7k2p"
# Notes each command, and answers as the test has it in a file named by the verb and the thing; without one it fails as kubectl does.
KUBECTL = """#!/usr/bin/env python3
import json, os, sys, time
words = [word for word in sys.argv[1:] if not word.startswith("-")]
folder = os.path.dirname(sys.argv[0])
with open(folder + "/calls", "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
words = words[1:] if sys.argv[1] == "--namespace" else words
name = "-".join(words[:2] if words[0] == "get" else words[:1]).replace("/", "_")
path = folder + "/answer-" + name
if name == "logs" and os.path.exists(folder + "/hangs"):
    while not os.path.exists(folder + "/answer-delete-done"):
        time.sleep(0.01)
if name == "create":
    manifest = sys.argv[sys.argv.index("--filename") + 1]
    with open(folder + "/created", "w") as created:
        created.write(open(manifest).read())
if name == "delete":
    open(folder + "/answer-delete-done", "w").close()
if not os.path.exists(path):
    sys.exit("Error from server (NotFound): " + " ".join(words[1:3]) + " not found")
sys.stdout.write(open(path).read())
"""
POD = {"metadata": {"name": JOB + "-abcde"}, "status": {"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]}}
ANSWERS = {"get-deployment_hdsearch-mid-tier": "registry.example/hdsearch:1", "create": f"job.batch/{JOB}\n", "delete": "",
           "get-pods": json.dumps({"items": [POD]}), "get-events": ""}


class Cluster:
    def __init__(self, tools, **answers):
        self.tools, self.folder = tools, tools.path("bin")
        os.makedirs(self.folder, exist_ok=True)
        program = os.path.join(self.folder, "kubectl")
        self.write("kubectl", KUBECTL)
        os.chmod(program, os.stat(program).st_mode | stat.S_IXUSR)
        tools.env["CURTAIL_PATH"] = self.folder
        for name, text in {**ANSWERS, **answers}.items():
            if text is not None:
                self.write(f"answer-{name}", text)

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def calls(self):
        with open(os.path.join(self.folder, "calls"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def load(self, *words):
        return self.tools.run("load", "hdsearch", "--kubernetes", "--rps", "50", *words)

    def expect_job_removed(self):
        deleted = [call for call in self.calls() if "delete" in call]
        assert len(deleted) == 1 and f"job.batch/{JOB}" in deleted[0], self.calls()
        expect_nothing_left(1)


def test_no_kubectl(tools):
    tools.env["PATH"] = tools.path("empty")
    code, _, err = tools.run("load", "hdsearch", "--kubernetes", "--rps", "50")
    assert code == 1 and "kubectl is not in PATH" in err, (code, err)


def test_not_there(tools):
    cluster = Cluster(tools, **{"get-deployment_hdsearch-mid-tier": None})
    code, _, err = cluster.load("--namespace", "nowhere")
    assert code == 104 and "the cluster has no namespace nowhere" in err, (code, err)
    cluster.write("answer-get-namespace", "namespace/nowhere")
    code, _, err = cluster.load("--namespace", "nowhere")
    assert code == 104 and "hdsearch is not installed there" in err, (code, err)
    assert all("--namespace" in call and "create" not in call for call in cluster.calls())


def test_refused(tools):
    """The cluster takes no Job."""
    cluster = Cluster(tools, create=None)
    code, _, err = cluster.load()
    assert code == 104 and "kubectl: (NotFound)" in err, (code, err)
    assert not [call for call in cluster.calls() if "delete" in call]


def test_no_image(tools):
    waits = {"waiting": {"reason": "InvalidImageName", "message": "couldn't parse image"}}
    pod = {"metadata": {"name": "p"}, "status": {"phase": "Pending", "containerStatuses": [{"state": waits}]}}
    cluster = Cluster(tools, **{"get-pods": json.dumps({"items": [pod]})})
    code, _, err = cluster.load()
    assert code == 1 and "InvalidImageName: couldn't parse image" in err, (code, err)
    cluster.expect_job_removed()


def test_no_result(tools):
    """The load in the pod fails."""
    cluster = Cluster(tools, logs="curtail: cannot resolve hdsearch-mid-tier\n  hint: is the name right?\n")
    code, out, err = cluster.load("--json", tools.path("out.json"))
    assert code == 1 and "cannot resolve hdsearch-mid-tier" in err and not os.path.exists(tools.path("out.json")), (code, out, err)
    cluster.expect_job_removed()
    for broken in ("{\n}", "{\n \"schema_version\": 2}", "\n{ \x01\n}"):
        Cluster(tools, logs=broken)
        code, _, err = cluster.load()
        assert code == 1 and "has no result" in err, (broken, code, err)


def test_as_installed(tools):
    """The pod has the image of the application's pods, the secrets that pull it, and TLS where they have it."""
    for more, expected in (("first second\ncertificate", True), ("\n", False)):
        cluster = Cluster(tools, logs="", **{"get-deployment_hdsearch-mid-tier": "registry.example/hdsearch:1\n" + more})
        cluster.load()
        with open(os.path.join(cluster.folder, "created"), encoding="utf-8") as file:
            created = file.read()
        assert 'image: "registry.example/hdsearch:1"' in created, created
        for word in ('- "--tls"', "--ca=/run/secrets/tls/ca.crt", 'secretName: "certificate"', "- name: second"):
            assert (word in created) == expected, (word, created)


def test_interrupted(tools):
    cluster = Cluster(tools, logs="")
    cluster.write("hangs", "")
    load = tools.start("load", "hdsearch", "--kubernetes", "--rps", "50")
    limit = time.monotonic() + MAX_WAIT_S
    while not any("logs" in call for call in (cluster.calls() if os.path.exists(cluster.folder + "/calls") else [])):
        assert time.monotonic() < limit
        time.sleep(0.01)
    load.send_signal(signal.SIGINT)
    out, err = load.communicate(timeout=MAX_WAIT_S)
    assert load.returncode == 105, (load.returncode, out, err)
    cluster.expect_job_removed()


def test_flags(tools):
    """What a pod cannot have is refused before the cluster is asked; the rest goes along."""
    for words, why in (((), "say how much"), (("--rps", "1", "--data", "@x.json", "--method", "a.B/C"), "--data"),
                       (("--rps", "1", "--raw", "x.csv"), "--raw does not go with"), (("--rps", "1", "--fail-if", "p99<"), "--fail-if")):
        code, _, err = tools.run("load", "hdsearch", "--kubernetes", *words)
        assert code == 104 and why in err, (code, err)
    code, _, err = tools.run("load", "127.0.0.1:1", "--kubernetes", "--rps", "1")
    assert code == 104 and "name the application" in err, (code, err)
    code, out, err = tools.run("load", "hdsearch", "--kubernetes", "--rps", "2.5k", "-z", "3s", "--retries", "2", "--no-realtime",
                               "--json", "x.json", "--fail-if", "p99<1s", "--dry-run")
    assert code == 0, err
    for word in ("--rps=2500", "--duration=3s", "--retries=2", "--realtime=false", "--balancer=round_robin", "--json=-",
                 "dns:///hdsearch-mid-tier:8080", "--corpus=fashion-mnist"):
        assert word in out, (word, out)
    for word in ("x.json", "fail-if", "--kubernetes", "dry-run"):
        assert word not in out, (word, out)
    # A topology of one's own, with requests of one's own.
    own = tools.path("shop.yaml")
    with open(own, "w", encoding="utf-8") as file:
        file.write("application: shop\nservices:\n  front:\n    run: shop --service front\n    entry: true\n")
    code, _, err = tools.run("load", own, "--kubernetes", "--rps", "1")
    assert code == 104 and "--method" in err, (code, err)
    code, out, err = tools.run("load", own, "--kubernetes", "--rps", "1", "--method", "shop.Front/Ask", "--data", "{}", "--dry-run")
    assert code == 0, err
    for word in ("dns:///shop-front:8080", "--method=shop.Front/Ask", "generateName: shop-load-"):
        assert word in out, (word, out)
    assert own not in out, out


if __name__ == "__main__":
    run_case(globals())
