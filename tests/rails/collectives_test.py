#!/usr/bin/env python3
"""Every collective over unlike rails between hosts, and over shared memory within them.

Looks at a clock. Rates are low, so that a busy machine does not matter, and a measurement that
fails is made once more.
"""

import json
import os
import tempfile
import unittest

import lab_harness
from lab_harness import PROGRAMS, Lab

RATES = "160mbit,40mbit"
TESTS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall",
         "alltoallv", "gather", "scatter", "scan", "sendrecv")


def rows(lab, test, *words, options=()):
    with tempfile.TemporaryDirectory() as folder:
        target = os.path.join(folder, "out.json")
        lab.run(os.path.join(PROGRAMS, f"{test}_perf"), *words, "-w", "1", "-J", target,
                options=options)
        with open(target, encoding="utf-8") as file:
            return json.load(file)["results"]


class Collectives(unittest.TestCase):
    def test_are_right_over_network_and_shared_memory_at_once(self):
        with Lab("--hosts", "2", "--rails", RATES) as lab:
            for test in TESTS:
                with self.subTest(test=test):
                    for row in rows(lab, test, "-b", "1K", "-e", "1M", "-f", "32", "-n", "2",
                                    options=("--ranks-per-host", "2")):
                        self.assertEqual(row["out_of_place"]["nwrong"], 0)
                        if row["in_place"] is not None:
                            self.assertEqual(row["in_place"]["nwrong"], 0)

    def test_use_both_rails(self):
        both = 25e6  # bytes per second of both rails
        with Lab("--hosts", "2", "--rails", RATES) as lab:
            for test in ("all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall"):
                with self.subTest(test=test):
                    for attempt in range(2):
                        row = rows(lab, test, "-b", "4M", "-e", "4M", "-n", "3")[0]
                        self.assertEqual(row["out_of_place"]["nwrong"], 0)
                        rate = row["out_of_place"]["bus_bw"] * 1e9
                        if rate > 0.85 * both:
                            break
                        self.assertEqual(attempt, 0, f"{rate / both:.2f} of both rails' rate")


if __name__ == "__main__":
    lab_harness.main()
