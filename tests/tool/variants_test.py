#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the toy application with its service Count in Python, chosen by name and by the tools that there are.

Usage: variants_test.py CASE CURTAIL TOY SCRATCH_FOLDER
"""

import json
import os
import re
import sys

from tooling import expect_nothing_left, ps, ps_answered, run_case

HERE = os.path.dirname(os.path.abspath(__file__))
TOY = os.path.join(HERE, "..", "kit", "topology.yaml")
# As `python3` of the topology, whose folder is in PATH.
PYTHON = f"{sys.executable} -B {HERE}/foreign_server.py ${{address}} count"
OWN = "  count: {run: toy --service count, scales: true}\n"


def topology(tools):
    """The toy's, in which count has variants: two whose tool is missing or there, and one that is the program itself."""
    with open(TOY) as file:
        text = file.read()
    assert OWN in text
    variants = (f"  count:\n    run: toy --service count\n    scales: true\n    config: SDB1-4\n    variants:\n"
                f"      cobol: {{run: \"count ${{address}}\", needs: [python-here, no-such-cobol]}}\n"
                f"      python: {{run: \"{PYTHON}\", needs: [python-here, {sys.executable}], memory_mib: 17}}\n"
                f"      lanes: {{run: toy --service count --lanes 2}}\n")
    path = tools.path("toy.yaml")
    with open(path, "w") as file:
        file.write(text.replace(OWN, variants))
    bin_folder = tools.path("bin")
    os.makedirs(bin_folder, exist_ok=True)
    if not os.path.exists(bin_folder + "/python-here"):
        os.symlink(sys.executable, bin_folder + "/python-here")
    tools.env["PATH"] = ":".join([bin_folder, os.path.dirname(tools.hdsearch), os.environ["PATH"]])
    return path


def command_of(process):
    with open(f"/proc/{process['pid']}/cmdline") as file:
        return file.read().split("\0")


def expect_counts(tools):
    """Posts have the number of their words, which Count has found."""
    for text, number in (("hello", 1), ("one two three", 3), ("w " * 300, 300)):
        data = json.dumps({"user": "ann", "words": {"text": text}})
        code, out, err = tools.run("load", "toy", "--method", "curtail.toy.Front/Compose", "--data", data, "--timeout", "30s",
                                  "--debug")
        assert code == 0 and f'"number": {number}' in out, (text, out, err)


def test_python(tools):
    """Its callers, its health check, its restart and its place in `ps` are those of the service."""
    code, out, err = tools.run("up", topology(tools), "--variant", "count=python", "--detach")
    assert code == 0 and "variants: count=python\n" in err and "memory: about 117 MiB; " in err, (out, err)
    try:
        found = ps_answered(tools)
        assert len(found) == 8 and found["count"]["health"] == "serving", found
        assert command_of(found["count"])[2].endswith("foreign_server.py"), found["count"]
        assert found["count"]["variant"] == "python" and found["text"]["variant"] == "", found
        code, out, _ = tools.run("ps", "toy")
        assert code == 0 and "VARIANT" in out and re.search(r"^count .*\bpython\b", out, re.M), out
        assert found["count"]["under"] == "" and not found["count"]["scales"], found["count"]
        assert command_of(found["text"])[0].endswith("toy"), found["text"]
        expect_counts(tools)
        code, out, _ = tools.run("logs", "toy", "count")
        assert code == 0 and "foreign_server.py" in out, out
        code, _, err = tools.run("scale", "toy/count", "2")
        assert code == 104 and "count does not scale" in err, err
    finally:
        assert tools.run("down", "toy")[0] == 0
    expect_nothing_left()


def test_polyglot(tools):
    """Takes the first variant whose tools are there, and says which tool another one lacks."""
    path = topology(tools)
    code, out, err = tools.run("up", path, "--polyglot", "--detach")
    assert code == 0 and "variants: count=python\n" in err, (out, err)
    assert "count does not run as cobol: no-such-cobol is missing" in err, err
    try:
        assert command_of(ps(tools)["count"])[2].endswith("foreign_server.py")
        expect_counts(tools)
    finally:
        assert tools.run("down", "toy")[0] == 0
    expect_nothing_left()
    # A choice by name goes first.
    code, out, err = tools.run("up", path, "--polyglot", "--variant", "count=lanes", "--dry-run")
    assert code == 0 and "variants: count=lanes\n" in err and "count: toy --service count --lanes 2 --config SDB1-4" in out, (out, err)
    # Without a choice, and on a cluster, a service is itself.
    code, out, err = tools.run("up", path, "--dry-run")
    assert code == 0 and "count: toy --service count --config SDB1-4" in out and "variants" not in err, (out, err)
    rendered = []
    for variants in ("", ", variants: {python: {run: \"python3 cart.py ${port}\"}}"):
        with open(tools.path("shop.yaml"), "w") as file:
            file.write(f"application: shop\nservices:\n  cart: {{run: shop --service cart, entry: true{variants}}}\n")
        code, out, err = tools.run("render", file.name, "--to", "kubernetes")
        assert code == 0, err
        rendered.append(out)
    assert rendered[0] == rendered[1] and "cart.py" not in rendered[1], rendered


def test_refuses(tools):
    path = topology(tools)

    def refused(texts, *args):
        code, out, err = tools.run("up", *args, "--dry-run")
        assert code == 104 and all(text in err for text in texts), (code, out, err)

    refused(["--variant count=cobol needs no-such-cobol, which is not in PATH; install it"], path, "--variant", "count=cobol")
    all_of = "count=cobol, count=python, count=lanes"
    refused(["write SERVICE=VARIANT", all_of], path, "--variant", "count")
    refused(["toy has no service cart", all_of], path, "--variant", "cart=python")
    refused(["count has no variant java", all_of], path, "--variant", "count=java")
    refused(["text has no variants; leave the flag out"], path, "--variant", "text=python")
    refused(["count runs as python already"], path, "--variant", "count=python", "--variant", "count=lanes")
    refused(["do not go with --monolith"], path, "--polyglot", "--monolith")
    refused(["hdsearch has no service with variants"], "hdsearch", "--polyglot")
    refused(["config is for curtail services"], path, "--variant", "count=python", "--set", "count.config=SIB1")
    code, _, err = tools.run("render", path, "--to", "kubernetes", "--variant", "count=python")
    assert code == 104 and "--variant" in err, (code, err)


run_case(globals())
