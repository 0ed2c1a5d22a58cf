#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the Markdown files: relative links and their anchors lead somewhere, and shown code is code that is compiled.

A block of code that follows a line

    <!-- code: tests/install_consumer/greeter.cc [service] -->

must equal, but for indentation, what stands in that file between `// [service]` and `// [/service]`, or `# [service]` and
`# [/service]` in files of that kind.

After a line `<!-- names -->` each name in backticks that follows a link to a file, in the same item of a list, stands in that
file as a word.

usage: docs_check.py [ROOT]
"""
import pathlib
import re
import sys
import textwrap

MARKER = re.compile(r"<!-- code: (\S+) \[([\w-]+)\] -->\n```\w*\n(.*?)```", re.DOTALL)
ANY_MARKER = re.compile(r"<!-- code:")
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)]*))?\)|(?:src|href)=\"([^\"#]+)")
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
SKIPPED = {"build", ".git", "node_modules"}


def markdown_files(root):
    for path in sorted(root.rglob("*.md")):
        if not SKIPPED & set(part.split("-")[0] for part in path.relative_to(root).parts[:-1]):
            yield path


def region(root, name, label):
    """The text between the two tags of a region, without its indentation; None when there is no such region."""
    source = root / name
    if not source.is_file():
        return None
    found = re.search(rf"^ *(?://|#) \[{label}\]\n(.*?)^ *(?://|#) \[/{label}\]$", source.read_text(),
                      re.DOTALL | re.MULTILINE)
    return textwrap.dedent(found.group(1)) if found else None


def check_code(root, path, text):
    markers = list(MARKER.finditer(text))
    if len(markers) != len(ANY_MARKER.findall(text)):
        yield f"{path}: a `<!-- code: FILE [REGION] -->` line without a block of code after it"
    for marker in markers:
        name, label, shown = marker.groups()
        wanted = region(root, name, label)
        if wanted is None:
            yield f"{path}: {name} has no region [{label}]"
        elif shown != wanted:
            yield f"{path}: differs from {name} [{label}], which reads:\n{textwrap.indent(wanted, '    ')}"


def anchors(text):
    """The anchors that GitHub gives the headings of a document."""
    for heading in HEADING.findall(FENCE.sub("", text)):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        yield re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def check_links(path, text):
    for link in LINK.finditer(FENCE.sub("", text)):
        name, anchor = link.group(1) or link.group(3) or "", link.group(2)
        if re.match(r"[a-z]+:", name):
            continue
        target = path.parent / name if name else path
        if not target.exists():
            yield f"{path}: no such file: {name}"
        elif anchor and target.suffix == ".md" and anchor not in anchors(target.read_text()):
            yield f"{path}: {name or path.name} has no heading #{anchor}"


def check_names(path, text):
    for item in re.split(r"\n(?=\d+\. |## )", text.partition("<!-- names -->")[2]):
        source = None
        for link, name in re.findall(r"\]\(([^)]+)\)|`(\w+)`", item):
            if link:
                source = path.parent / link
            elif source and source.is_file() and not re.search(rf"\b{name}\b", source.read_text()):
                yield f"{path}: {source.name} has no {name}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    problems, files = [], 0
    for path in markdown_files(root):
        text = path.read_text()
        files += 1
        problems += check_code(root, path, text)
        problems += check_links(path, text)
        problems += check_names(path, text)
    print("\n".join(problems + [f"{files} files, {len(problems)} problems"]))
    return 1 if problems or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
