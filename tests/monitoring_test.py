#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The alert rules do as their test says, and they and the dashboard of Grafana ask for metrics that there are.

Usage: monitoring_test.py REPOSITORY [PROMTOOL]
"""

import json
import pathlib
import re
import subprocess
import sys

METRIC = re.compile(r"\b(?:rpc|curtail|process)_[a-z0-9_]+")
LABELS = re.compile(r"\bby \([^)]*\)|\{[^{}]*\}|label_values.*")
SUFFIXES = ("_bucket", "_count", "_sum")


def names_in(expression):
    found = METRIC.findall(LABELS.sub("", expression))
    return {next((name.removesuffix(s) for s in SUFFIXES if name.endswith(s)), name) for name in found}


def documented(page):
    """The metrics of the tables: "`curtail_a_total`, `_b_total`" are curtail_a_total and curtail_b_total."""
    names = set()
    for line in page.splitlines():
        last = ""
        for name in re.findall(r"`((?:rpc|curtail|process)_[a-z0-9_]+|_[a-z0-9_]+)`", line.split("|")[1] if line.startswith("|") else ""):
            if name.startswith("_"):
                stem = last
                while stem:
                    names.add(stem + name)
                    stem = stem.rpartition("_")[0]
            else:
                names.add(name)
                last = name
    return names


def main(repository, promtool=None):
    root = pathlib.Path(repository)
    folder = root / "deploy/monitoring"
    known = documented((root / "docs/observe.md").read_text())
    dashboard = json.loads((folder / "grafana.json").read_text())
    asked = set()
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            names = names_in(target["expr"])
            assert names, (panel["title"], target)
            asked |= names
    rules = "".join(line for line in (folder / "alerts.yaml").read_text().splitlines(True) if not line.startswith("#"))
    asked |= names_in(rules)
    assert len(asked) > 12 and asked <= known, sorted(asked - known)
    if promtool:
        subprocess.run([promtool, "test", "rules", "alerts_test.yaml"], cwd=folder, check=True, timeout=60)
    print("asks for", ", ".join(sorted(asked)), "" if promtool else "(no promtool)")


if __name__ == "__main__":
    main(*sys.argv[1:])
