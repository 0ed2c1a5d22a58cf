#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks docs/applications.md's table of the social network's components against its topology and its sources.

Usage: components_test.py SOURCES, the folder of the project
"""
import pathlib
import re
import sys


def topology_of(path):
    """The keys of each service, as text."""
    services, name, inside = {}, None, False
    for line in path.read_text().splitlines():
        if re.match(r"\S", line):
            inside = line.startswith("services:")
        elif inside and (found := re.match(r"  ([\w-]+):", line)):
            name = found[1]
            services[name] = {}
        elif inside and (found := re.match(r"    (\w+): (.*)", line)):
            services[name][found[1]] = found[2]
    return services


def table_of(path):
    """The rows, as lists of cells without code marks, and the count that the text before the table gives."""
    section = re.search(r"^## The components of the social network\n(.*?)(?=^## |\Z)", path.read_text(), re.M | re.S)[1]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("|")]
    counts = [int(number) for number in re.findall(r"\*\*(\d+)\*\*", section)]
    return rows[2:], counts


def main(sources):
    root = pathlib.Path(sources)
    social = root / "apps/social"
    services = topology_of(social / "topology.yaml")
    rows, counts = table_of(root / "docs/applications.md")
    by_name = {row[0]: row for row in rows}
    assert len(by_name) == len(rows), "a component has two rows"
    assert list(by_name) == list(services), set(by_name) ^ set(services) or "the order differs from the topology's"
    folders = (social, social / "services", root / "apps/kit/accounts")

    def text_of(*patterns):
        return "".join(path.read_text() for folder in folders for pattern in patterns for path in folder.glob(pattern))

    protos = set(re.findall(r"^service (\w+)", text_of("*.proto"), re.M))
    code = text_of("*.cc", "*.h")
    stores = []
    for name, keys in services.items():
        _, kind, protocol, store = by_name[name]
        hosted = keys["run"].startswith("social --service")
        if hosted:
            assert protocol == "gRPC", name
            assert "".join(word.capitalize() for word in name.split("-")) in protos | {"FrontEnd", "DirectMessage"}, name
        else:
            assert protocol == keys["protocol"], name
        optional = keys.get("replicas") == "0"
        assert kind == ("optional store" if optional else "service" if hosted else kind), name
        keeps = store != "" and not optional
        assert keeps == ("keeps" in keys or kind == "cache"), f"{name} keeps {store!r}"
        for file in re.findall(r"([\w-]+)\.db", store):
            opened = {"social-graph": "kGraphService", file: f'"{file}"'}[file]
            assert file == name and opened in code, f"{name}: nothing opens {file}.db"
        stores += [name] * keeps
    programs = [name for name, row in by_name.items() if row[1] != "optional store"]
    separate = [name for name in stores if by_name[name][1] != "cache"]
    assert counts == [len(programs) + len(separate), len(programs), len(separate)], (
        counts, len(programs), len(separate))


if __name__ == "__main__":
    main(*sys.argv[1:])
