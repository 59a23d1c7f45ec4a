#!/usr/bin/env python3
"""One process per rank: the README's example, the perf tests, and what goes wrong at the start."""

import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import unittest

BIN = os.environ["PROGRAMS"]
TIMEOUT_S = 120
ROOTED = ("broadcast", "reduce", "gather", "scatter")
PERF_TESTS = (*ROOTED, "all_reduce", "all_gather", "reduce_scatter", "alltoall", "alltoallv", "scan",
              "barrier", "sendrecv")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(program, rank, size, port, key, **extra):
    env = {k: v for k, v in os.environ.items() if not k.startswith("POLYRAIL_")}
    env.update(RANK=str(rank), WORLD_SIZE=str(size), LOCAL_RANK=str(rank),
               MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    if key:
        env["POLYRAIL_KEY"] = key
    env.update(extra)
    return subprocess.Popen(program, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True)


def run_all(program, size, keys=None, sizes=None, ranks=None, **extra):
    """Outputs and exit codes of all ranks."""
    port = free_port()
    key = secrets.token_hex(32)
    processes = [start(program, ranks[i] if ranks else i, sizes[i] if sizes else size, port,
                       keys[i] if keys else key, **extra) for i in range(size)]
    results = []
    for process in processes:
        try:
            output, _ = process.communicate(timeout=TIMEOUT_S)
        finally:
            process.kill()
        results.append((process.returncode, output))
    return results


class Processes(unittest.TestCase):
    def assert_all_fail_with(self, results, *words):
        for code, output in results:
            self.assertNotEqual(code, 0, output)
            for word in words:
                self.assertIn(word, output)

    def test_the_example_of_the_readme_runs(self):
        for code, output in run_all([f"{BIN}/readme_example"], 3):
            self.assertEqual(code, 0, output)
            self.assertIn("done", output)

    def test_all_reduce_perf_over_each_transport(self):
        for transports in ("shm", "tcp", "loopback,shm,tcp"):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "out.json")
                results = run_all([f"{BIN}/all_reduce_perf", "-b", "8", "-e", "1M", "-f", "16",
                                   "-n", "5", "-I", "1", "-J", path], 2,
                                  POLYRAIL_TRANSPORTS=transports, POLYRAIL_CALIBRATION_MS="40")
                for code, output in results:
                    self.assertEqual(code, 0, output)
                with open(path, encoding="utf-8") as file:
                    report = json.load(file)
            self.assertTrue(report["out_of_bounds"]["okay"])
            self.assertEqual([row["size"] for row in report["results"]],
                             [8, 128, 2048, 32768, 524288])
            for row in report["results"]:
                self.assertEqual(row["out_of_place"]["nwrong"], 0)
                self.assertEqual(len(row["out_of_place"]["iter_times"]), 5)
                self.assertGreater(row["limit_bus_bw"], 0)

    def test_without_a_key_the_error_shows_how_to_make_one(self):
        results = run_all([f"{BIN}/readme_example"], 2, keys=[None, None])
        self.assert_all_fail_with(results, "POLYRAIL_KEY")

    def test_a_wrong_key_never_joins(self):
        results = run_all([f"{BIN}/readme_example"], 2,
                          keys=[secrets.token_hex(32), secrets.token_hex(32)],
                          POLYRAIL_START_TIMEOUT_MS="1500")
        for code, output in results:
            self.assertNotEqual(code, 0, output)

    def test_a_rank_given_twice_is_an_error_on_all(self):
        results = run_all([f"{BIN}/readme_example"], 3, ranks=[0, 1, 1],
                          POLYRAIL_START_TIMEOUT_MS="5000")
        self.assert_all_fail_with(results, "twice")

    def test_sizes_that_differ_are_an_error_on_all(self):
        results = run_all([f"{BIN}/readme_example"], 2, sizes=[2, 3],
                          POLYRAIL_START_TIMEOUT_MS="5000")
        self.assert_all_fail_with(results, "2", "3")

    def test_nobody_listening_names_the_address(self):
        port = free_port()
        process = start([f"{BIN}/readme_example"], 1, 2, port, secrets.token_hex(32),
                        POLYRAIL_START_TIMEOUT_MS="800")
        output, _ = process.communicate(timeout=TIMEOUT_S)
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("127.0.0.1", output)

    def test_a_wrong_option_is_refused_with_its_name(self):
        process = start([f"{BIN}/readme_example"], 0, 1, free_port(), secrets.token_hex(32),
                        POLYRAIL_SPINN_US="1")
        output, _ = process.communicate(timeout=TIMEOUT_S)
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("spin_us", output)

    def test_perf_refuses_wrong_arguments(self):
        for arguments in (["-b", "12X"], ["-o", "median"], ["-d", "text"], ["-b", "2M", "-e", "1M"],
                          ["--nonsense"], ["-n", "0"]):
            done = subprocess.run([f"{BIN}/all_reduce_perf", *arguments], capture_output=True,
                                  text=True, timeout=TIMEOUT_S, check=False)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertTrue(done.stderr + done.stdout, arguments)

    def perf(self, test, *arguments, code=0):
        """What a perf test prints with ranks as threads, and its JSON."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out.json")
            done = subprocess.run([f"{BIN}/{test}_perf", *arguments, "-J", path],
                                  capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
            if code != 0:
                return done.stderr, None
            with open(path, encoding="utf-8") as file:
                return done.stdout, json.load(file)

    def test_each_perf_test_finds_results_right(self):
        for test in PERF_TESTS:
            for ranks in (2, 3):
                with self.subTest(test=test, ranks=ranks):
                    printed, report = self.perf(test, "-t", str(ranks), "-b", "8", "-e", "96K",
                                                "-f", "64", "-n", "2", "-r", "all")
                    self.assertIn(" 0 OK", printed)
                    self.assertEqual(report["test"], f"{test}_perf")
                    self.assertEqual({len(line) for line in printed.splitlines()
                                      if line.startswith(" ")}, {118})
                    roots = [-1]
                    if test in ROOTED:
                        roots = list(range(ranks))
                    self.assertEqual(sorted({row["root"] for row in report["results"]}), roots)
                    for row in report["results"]:
                        self.assertEqual(row["out_of_place"]["nwrong"], 0)
                        if test in ("barrier", "sendrecv"):
                            self.assertIsNone(row["in_place"])
                        else:
                            self.assertEqual(row["in_place"]["nwrong"], 0)

    def test_perf_sizes_and_bus_bandwidths_are_those_of_nccl_tests(self):
        for test, parts, factor in (("all_reduce", 1, 4 / 3), ("all_gather", 3, 2 / 3),
                                    ("reduce_scatter", 3, 2 / 3), ("alltoall", 3, 2 / 3),
                                    ("gather", 3, 2 / 3), ("scatter", 3, 2 / 3),
                                    ("broadcast", 1, 1), ("reduce", 1, 1)):
            with self.subTest(test=test):
                _, report = self.perf(test, "-t", "3", "-b", "1200", "-e", "1200", "-n", "2")
                row = report["results"][0]
                self.assertEqual((row["size"], row["count"]), (1200, 300 // parts))
                timing = row["out_of_place"]
                self.assertAlmostEqual(timing["alg_bw"], 1.2 / timing["time"])
                self.assertAlmostEqual(timing["bus_bw"], timing["alg_bw"] * factor)

    def test_perf_knows_every_type_and_operator(self):
        for test in ("all_reduce", "scan"):
            _, report = self.perf(test, "-t", "3", "-b", "2K", "-e", "2K", "-n", "1", "-d", "all",
                                  "-o", "all")
            self.assertTrue(report["out_of_bounds"]["okay"])
            self.assertGreater(len({(r["type"], r["redop"]) for r in report["results"]}), 150)
        printed, report = self.perf("all_gather", "-t", "2", "-b", "2K", "-e", "2K", "-n", "1",
                                    "-d", "all", "-o", "all")
        self.assertEqual(len(report["results"]), 22)
        self.assertLessEqual(max(len(line) for line in printed.splitlines()
                                 if "nThread" not in line), 118)

    def test_perf_in_the_manner_of_osu(self):
        for test, last in (("all_gather", 1024), ("broadcast", 2048), ("barrier", 0)):
            printed, _ = self.perf(test, "-t", "2", "-b", "2K", "-e", "2K", "-n", "3", "--style",
                                   "osu")
            lines = printed.splitlines()
            self.assertEqual(lines[:2], [f"# Polyrail {test} latency",
                                         "# Size       Avg Latency(us)"])
            size, latency = lines[2].split()
            self.assertEqual(int(size), last)
            self.assertGreater(float(latency), 0)
            self.assertEqual(len(lines), 3)

    def test_perf_of_uneven_parts(self):
        for test in ("all_gather", "reduce_scatter"):
            for fraction in ("0", "0.9", "1"):
                printed, report = self.perf(test, "-t", "3", "-b", "4", "-e", "40K", "-f", "100",
                                            "-n", "2", "--uneven", fraction)
                self.assertIn(f"rank 0 holds {fraction} of the vector", printed)
                self.assertTrue(report["out_of_bounds"]["okay"])
                self.assertEqual([row["size"] for row in report["results"]], [4, 400, 40000])
        for skew in ("0", "1", "9"):
            printed, report = self.perf("alltoallv", "-t", "3", "-b", "9000", "-e", "9000", "-n",
                                        "2", "--skew", skew, "--seed", "5")
            self.assertIn(f"counts drawn with skew {skew}, seed 5", printed)
            self.assertTrue(report["out_of_bounds"]["okay"])
            self.assertEqual((report["skew"], report["seed"]), (float(skew), 5))

    def test_each_perf_test_refuses_wrong_arguments(self):
        for test, arguments, word in (("broadcast", ["-t", "2", "-r", "2"], "--root"),
                                      ("broadcast", ["-r", "first"], "--root"),
                                      ("broadcast", ["--uneven", "0.5"], "--uneven"),
                                      ("all_gather", ["--uneven", "2"], "--uneven"),
                                      ("alltoall", ["--skew", "1"], "--skew"),
                                      ("alltoallv", ["--skew", "-1"], "--skew"),
                                      ("scan", ["-o", "avg"], "scan has no avg"),
                                      ("reduce", ["-o", "band", "-d", "float"], "no band of float"),
                                      ("barrier", ["--style", "mpi"], "--style")):
            stderr, _ = self.perf(test, *arguments, code=2)
            self.assertIn(word, stderr, arguments)

    def test_perf_over_processes(self):
        for test in ("alltoallv", "barrier", "scatter"):
            for code, output in run_all([f"{BIN}/{test}_perf", "-b", "64K", "-e", "64K", "-n", "3"],
                                        3, POLYRAIL_CALIBRATION_MS="40"):
                self.assertEqual(code, 0, output)

    def test_info_prints_every_option_as_json(self):
        done = subprocess.run([f"{BIN}/polyrail-info", "--json"], capture_output=True, text=True,
                              timeout=TIMEOUT_S, check=True)
        info = json.loads(done.stdout)
        self.assertIn("spin_us", [row["name"] for row in info["options"]])
        self.assertTrue(any(t["name"] == "tcp" and t["built"] for t in info["transports"]))
        plain = subprocess.run([f"{BIN}/polyrail-info"], capture_output=True, text=True,
                               timeout=TIMEOUT_S, check=True).stdout
        self.assertLessEqual(max(map(len, plain.splitlines())), 100)

    def test_info_names_a_transport_that_is_not_there(self):
        done = subprocess.run([f"{BIN}/polyrail-info"], capture_output=True, text=True,
                              timeout=TIMEOUT_S, env={**os.environ, "POLYRAIL_TRANSPORTS": "tcp,udp"})
        self.assertEqual(done.returncode, 2)
        self.assertIn("there is no transport 'udp' in this build", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
