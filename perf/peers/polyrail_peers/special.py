"""Peers that bring a timing loop of their own: all_reduce_perf, and UCX's ucx_perftest."""

import json
import os
import re
import shutil
import subprocess
import time

from .collectives import ALL_REDUCE
from .launch import Outcome, launch
from .peers import INSTALL, ONLY_ALL_REDUCE
from .sweep import rail_limit


class AllReducePerf:
    """Polyrail's own perf tool; shows whether the shared loop measures as it does."""

    name = "polyrail-perf"
    what = "Polyrail's all_reduce_perf"
    collectives = ONLY_ALL_REDUCE

    def missing(self, programs):
        there = os.path.exists(os.path.join(programs, "all_reduce_perf"))
        return "" if there else "no all_reduce_perf (build it)"

    def prepare(self, lab):
        pass

    def run(self, lab, plan, timeout_s):
        """A launch per size, since each size wants another number of calls."""
        total = Outcome([], "", 0.0, 0.0)
        for size in plan.sizes:
            path = os.path.join(lab.scratch, "all_reduce_perf.json")
            ideal_s = ALL_REDUCE.bus_bytes(size, lab.rank_count) / rail_limit(lab) + 20e-6
            calls = max(2, min(5000, int(plan.budget_s / ideal_s)))
            words = [lab.program("all_reduce_perf"), "-b", str(size), "-e", str(size)]
            words += ["-n", str(calls), "-w", str(max(1, calls // 5)), "-c", "1", "-J", path]
            outcome = launch(lab.run_words(*words), timeout_s)
            total.seconds += outcome.seconds
            total.others = max(total.others, outcome.others)
            if outcome.failure:
                total.failure = outcome.failure
                break
            with open(path) as file:
                found = json.load(file)["results"][0]["out_of_place"]
            total.records.append(
                {
                    "bytes": size,
                    "calls": calls,
                    "mean_us": float(found["time"]),
                    "wrong": int(found["nwrong"]),
                }
            )
        return total


class UcxPerftest:
    """Messages one way between two hosts: what UCX makes of the rails without a collective.

    One way at a rate is what an all-reduce of two ranks needs both ways at once.
    """

    name = "ucx-perftest"
    what = "UCX tag messages, one way"
    collectives = ONLY_ALL_REDUCE  # what its rate compares with

    def missing(self, programs):
        return "" if shutil.which("ucx_perftest") else f"no ucx_perftest ({INSTALL})"

    def prepare(self, lab):
        pass

    def run(self, lab, plan, timeout_s):
        total = Outcome([], "", 0.0, 0.0)
        if lab.rank_count != 2 or lab.hosts != 2:
            total.failure = "needs two hosts with a rank each"
            return total
        for size in plan.sizes:
            outcome = self._run_size(lab, size, plan.budget_s, timeout_s)
            total.seconds += outcome.seconds
            total.others = max(total.others, outcome.others)
            total.records += outcome.records
            if outcome.failure:
                total.failure = f"{size} bytes: {outcome.failure}"
                break
        return total

    def _run_size(self, lab, size, budget_s, timeout_s):
        environment = {
            "UCX_TLS": "tcp,self",
            "UCX_NET_DEVICES": ",".join(f"rail{rail}" for rail in lab.rails),
            "UCX_MAX_RNDV_RAILS": str(len(lab.rails)),
        }
        is_short = size < 64 << 10
        calls = 2000 if is_short else max(4, min(500, int(budget_s / (size / rail_limit(lab)))))
        test = ["-t", "tag_lat" if is_short else "tag_bw", "-s", str(size), "-n", str(calls)]
        server = subprocess.Popen(
            lab.exec_words(1, "ucx_perftest"),
            env={**os.environ, **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _wait_for_listener(lab, 1, 13337)
            words = lab.exec_words(0, "ucx_perftest", lab.address(1, lab.rails[0]), *test)
            start = time.monotonic()
            done = subprocess.run(
                [*words, "-w", str(min(calls, 20)), "-f"],
                env={**os.environ, **environment},
                capture_output=True,
                text=True,
                timeout=timeout_s,
            )
            seconds = time.monotonic() - start
        except subprocess.TimeoutExpired:
            return Outcome([], f"timed out after {timeout_s:.0f} s", timeout_s, 0.0)
        finally:
            server.kill()
            server.wait()
        numbers = [line.split() for line in done.stdout.splitlines() if re.match(r"[ \d.]+$", line)]
        numbers = [words for words in numbers if len(words) == 8]
        if done.returncode != 0 or not numbers:
            return Outcome([], f"exit status {done.returncode}", seconds, 0.0)
        # iterations; overhead median, average, overall in us; then rates derived from it.
        us = float(numbers[-1][3])
        record = {"bytes": size, "calls": calls, "mean_us": us, "median_us": float(numbers[-1][1])}
        return Outcome([record], "", seconds, 0.0)


def _wait_for_listener(lab, host, port, patience_s=10.0):
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        if lab.command("exec", f"h{host}", "--", "ss", "-Hltn", f"sport = :{port}").strip():
            return
        time.sleep(0.05)
