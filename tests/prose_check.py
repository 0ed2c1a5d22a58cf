#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the prose of public headers and documents, as far as a program can.

All sources: no comment starts with "What" or "Whether".
Public headers, which a curtail_library() lists under HEADERS: no sentence has more than 40 words (25 is the rule),
no comment line is longer than 100 columns.
Headers and documents: none of the phrases of UNNAMED_ACTOR and PHRASES. Decisions (docs/adr) stay as they were made.
Texts of programs: none that says "is no NOUN".
Subjects of commits: they begin with a verb, since the last tag, or without a tag where origin/main lacks the commit.

usage: prose_check.py [ROOT]
       prose_check.py --words N [FILE...]    lists sentences of more than N words, in public headers or in FILE
"""
import pathlib
import re
import subprocess
import sys

MOST_WORDS = 40
MOST_COLUMNS = 100
LIBRARY = re.compile(r"curtail_library\((\w+)(.*?)\)", re.DOTALL)
HEADERS = re.compile(r"\bHEADERS\b(.*?)(?:\b(?:SOURCES|PUBLIC|PRIVATE|LIBS)\b|$)", re.DOTALL)
UNNAMED_ACTOR = re.compile(r"\b(nobody|whom)\b", re.IGNORECASE)
FIXED = "longer|more|less|fewer|later|one|matter"
PHRASES = (
    (re.compile(rf"(?<!there\s)\b(?:is|are|was|were)\s+no\b(?!\s+(?:{FIXED})\b)(?=\s+[\w`\"'])", re.IGNORECASE),
     'say "is not a"'),
    (re.compile(r"\bthose\s+(?:that|of|which)\b", re.IGNORECASE), "repeat the noun"),
    (re.compile(r"\bthat\s+of\b", re.IGNORECASE), "repeat the noun, or write \"the server's\""),
    (re.compile(r"\banew\b", re.IGNORECASE), 'say "again"'),
)
IS_NO = re.compile(rf"(?<!there )\b(?:is|are) no\b(?! (?:{FIXED})\b)(?= |$)")
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
NO_VERB = "an?|the|one|two|three|all|no|its?|of|with|under|how|what|which|where|that|only"
VERBLESS = re.compile(rf"[^:]*: *(?:(?:{NO_VERB})\b|(?!(?:bring|ping)\b)\S+(?:ing|[^s]s)\b)")
WEAK_START = re.compile(r"(What|Whether)\b")
SENTENCE_END = re.compile(r"(?<=[.!?])[)\"'`*]*\s+(?=[A-Z`\"'(*~0-9])")
FENCE = re.compile(r"^```.*?^```|^    .*$", re.DOTALL | re.MULTILINE)
CODE_COMMENT = re.compile(r"(?:^|\s)//+ ?(.*)$")


def public_headers(root):
    for lists in sorted(root.glob("curtail/**/CMakeLists.txt")):
        for library in LIBRARY.finditer(lists.read_text()):
            for headers in HEADERS.finditer(library.group(2)):
                yield from (lists.parent / name for name in headers.group(1).split())


def comments(text):
    """(line number, text) of each comment; comments on lines of their own that follow each other are one."""
    found = []
    previous = -1
    for number, line in enumerate(text.splitlines(), 1):
        comment = CODE_COMMENT.search(re.sub(r'"(?:[^"\\]|\\.)*"', lambda s: "_" * len(s.group()), line))
        if comment is None:
            continue
        alone = line.lstrip().startswith("//")
        words = line[comment.start(1):]
        if words.startswith(("SPDX", "NOLINT")) or set(words) <= set("-= "):
            words = ""
        if alone and previous == number - 1 and found:
            found[-1][1].append(words)
        else:
            found.append((number, [words]))
        previous = number if alone else -1
    return [(number, lines) for number, lines in found]


def sentences(lines):
    """Sentences of a comment. Lines that two spaces or more set in are tables or code."""
    lines = ["" if line.startswith("  ") else line for line in lines]
    for paragraph in re.split(r"\n\s*\n|\n\s*(?=[-*] |\d+\. )", "\n".join(lines)):
        yield from SENTENCE_END.split(" ".join(paragraph.split()))


def long_sentences(lines, most):
    for sentence in sentences(lines):
        if len(sentence.split()) > most:
            yield f"{len(sentence.split())} words in a sentence: {sentence[:80]}..."


def phrases(text):
    """(offset, problem) of each phrase that plain English has a shorter one for."""
    for pattern, remedy in PHRASES:
        for found in pattern.finditer(text):
            yield found.start(), f'"{" ".join(found[0].split())}": {remedy}'


def check_header(path):
    text = path.read_text()
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > MOST_COLUMNS and CODE_COMMENT.search(line):
            yield number, f"a comment of {len(line)} columns, {MOST_COLUMNS} at most"
    for number, lines in comments(text):
        whole = " ".join(lines)
        for word in UNNAMED_ACTOR.findall(whole):
            yield number, f'"{word}": name the thread, caller, connection or replica'
        for problem in [problem for _, problem in phrases(whole)] + list(long_sentences(lines, MOST_WORDS)):
            yield number, problem


def check_texts(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        for text in () if line.lstrip().startswith("//") else STRING.findall(line):
            if " " in text and (found := IS_NO.search(text)):
                yield number, f'"{found[0]}" in a text of a program: say "is not a"'


def programs(root):
    for folder in ("apps", "curtail", "tools"):
        yield from (path for path in sorted((root / folder).rglob("*.cc")) if not path.stem.endswith(("_test", "_testing")))


def check_subjects(root):
    """Subjects of commits without a verb. Nothing where there is no history, as in an archive or a shallow clone."""

    def git(*args):
        done = subprocess.run(["git", "-C", root, *args], capture_output=True, text=True, check=False)
        return done.stdout.splitlines()

    since = git("describe", "--tags", "--abbrev=0") or git("rev-parse", "--verify", "--quiet", "origin/main")
    for subject in git("log", "--no-merges", "--format=%h %s", f"{since[0]}..HEAD") if since else ():
        if VERBLESS.match(subject):
            yield f'commit {subject}: begin with a verb, as in "rpc: answer UNAVAILABLE"'


def check_source(path):
    for number, lines in comments(path.read_text()):
        if weak := WEAK_START.match(lines[0]):
            yield number, f'a comment that starts with "{weak[0]}": start with the subject'


def sources(root):
    for folder in ("apps", "bench", "curtail", "tests", "tools"):
        yield from (path for path in sorted((root / folder).rglob("*")) if path.suffix in (".h", ".cc", ".proto"))


def check_document(path):
    text = FENCE.sub(lambda code: "\n" * code.group().count("\n"), path.read_text())
    for number, line in enumerate(text.splitlines(), 1):
        for word in UNNAMED_ACTOR.findall(line):
            yield number, f'"{word}": name the thread, caller, connection or replica'
    for offset, problem in phrases(text):
        yield text.count("\n", 0, offset) + 1, problem


def documents(root):
    yield from (path for path in sorted(root.glob("docs/**/*.md")) if "adr" not in path.parts)
    yield from (root / name for name in ("README.md", "CONTRIBUTING.md"))


def list_long(root, most, names):
    for path in [pathlib.Path(name) for name in names] or public_headers(root):
        for number, lines in comments(path.read_text()):
            for problem in long_sentences(lines, most):
                print(f"{path}:{number}: {problem}")
    return 0


def main():
    if sys.argv[1:2] == ["--words"]:
        return list_long(pathlib.Path("."), int(sys.argv[2]), sys.argv[3:])
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    headers = list(public_headers(root))
    problems = []
    for check, paths in ((check_header, headers), (check_source, sources(root)), (check_document, documents(root)),
                         (check_texts, programs(root))):
        for path in paths:
            problems += [f"{path.relative_to(root)}:{number}: {problem}" for number, problem in check(path)]
    problems += check_subjects(root)
    print("\n".join(problems + [f"{len(headers)} public headers, {len(problems)} problems"]))
    return 1 if problems or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
