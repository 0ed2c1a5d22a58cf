# SPDX-License-Identifier: Apache-2.0
"""schema_test.py KIND FOLDER: documents that unit tests left in FOLDER are as their schema says, and changed ones not.

A unit test leaves them by KeepForSchemaTest() of curtail/base/schema_testing.h; ctest runs it first.
"""

import copy
import json
import os
import sys

import schemas

# The documents of a kind; the first is the one that is then changed.
DOCUMENTS = {
    "report": ["report-2", "report-1", "report-7", "report-unknown-origin", "report-this-machine", "report-empty",
               "report-journeys", "report-checked"],
    "comparison": ["comparison", "comparison-wide", "comparison-empty", "comparison-no-runs", "comparison-no-machine",
                   "comparison-many-changes"],
    "provision": ["provision", "provision-threads", "provision-nothing"],
    "profile": ["profile", "profile-saturated", "profile-limits"],
}
# Documents of what a schema calls its parts.
PARTS = {"report": [("result", "result")], "comparison": [], "provision": [], "profile": []}

REMOVE = object()
# Where a document is changed and into what, where that is found, and the keyword that finds it.
CHANGES = {
    "report": [
        ("runs/1/latency_us/all/p99", REMOVE, "runs/1/latency_us/all", "required"),
        ("plan/seed", "nine", "plan/seed", "type"),
        ("plan/seed", 9.0, "plan/seed", "type"),
        ("runs/0/latency_us/p42", 1, "runs/0/latency_us", "additionalProperties"),
        ("schema_version", 1, "schema_version", "const"),
        ("runs/0/series/3/due", -1, "runs/0/series/3/due", "minimum"),
    ],
    "comparison": [
        ("runs/0/phases/1/p99_us", REMOVE, "runs/0/phases/1", "required"),
        ("runs/3/p42", 1, "runs/3", "additionalProperties"),
        ("schema_version", 1, "schema_version", "const"),
        ("judgements/0/overall/verdict", "winner", "judgements/0/overall/verdict", "enum"),
        ("judgements/0/cells/2/judgement/p", 1.5, "judgements/0/cells/2/judgement/p", "maximum"),
        ("runs/0/series/due/5", "many", "runs/0/series/due/5", "type"),
        ("costs/0/on_front", "yes", "costs/0/on_front", "type"),
        ("summary/0/policies/0/standing", "winner", "summary/0/policies/0/standing", "enum"),
    ],
    "provision": [
        ("rounds/0/verdict", "perhaps", "rounds/0/verdict", "enum"),
        ("rounds/0/steps/0/lever", REMOVE, "rounds/0/steps/0", "required"),
        ("rounds/0/good_share_after", 1.5, "rounds/0/good_share_after", "maximum"),
        ("shares/front/colour", "red", "shares/front", "additionalProperties"),
        ("shares/front/cpu", 0, "shares/front/cpu", "exclusiveMinimum"),
        ("end", "tired", "end", "enum"),
        ("schema_version", 2, "schema_version", "const"),
    ],
    "profile": [
        ("cells/2/p99_us", REMOVE, "cells/2", "required"),
        ("machine/colour", "beige", "machine", "additionalProperties"),
        ("schema_version", 2, "schema_version", "const"),
        ("service", "", "service", "minLength"),
        ("cells/0/failed_share", 1.5, "cells/0/failed_share", "maximum"),
        ("loads_per_s/0", 0, "loads_per_s/0", "exclusiveMinimum"),
        ("configs", "SIB1", "configs", "type"),
        ("fences", [], "fences", "minItems"),
        ("fences/0/limit", 0, "fences/0/limit", "minimum"),
        ("configs/0/points/0/unstable", None, "configs/0/points/0/unstable", "type"),
    ],
}


def changed(document, path, value):
    document = copy.deepcopy(document)
    *parents, last = [int(step) if step.isdigit() else step for step in path.split("/")]
    inner = document
    for step in parents:
        inner = inner[step]
    if value is REMOVE:
        del inner[last]
    else:
        inner[last] = value
    return document


def main(kind, folder):
    def read(name):
        with open(os.path.join(folder, name + ".json"), encoding="utf-8") as file:
            return json.load(file)

    validator = schemas.load(kind)
    for name in DOCUMENTS[kind]:
        found = schemas.faults(validator, read(name))
        assert not found, f"{name}: {found[:5]}"
    for part, name in PARTS[kind]:
        found = schemas.faults(schemas.load(kind, part), read(name))
        assert not found, f"{name}: {found[:5]}"
    good = read(DOCUMENTS[kind][0])
    for path, value, where, keyword in CHANGES[kind]:
        found = schemas.faults(validator, changed(good, path, value))
        assert found == [(where, keyword)], f"{path}: {found[:5]}"
    print(f"{kind}: {len(DOCUMENTS[kind])} documents, {len(CHANGES[kind])} changes found")


main(*sys.argv[1:])
