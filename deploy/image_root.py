#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Collects the files of an application's image: its programs, the libraries that these load, its data.

usage: image_root.py APP PROGRAM CURTAIL FOLDER

APP is a folder of apps/, PROGRAM what was built of it, CURTAIL the command, for load tests in a cluster, FOLDER is made and is
the image's root. The programs that the topology runs besides come from $PATH, and the data from apps/APP/image.data, a path a line. The packages of all that was copied are
listed in usr/share/sbom/APP.spdx.json, in SPDX 2.3. There is no shell and no compiler in the image, and no architecture
in this file: an image is for the machine that it is made on.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import uuid

SOURCES = pathlib.Path(__file__).resolve().parent.parent
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
    text = output("ldd", program)
    missing = re.findall(r"(\S+) => not found", text)
    if missing:
        sys.exit(f"{program} lacks {', '.join(missing)}")
    return sorted(set(re.findall(r"(?:=> )?(/\S+) \(0x", text)))


def other_programs(app, program):
    """What the topology runs besides the application itself: of the same build, or installed here."""
    build = pathlib.Path(program).resolve().parents[2]
    topology = (SOURCES / "apps" / app / "topology.yaml").read_text()
    words = re.findall(r"^ *(?:run|run_at_port|prepare): *(\S+)", topology, re.M)
    for word in sorted(set(words) - {app}):
        path = shutil.which(word, path=f"{build}/tools/gateway:{os.environ['PATH']}")
        if path is None:
            sys.exit(f"the topology runs {word}, which is not installed here")
        yield word, path


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



def sbom(app, version, packages):
    def entry(spdx_id, name, version, licence, reference=None):
        package = {"SPDXID": f"SPDXRef-{spdx_id}", "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION",
                   "filesAnalyzed": False, "licenseConcluded": licence, "licenseDeclared": licence,
                   "copyrightText": "NOASSERTION"}
        if reference:
            package["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                        "referenceLocator": reference}]
        return package

    described = [entry("application", app, version, "Apache-2.0")]
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


def main(app, program, curtail, folder):
    root = pathlib.Path(folder)
    shutil.rmtree(root, ignore_errors=True)
    packages = set()
    own = [(app, program), ("curtail", curtail)]
    programs = [*own, *other_programs(app, program)]
    for name, path in programs:
        copy(path, root / "usr/local/bin" / name)
        if (name, path) not in own:
            packages.add(package_of(path))
        for library in libraries(path):
            copy(library, root / library[1:])
            packages.add(package_of(library))
    subprocess.run(["strip", *(root / "usr/local/bin" / name for name, _ in own)], check=False)
    extra = SOURCES / "apps" / app / "image.data"
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
    version = re.search(r"^project\(curtail VERSION (\S+)", (SOURCES / "CMakeLists.txt").read_text(), re.M)[1]
    place = root / f"usr/share/sbom/{app}.spdx.json"
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps(sbom(app, version, packages - {None}), indent=1) + "\n")
    size = sum(file.stat().st_size for file in root.rglob("*") if file.is_file())
    print(f"{root}: {size / 1e6:.1f} MB, {len(packages - {None})} packages, {len(programs)} programs")


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
