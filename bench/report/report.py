#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The numbers of all pages of docs/performance, of one run on one machine: runs the commands that the pages name, one after the other, and puts
what they print on one page, with the machine and the commit.

  ./dev bench report --list                 the commands, by page
  ./dev bench report                        all of them, which takes hours; --out FOLDER [build/report]
  ./dev bench report --only fences,peers    the commands of two pages

The page is FOLDER/report.md. Each command runs in the folder of its page, FOLDER/PAGE, where its files stay. A command that has
succeeded there is not run again, so an interrupted report goes on where it was; --again begins from the start. Below the numbers of an earlier
run the page has when that was, and the commit.

Exit codes: 0 done, 1 a command failed (the page says which), 104 bad flags, 129 the terminal was closed, 130 interrupted, 143 terminated.
"""

import argparse
import datetime
import hashlib
import os
import pathlib
import platform
import re
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ("performance.md", "performance/*.md")
# Where a page's commands are found. What else a page names makes no table: builds, pictures, profiles.
PROGRAMS = {
    "./dev": ROOT / "dev",
    "bench/": f"{ROOT}/bench/",
    "build/bench/": f"{ROOT}/build/bench/",
    "curtail": ROOT / "build/bench/tools/curtail/curtail",
}
MOST_S = 3 * 3600  # of one command
GRACE_S = 10  # of a command that is told to end


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.print_usage(sys.stderr)
        self.exit(104, f"{self.prog}: {message}\n")


def lines_of(text):
    """The commands of a page's blocks of shell, whole, without comments."""
    for block in re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S):
        for line in block.replace("\\\n", " ").splitlines():
            line = re.sub(r"(^|\s+)#.*", "", re.sub(r"\s+", " ", line)).strip()
            if line.startswith(("./dev bench ", "bench/", "build/bench/", "curtail ")):
                yield line


def found(only):
    """The pages that have commands, by name: their commands, each once."""
    pages = {}
    for pattern in PAGES:
        for path in sorted((ROOT / "docs").glob(pattern)):
            commands = list(dict.fromkeys(lines_of(path.read_text())))
            if commands and (not only or path.stem in only):
                pages[path.stem] = commands
    return pages


def runnable(command):
    """The command for a shell in any folder."""
    for word, place in PROGRAMS.items():
        command = re.sub(rf"(?<![^\s=]){re.escape(word)}(?={'' if word.endswith('/') else ' '})", str(place), command)
    return command


def end(process):
    """Ends the command's process group."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(GRACE_S)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass


def take(command, folder, head):
    """Runs the command; what it prints stays in the folder. Returns its exit code, the seconds it took, the name of its files, and of an earlier
    run the head of its page."""
    stem = folder / hashlib.sha256(command.encode()).hexdigest()[:12]
    done = stem.with_suffix(".done")
    if done.exists():
        took, _, measured = done.read_text().partition("\n")
        return 0, float(took), stem, measured or "at a time that was not kept"
    for left in folder.glob("*.partial"):  # of an interrupted training, which refuses to begin beside it
        left.unlink()
    begun = time.monotonic()
    with open(stem.with_suffix(".out"), "w") as out, open(stem.with_suffix(".err"), "w") as err:
        process = subprocess.Popen(["bash", "-c", runnable(command)], cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True)
        try:
            code = process.wait(MOST_S)
        except subprocess.TimeoutExpired:
            code = 124
        finally:
            if process.poll() is None:
                end(process)
    took = time.monotonic() - begun
    if code == 0:
        named = re.search(r"--markdown (\S+)", command)  # a later command may write a file of the same name
        stem.with_suffix(".md").write_text((folder / named[1]).read_text() if named else f"```text\n{stem.with_suffix('.out').read_text().strip()}\n```")
        done.write_text(f"{took:.1f}\n{head}")
    return code, took, stem, head


def machine():
    cpu = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    commit = subprocess.run(["git", "-C", str(ROOT), "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return (
        f"{datetime.date.today()}, commit {commit.stdout.strip() or 'unknown'}: {cpu[1] if cpu else platform.machine()}, "
        f"{os.cpu_count()} CPUs, Linux {platform.release()}, load average {os.getloadavg()[0]:.2f} at the start."
    )


def report(pages, out):
    head = machine()
    page, failed = ["# Measured in one run", "", head], []
    number, of = 0, sum(map(len, pages.values()))
    for name, commands in pages.items():
        folder = out / name
        folder.mkdir(parents=True, exist_ok=True)
        page += ["", f"## {name}"]
        for command in commands:
            number += 1
            print(f"{number} of {of}: {name}: {command[:100]}", file=sys.stderr, flush=True)
            code, took, stem, measured = take(command, folder, head)
            print(f"    {'done' if code == 0 else f'FAILED with {code}'}, {took:.0f} s", file=sys.stderr, flush=True)
            page += ["", "```sh", command, "```", ""]
            if code == 0:
                page.append(stem.with_suffix(".md").read_text().strip())
                if measured != head:
                    page += ["", f"Measured: {measured}"]
            else:
                failed.append(command)
                last = stem.with_suffix(".err").read_text().strip().splitlines()[-5:]
                page.append("\n".join([f"Exit code {code}:", "", "```text", *last, "```"]))
            (out / "report.md").write_text("\n".join(page) + "\n")
    return failed


def main():
    parser = Parser(prog="./dev bench report", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="name the commands, and run none")
    parser.add_argument("--only", metavar="PAGES", default="", help="pages, with commas between them")
    parser.add_argument("--out", metavar="FOLDER", type=pathlib.Path, default=ROOT / "build/report", help="[build/report]")
    parser.add_argument("--again", action="store_true", help="run again what has succeeded")
    options = parser.parse_args()
    only = [name for name in options.only.split(",") if name]
    pages = found(only)
    if unknown := [name for name in only if name not in pages]:
        parser.error(f"no page of docs/performance with commands is named {', '.join(unknown)}; there are {', '.join(found([]))}")
    if options.list:
        for name, commands in pages.items():
            print("\n".join([f"{name}:", *(f"  {command}" for command in commands)]))
        return 0
    if options.again:
        for done in options.out.glob("*/*.done"):
            done.unlink()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup has it
            signal.signal(number, lambda which, _: sys.exit(128 + which))
    failed = report(pages, options.out)
    print(f"{options.out / 'report.md'}" + (f"; {len(failed)} commands failed" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
