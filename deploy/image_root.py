#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Collects the files of an application's image: its programs, the libraries that these load, its data.

usage: image_root.py TOPOLOGY FOLDER [--version VERSION] [--licence LICENCE]

FOLDER is made, in place of one that this made, and is the image's root. It gets the programs that run, run_at_port and
prepare of the topology name, and the command curtail, for load tests in a cluster and for the dashboard. A path, such as
build/shop, starts at the topology's folder; a name is looked up in $PATH. A file image.data beside the topology names data,
an absolute path a line. The packages of all that was copied are listed in usr/share/sbom/APP.spdx.json, in SPDX 2.3. There is
no shell and no compiler in the image, and no architecture in this file: an image is for the machine that it is made on.
"""
import argparse
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import uuid

import yaml

USER = 10001
# Names of hosts: first those of the container runtime's file.
FILES = {
    "etc/passwd": f"root:x:0:0::/:/nonexistent\ncurtail:x:{USER}:{USER}::/data:/nonexistent\n",
    "etc/group": f"root:x:0:\ncurtail:x:{USER}:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}


def output(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def libraries(program):
    """The files that the loader maps for a program, itself included."""
    with open(program, "rb") as file:
        if file.read(4) != b"\x7fELF":
            sys.exit(f"{program} is a script; an image of this kind has no interpreter, so write a Dockerfile for it")
    text = subprocess.run(["ldd", program], text=True, stdout=subprocess.PIPE, check=False).stdout  # fails for a static one
    missing = re.findall(r"(\S+) => not found", text)
    if missing:
        sys.exit(f"{program} lacks {', '.join(missing)}")
    return sorted(set(re.findall(r"(?:=> )?(/\S+) \(0x", text)))


def programs_of(topology, folder):
    """The programs of the pods, by the names that `curtail render` calls them by."""
    commands = [service.get(key) for service in topology["services"].values() for key in ("run", "run_at_port")]
    programs = {}
    for command in ["curtail", *commands, topology.get("prepare")]:
        if command is None:
            continue
        word = command[0] if isinstance(command, list) else shlex.split(command)[0]
        name = pathlib.PurePath(word).name
        path = shutil.which(folder / word if "/" in word else word)
        if path is None:
            sys.exit(f"the program {word} is missing; build it, or add its folder to PATH")
        path = str(pathlib.Path(path).resolve())
        if programs.setdefault(name, path) != path:
            sys.exit(f"{name} is two programs, {programs[name]} and {path}; rename one")
    return programs


def package_of(path):
    """The Debian package that a file is of, or nothing. A file may be known by its place before /usr was merged."""
    for name in (str(path), str(path).removeprefix("/usr"), f"/usr{path}"):
        found = subprocess.run(["dpkg-query", "-S", name], text=True, capture_output=True)
        if found.returncode == 0:
            return found.stdout.split(": ")[0].split(",")[0]
    return None


def copy(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)  # what a link points to, under the link's name


def sbom(app, version, licence, packages):
    def entry(spdx_id, name, version, licence, reference=None):
        package = {"SPDXID": f"SPDXRef-{spdx_id}", "name": name, "downloadLocation": "NOASSERTION",
                   "filesAnalyzed": False, "licenseConcluded": licence, "licenseDeclared": licence,
                   "copyrightText": "NOASSERTION"} | ({"versionInfo": version} if version else {})
        if reference:
            package["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                        "referenceLocator": reference}]
        return package

    described = [entry("application", app, version, licence)]
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                  "relatedSpdxElement": "SPDXRef-application"}]
    for name in sorted(packages):
        short, package_version, architecture = output(
            "dpkg-query", "-W", "-f=${Package}\\t${Version}\\t${Architecture}", name).split("\t")
        spdx_id = "package-" + re.sub(r"[^A-Za-z0-9.-]", "-", short)
        described.append(entry(spdx_id, short, package_version, "NOASSERTION",
                               f"pkg:deb/debian/{short}@{package_version}?arch={architecture}"))
        relations.append({"spdxElementId": "SPDXRef-application", "relationshipType": "DEPENDS_ON",
                          "relatedSpdxElement": f"SPDXRef-{spdx_id}"})
    content = json.dumps([described, relations], sort_keys=True)
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": app,
            "documentNamespace": f"https://spdx.org/spdxdocs/{app}-{uuid.uuid5(uuid.NAMESPACE_URL, content)}",
            "creationInfo": {"created": output("date", "-u", "+%Y-%m-%dT%H:%M:%SZ").strip(),
                             "creators": ["Tool: curtail-image_root.py"]},
            "packages": described, "relationships": relations}


def collect(topology_file, root, version, licence):
    topology = yaml.safe_load(topology_file.read_text())
    app = topology["application"]
    if root.exists() and any(root.iterdir()) and not (root / "usr/share/sbom").is_dir():
        sys.exit(f"{root} has files that are not of an image; name a new folder")
    shutil.rmtree(root, ignore_errors=True)
    packages, own = set(), []
    programs = programs_of(topology, topology_file.parent)
    for name, path in programs.items():
        copy(path, root / "usr/local/bin" / name)
        package = package_of(path)
        packages.add(package)
        if package is None:
            own.append(root / "usr/local/bin" / name)
        for library in libraries(path):
            copy(library, root / library[1:])
            packages.add(package_of(library))
    if own:
        subprocess.run(["strip", *own], check=False)
    extra = topology_file.parent / "image.data"
    for path in extra.read_text().split() if extra.exists() else []:
        files = sorted(p for p in pathlib.Path(path).rglob("*") if p.is_file()) or [pathlib.Path(path)]
        for file in files:
            copy(file, root / str(file)[1:])
        packages.add(package_of(files[0]))
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for empty in ("tmp", "data", "run"):
        (root / empty).mkdir()
    (root / "tmp").chmod(0o1777)
    (root / "data").chmod(0o777)
    place = root / f"usr/share/sbom/{app}.spdx.json"
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps(sbom(app, version, licence, packages - {None}), indent=1) + "\n")
    size = sum(file.stat().st_size for file in root.rglob("*") if file.is_file())
    print(f"{root}: {size / 1e6:.1f} MB, {len(packages - {None})} packages, {len(programs)} programs")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0], description=__doc__.split("\n\n")[0])
    parser.add_argument("topology", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--version", default="")
    parser.add_argument("--licence", default="NOASSERTION")
    given = parser.parse_args()
    collect(given.topology.resolve(), given.folder, given.version, given.licence)


if __name__ == "__main__":
    main()
