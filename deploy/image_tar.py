#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes an image as one file, without a daemon and without a registry.

usage: image_tar.py ROOT IMAGE FILE [NAME=VALUE...]

ROOT is the folder of its files, IMAGE its name with a tag, FILE what `docker load`, `podman load` and
`ctr --namespace k8s.io images import` read. What is no file (user, folder, labels) comes from the last stage of the Dockerfile beside this
file; NAME=VALUE are its build arguments. The same files make the same image: all belong to root, and have the same time.
"""
import hashlib
import io
import json
import pathlib
import platform
import re
import shlex
import sys
import tarfile

DOCKERFILE = pathlib.Path(__file__).resolve().parent / "Dockerfile"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
CREATED = "1970-01-01T00:00:00Z"


def instructions(arguments):
    """The instructions of the Dockerfile's last stage, in order, each with its words."""
    stage = DOCKERFILE.read_text().rsplit("\nFROM ", 1)[1].replace("\\\n", " ")
    known = {}
    for line in stage.splitlines()[1:]:
        name, _, rest = line.partition(" ")
        if name == "ARG":
            key, _, default = rest.partition("=")
            known[key] = arguments.get(key, default)
        elif name:
            yield name, shlex.split(re.sub(r"\$\{(\w+)\}", lambda match: known[match[1]], rest))


def config_of(arguments):
    config = {"Env": [], "Labels": {}, "ExposedPorts": {}}
    for name, words in instructions(arguments):
        if name == "ENV":
            config["Env"] += words
        elif name == "LABEL":
            config["Labels"] |= dict(word.split("=", 1) for word in words)
        elif name == "EXPOSE":
            config["ExposedPorts"] |= {f"{port}/tcp": {} for port in words}
        elif name in ("USER", "WORKDIR"):
            config[{"USER": "User", "WORKDIR": "WorkingDir"}[name]] = words[0]
        elif name != "COPY":
            sys.exit(f"{DOCKERFILE}: {name} is not understood here")
    return config


def plain(entry):
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


def layer_of(root):
    """All of the folder; parents come before what is in them."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.GNU_FORMAT) as layer:
        for path in sorted(root.rglob("*")):
            layer.add(path, path.relative_to(root), recursive=False, filter=plain)
    return content.getvalue()


def write(root, image, file, config):
    layer = layer_of(pathlib.Path(root))
    machine = platform.machine()
    text = json.dumps({"created": CREATED, "architecture": ARCHITECTURES.get(machine, machine), "os": "linux", "config": config,
                       "history": [{"created": CREATED, "created_by": "image_tar.py"}],
                       "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]}}).encode()
    name = f"{hashlib.sha256(text).hexdigest()}.json"
    manifest = json.dumps([{"Config": name, "RepoTags": [image], "Layers": ["layer.tar"]}]).encode()
    with tarfile.open(file, "w") as archive:
        for entry, content in ((name, text), ("layer.tar", layer), ("manifest.json", manifest)):
            info = tarfile.TarInfo(entry)
            info.size, info.mode = len(content), 0o644
            archive.addfile(info, io.BytesIO(content))
    print(f"{file}: {image}, {len(layer) / 1e6:.1f} MB")


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    write(*sys.argv[1:4], config_of(dict(word.split("=", 1) for word in sys.argv[4:])))
