#!/usr/bin/env python3
"""perf/peers/compare with the peers that need no package: it runs, adds up, and cleans up."""

import csv
import json
import os
import signal
import subprocess
import tempfile
import time
import unittest

import lab_harness

COMPARE = os.path.join(lab_harness.PROGRAMS, "polyrail-compare")


def compare(*words, **options):
    return subprocess.run([COMPARE, *words], capture_output=True, text=True, timeout=200, **options)


def comparison_labs():
    root = "/run/polyrail-lab"
    names = os.listdir(root) if os.path.isdir(root) else []
    return {name for name in names if name.startswith("cmp")}


class Compare(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.prefix = os.path.join(self.directory.name, "result")

    def result(self):
        with open(self.prefix + ".json") as file:
            return json.load(file)

    def test_every_peer_gives_right_sums_and_a_row_for_each_size(self):
        peers = ["sockets-one", "sockets-split", "sockets-spin", "mptcp"]
        for hosts in ("2", "3"):
            with self.subTest(hosts=hosts):
                done = compare(
                    *("--hosts", hosts, "--rails", "50mbit,200mbit", "--runs", "1", "--no-plot"),
                    *("--sizes", "4,20,64k,500004", "--budget", "0.02", "--out", self.prefix),
                    *("--peers", ",".join(peers)),
                )
                self.assertEqual(done.returncode, 0, done.stderr)
                ready = [peer for peer in peers if f"without {peer}" not in done.stderr]
                with open(self.prefix + ".csv", newline="") as file:
                    rows = [(row["peer"], row["bytes"]) for row in csv.DictReader(file)]
                sizes = ("4", "20", "65536", "500004")
                self.assertEqual(sorted(rows), sorted((p, size) for p in ready for size in sizes))
                self.assertTrue(all(len(line) <= 100 for line in done.stdout.splitlines()))
                shares = {each["peer"]: each["rail_shares"] for each in self.result()["launches"]}
                self.assertGreater(shares["sockets-one"][1], 0.95)  # the fastest rail
                self.assertGreater(shares["sockets-split"][0], 0.1)

    def test_a_rail_harmed_in_mid_run_is_seen_in_the_calls(self):
        done = compare(
            *("--fault", "slow", "--rails", "100mbit,100mbit", "--sizes", "1M", "--runs", "1"),
            *("--peers", "sockets-split", "--out", self.prefix),
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        (record,) = self.result()["records"]
        self.assertEqual(record["failure"], "")
        self.assertGreater(record["during_ms"], 3 * record["before_ms"])
        self.assertLess(record["after_ms"], record["during_ms"])

    def test_a_killed_comparison_leaves_no_lab(self):
        before = comparison_labs()
        words = [COMPARE, "--peers", "sockets-one", "--out", self.prefix]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        process.stderr.readline()  # the first launch is announced: the lab is up
        process.send_signal(signal.SIGKILL)
        process.communicate()
        deadline = time.monotonic() + 60
        while comparison_labs() - before and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(comparison_labs() - before, set())

    def test_mistakes_are_named_in_one_line(self):
        for words, status, text in (
            (("--rails", "fast"), 2, "not a rate: 'fast'"),
            (("--sizes", "3"), 2, "not a size: '3'"),
            (("--peers", "nobody"), 2, "no peer 'nobody'"),
            (("--runs", "0"), 2, "--runs"),
            (("--hosts", "0", "--peers", "sockets-one"), 2, "--hosts 0"),
            (("--fault", "slow", "--rails", "1gbit", "--peers", "sockets-one"), 2, "two rails"),
        ):
            with self.subTest(words=words):
                done = compare(*words, "--out", self.prefix)
                self.assertEqual(done.returncode, status, done.stderr)
                self.assertIn(text, done.stderr)
                self.assertNotIn("Traceback", done.stderr)

    def test_peers_that_are_not_there_are_named(self):
        with tempfile.TemporaryDirectory() as programs:
            lab = os.path.join(lab_harness.PROGRAMS, "polyrail-lab")
            os.symlink(os.path.realpath(lab), os.path.join(programs, "polyrail-lab"))
            done = compare("--peers", "sockets", "--programs", programs, "--out", self.prefix)
        self.assertEqual(done.returncode, 1)
        self.assertIn("without sockets-one: no peers_sockets", done.stderr)

    def test_without_root_the_status_is_3(self):
        os.chmod(self.directory.name, 0o777)
        done = compare("--peers", "sockets-one", "--out", self.prefix, user=65534)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("root", done.stderr)


if __name__ == "__main__":
    lab_harness.main()
