#!/usr/bin/env python3
"""perf/peers/compare with the peers that need no package: it runs, adds up, and cleans up."""

import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import lab_harness

sys.path.insert(0, os.path.join(lab_harness.HERE, "..", "..", "perf", "peers"))

from polyrail_peers import collectives, tables, versus  # noqa: E402

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

    def test_every_collective_gives_right_results_and_a_row_for_each_size(self):
        sizes = ("4", "20", "65536", "500004")
        done = compare(
            *("--hosts", "3", "--rails", "200mbit,800mbit", "--runs", "1", "--no-plot"),
            *("--collective", "all", "--sizes", ",".join(sizes), "--budget", "0.02"),
            *("--peers", "polyrail,sockets-one", "--out", self.prefix),
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("sockets-one has only all_reduce: not in all_gather", done.stderr)
        with open(self.prefix + ".csv", newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["peer"] == "polyrail"]
        found = sorted((row["collective"], row["bytes"]) for row in rows)
        names = collectives.COLLECTIVES
        self.assertEqual(found, sorted((name, size) for name in names for size in sizes))
        self.assertTrue(all(len(line) <= 100 for line in done.stdout.splitlines()))
        for collective in collectives.COLLECTIVES.values():
            self.assertIn(f"{collective.title}: 3 hosts", done.stdout)

    def test_two_ranks_in_one_host_have_every_collective(self):
        done = compare(
            *("--intra", "--collective", "all", "--sizes", "8,64k", "--runs", "1", "--no-plot"),
            *("--budget", "0.02", "--peers", "polyrail,polyrail-shared", "--out", self.prefix),
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.result()["measurements"]), 2 * 2 * len(collectives.COLLECTIVES))

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
            (("--collective", "sum"), 2, "no collective 'sum'"),
            (("--collective", "gather", "--fault", "slow"), 2, "--fault is for all_reduce"),
            (("--collective", "gather", "--peers", "sockets"), 1, "none of these peers has gather"),
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


def measured(peer, collective, **us_of_size):
    """A row of a summary, as far as versus() looks."""
    sizes = {int(size[1:]): {"mean_us": {"median": us}} for size, us in us_of_size.items()}
    return {"peer": peer, "collective": collective, "sizes": sizes}


class Versus(unittest.TestCase):
    SUMMARY = [
        measured("polyrail", "gather", b8=10, b1024=20),
        measured("openmpi-one", "gather", b8=8, b1024=60),
        measured("openmpi-all", "gather", b8=9),
        measured("mpich-all", "gather", b8=1, b1024=1),
        measured("polyrail", "scatter", b8=10, b1024=20),
        measured("openmpi-all", "scatter", b8=10),
    ]

    def test_the_rival_is_the_fastest_open_mpi_of_the_same_collective_and_size(self):
        rows = versus.versus(self.SUMMARY)
        found = [(row["collective"], row["bytes"], row["rival"], row["ratio"]) for row in rows]
        self.assertEqual(
            found,
            [
                ("gather", 8, "openmpi-one", 0.8),
                ("gather", 1024, "openmpi-one", 3),
                ("scatter", 8, "openmpi-all", 1),
            ],
        )

    def test_rows_where_polyrail_is_not_faster_stand_out(self):
        lines = tables.versus_text(versus.versus(self.SUMMARY)).splitlines()
        self.assertEqual([line for line in lines if "x3.00!" in line], [])
        self.assertEqual([line.count("!") for line in lines if "x0.80!" in line], [1])
        begin = lines.index("! polyrail is not faster in 2 of 3:")
        self.assertEqual(
            [line.split()[:1] for line in lines[begin + 1 : begin + 3]], [["gather"], ["scatter"]]
        )

    def test_without_open_mpi_there_is_no_table(self):
        self.assertEqual(versus.versus(self.SUMMARY[:1]), [])


class BusBytes(unittest.TestCase):
    def test_factors_are_those_of_nccl_tests(self):
        found = {each.name: each.bus_bytes(400, 4) for each in collectives.COLLECTIVES.values()}
        parts = ("all_gather", "reduce_scatter", "all_to_all", "gather", "scatter")
        whole = {"all_reduce": 600, "broadcast": 400, "reduce": 400}
        self.assertEqual(found, {**whole, **dict.fromkeys(parts, 300)})


if __name__ == "__main__":
    lab_harness.main()
