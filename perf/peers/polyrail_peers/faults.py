"""A rail is harmed in mid-run: how long calls take before, during and after."""

import os
import statistics
import tempfile
import threading
import time

from .collectives import ALL_REDUCE
from .errors import CompareError
from .launch import launch
from .progress import Progress
from .units import show_size

HARMED = 1  # this rail is harmed
BEFORE_S, DURING_S, AFTER_S = 3.0, 5.0, 4.0
LONGEST_S = 120
SLOW_PARTS = 10  # "slow": the rail keeps one part of so many
PAYLOAD_SHARE = 0.993


def changes(lab, fault):
    """The lab's commands that harm the rail and mend it again."""
    rail = f"rail{HARMED}"
    rate = lab.rates[HARMED]
    return {
        "slow": (
            ["set-rate", rail, f"{rate // SLOW_PARTS}bit"],
            ["set-rate", rail, f"{rate}bit"],
        ),
        "drop": (["cut", rail, "--drop"], ["mend", rail]),
        "down": (["cut", rail], ["mend", rail]),
    }[fault]


def ideal_ms(lab, size, fault=None):
    """A call's time if all rails that are left were full, without headers' share."""
    rates = list(lab.rates)
    if fault:
        rates[HARMED] = rates[HARMED] / SLOW_PARTS if fault == "slow" else 0
    moved = ALL_REDUCE.bus_bytes(size, lab.rank_count)
    return 1e3 * moved * 8 / (sum(rates) * PAYLOAD_SHARE)


def run_faults(lab, peers, fault, size, runs):
    """One record per peer and run."""
    progress = Progress(runs * len(peers))
    records = []
    for peer in peers:
        peer.prepare(lab)
    for run in range(runs):
        for peer in peers:
            progress.show(f"run {run + 1} of {runs}: {peer.name}, {fault}")
            record = {"peer": peer.name, "run": run, **_one(lab, peer, fault, size)}
            records.append(record)
            lab.end_leftovers()
    progress.end()
    return records


def _one(lab, peer, fault, size):
    harm, mend = changes(lab, fault)
    calls, moments, troubles = [], {}, []
    until_file = os.path.join(tempfile.mkdtemp(dir=lab.scratch), "end")
    begun, ended = threading.Event(), threading.Event()

    def see(record):
        if "call_us" in record:
            calls.append((record["end_s"], record["call_us"] / 1e3))
            begun.set()

    def meddle():
        begun.wait()
        for name, pause_s, words in (("harm", BEFORE_S, harm), ("mend", DURING_S, mend)):
            if ended.wait(pause_s):
                return
            asked = time.monotonic()  # the clock of the peer's own time stamps
            try:
                lab.command(*words)
            except CompareError as error:
                troubles.append(str(error))
                return
            moments[name] = (asked, time.monotonic())
        ended.wait(AFTER_S)
        open(until_file, "w").close()

    meddler = threading.Thread(target=meddle)
    meddler.start()
    # The file ends the run; the time is for peers whose launch or calls take long.
    arguments = ["--sizes", str(size), "--repeat", str(LONGEST_S), "--until", until_file]
    try:
        outcome = launch(peer.words(lab, arguments), LONGEST_S + 60, on_line=see)
    finally:
        ended.set()
        begun.set()
        meddler.join()
        lab.command("mend", f"rail{HARMED}")
        lab.command("set-rate", f"rail{HARMED}", f"{lab.rates[HARMED]}bit")
    if len(moments) < 2 and not troubles:
        troubles.append("ended before the rail was mended")
    return {"failure": outcome.failure or "; ".join(troubles), **_evaluate(calls, moments)}


def _evaluate(calls, moments):
    """Sort calls (end in seconds, length in ms) by what the rail was like meanwhile."""
    never = (float("inf"), float("inf"))
    harm_asked, harmed = moments.get("harm", never)
    mend_asked, mended = moments.get("mend", never)
    starts = [(end - length / 1e3, end, length) for end, length in calls]
    before = [length for _, end, length in starts if end <= harm_asked]
    hit = [length for start, end, length in starts if start < harmed and end > harm_asked]
    during = [length for start, end, length in starts if start >= harmed and end <= mend_asked]
    after = [length for start, end, length in starts if start >= mended]
    return {
        "before_ms": _median(before),
        "hit_ms": max(hit) if hit else None,
        "next_ms": during[0] if during else None,
        "during_calls": len(during),
        "during_ms": _median(during),
        "after_ms": _median(after[len(after) // 2 :]),
        "longest_ms": max((length for _, _, length in starts), default=None),
        "mend_s": _seconds_until_usual(starts, mended, _median(before)),
        "calls": len(calls),
    }


def _median(values):
    return statistics.median(values) if values else None


def _seconds_until_usual(starts, mended, usual):
    """How long after the mend the calls were as fast as before the harm, within a tenth."""
    for _, end, length in starts:
        if end > mended and usual and length <= 1.1 * usual:
            return end - mended
    return None


_COLUMNS = (
    ("before_ms", "before", 8),
    ("hit_ms", "call hit", 10),
    ("next_ms", "the next", 10),
    ("during_ms", "during", 9),
    ("during_calls", "calls", 7),
    ("after_ms", "after", 8),
    ("mend_s", "mended s", 10),
    ("longest_ms", "longest", 9),
)


def faults_text(records, lab, fault, size):
    lines = [
        f"rail{HARMED} {_WHAT[fault]} for {DURING_S:g} s; {show_size(size)} calls, ms each; "
        f"ideal {ideal_ms(lab, size):.0f}, harmed {ideal_ms(lab, size, fault):.0f}",
        f"  {'peer':<17}" + "".join(f"{title:>{width}}" for _, title, width in _COLUMNS),
    ]
    for record in records:
        cells = "".join(_cell(record[key], key, width) for key, _, width in _COLUMNS)
        lines.append(f"  {record['peer']:<17}{cells}  {record['failure']}"[:100].rstrip())
    lines.append(
        "  call hit: under way when the rail was harmed; mended s: until calls were as before again"
    )
    return "\n".join(lines)


_WHAT = {
    "slow": f"keeps a {SLOW_PARTS}th of its rate",
    "drop": "drops every packet",
    "down": "goes down",
}


def _cell(value, key, width):
    if value is None:
        return f"{'-':>{width}}"
    return f"{value:>{width}.2f}" if key == "mend_s" else f"{value:>{width}.0f}"
