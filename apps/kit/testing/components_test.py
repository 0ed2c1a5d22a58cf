#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks docs/applications.md's counts and tables of components against the topologies and sources of all applications.

An entry of a topology is a component. The table under "Components" has each application, its entries, and how many components the
paper has; where the paper has a number, "Components of NAME" is a table with a row an entry.

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
            # Keys in braces, of which some are texts in quotes.
            services[name] = {key: text.strip("'") for key, text in re.findall(r"(\w+): ('[^']*'|[^,}]+)", line[found.end():])}
        elif inside and (found := re.match(r"    (\w+): (.*)", line)):
            services[name][found[1]] = found[2]
    return services


def table_under(heading, text):
    """The rows of the first table of a section, by their first cells."""
    section = re.search(rf"^##+ {heading}\n(.*?)(?=^##|\Z)", text, re.M | re.S)
    assert section, f'there is no section "{heading}"'
    table = re.search(r"(?:^\|.*\n)+", section[1], re.M)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()][2:]
    by_name = {row[0]: row for row in rows}
    assert len(by_name) == len(rows), f"{heading}: two rows have one name"
    return by_name


def check_application(root, name, services, rows):
    """The rows are the entries, and tell of each what its topology and its sources do."""
    assert list(rows) == list(services), set(rows) ^ set(services) or "the order differs from the topology's"
    folder = root / "apps" / name
    folders = (folder, folder / "common", folder / "services", root / "apps/kit/accounts")
    code = "".join(path.read_text() for one in folders for end in ("*.cc", "*.h") for path in one.glob(end))
    hosted = {path.stem.replace("_", "-") for path in (folder / "services").glob("*.cc")}
    title = (folder / "topology.yaml").read_text().split("title:", 1)[1].split("\n", 1)[0]
    assert re.search(r"\d+ services", title)[0] == f"{len(hosted)} services", f"{len(hosted)} services, but: {title}"
    assert hosted == {entry for entry, keys in services.items() if keys["run"].startswith(f"{name} --service")}, hosted
    for entry, keys in services.items():
        _, kind, protocol, store = rows[entry]
        assert protocol == ("gRPC" if entry in hosted else keys["protocol"]), entry
        optional = keys.get("replicas") == "0"
        assert (kind == "optional store") == optional and (kind == "service") == (entry in hosted), f"{entry}: {kind}"
        assert optional or (store != "") == ("keeps" in keys or kind == "cache"), f"{entry} keeps {store!r}"
        for file in re.findall(r"([\w-]+)\.db", store):
            assert file == entry and f'"{file}"' in code, f"{entry}: nothing opens {file}.db"


def main(sources):
    root = pathlib.Path(sources)
    text = (root / "docs/applications.md").read_text()
    counts = {name: row[1:] for name, row in table_under("Components", text).items()}
    topologies = {path.parent.name: topology_of(path) for path in sorted(root.glob("apps/*/topology.yaml"))}
    assert counts.keys() == topologies.keys(), counts.keys() ^ topologies.keys()
    for name, services in topologies.items():
        entries, of_paper = counts[name]
        assert entries == str(len(services)), f"{name} has {len(services)} entries, not {entries}"
        if of_paper:
            assert len(services) <= int(of_paper), f"{name}: the paper has fewer components, {of_paper}"
            check_application(root, name, services, table_under(f"Components of {name}", text))


if __name__ == "__main__":
    main(*sys.argv[1:])
