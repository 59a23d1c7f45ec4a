"""Labs for tests: made with a name of their own, taken down however the test ends.

A test script ends with `lab_harness.main()`, which skips all of it, with the reason, where no lab
can be made. Standard library only.
"""

import json
import os
import secrets
import subprocess
import sys
import unittest

EXIT_CANNOT = 3  # of polyrail-lab
EXIT_SKIP = 77  # for ctest
HERE = os.path.dirname(os.path.realpath(__file__))
PROGRAMS = os.environ.get("LAB_PROGRAMS") or os.path.join(HERE, "..", "..", "perf", "lab")
LAB_PROGRAM = os.path.join(PROGRAMS, "polyrail-lab")


def lab_command(*words, name=None, timeout_s=240, **options):
    """Run polyrail-lab; the finished process with its output as text."""
    named = ["--lab", name] if name else []
    return subprocess.run(
        [LAB_PROGRAM, *named, *words], capture_output=True, text=True, timeout=timeout_s, **options
    )


class Lab:
    """`with Lab("--rails", "1gbit,500mbit") as lab: lab.run("hostname")`"""

    def __init__(self, *up_words):
        self.name = "t" + secrets.token_hex(4)
        self.up_words = up_words

    def __enter__(self):
        try:
            self.must("up", *self.up_words)
        except BaseException:  # also if it took so long that it was killed
            self.command("down")
            raise
        return self

    def __exit__(self, *_):
        self.must("down")

    def command(self, *words, **options):
        return lab_command(*words, name=self.name, **options)

    def must(self, *words, **options):
        """As `command`, but failing is an error; gives back what was printed."""
        done = self.command(*words, **options)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(words)}: {done.returncode}: {done.stderr}")
        return done.stdout

    def run(self, *program, options=()):
        """The lines that each rank printed, in rank order."""
        text = self.must("run", "--timeout", "200", *options, "--", *program)
        lines = {}
        for line in text.splitlines():
            rank, _, rest = line.partition("] ")
            lines.setdefault(int(rank[1:]), []).append(rest)
        return [lines[rank] for rank in sorted(lines)]

    def python(self, host, code, *arguments):
        """What a small Python program prints in one host."""
        return self.must("exec", host, "--", sys.executable, "-c", code, *arguments).strip()

    def start(self, host, code, *arguments):
        """A small Python program in one host that goes on; the caller waits for it."""
        words = [LAB_PROGRAM, "--lab", self.name, "exec", host, "--", sys.executable, "-c", code]
        return subprocess.Popen([*words, *arguments], stdout=subprocess.PIPE, text=True)

    def link(self, host, rail):
        """One record of `status --json`."""
        for record in json.loads(self.must("status", "--json"))["links"]:
            if (record["host"], record["rail"]) == (host, rail):
                return record
        raise AssertionError(f"status has no {host} {rail}")


def main():
    probe = lab_command("probe")
    if probe.returncode == EXIT_CANNOT:
        print(f"skipped: {probe.stderr.strip()}")
        sys.exit(EXIT_SKIP)
    unittest.main(verbosity=2)
