"""One launch of one peer: start it, read its lines of JSON, and account for the machine."""

import contextlib
import dataclasses
import json
import os
import resource
import signal
import subprocess
import threading
import time


@dataclasses.dataclass
class Outcome:
    records: list  # what the peer printed, line by line
    failure: str  # empty if all went well
    seconds: float
    others: float  # processors that other programs took meanwhile


def launch(words, timeout_s, environment=None, on_line=None):
    """Run a command; `on_line(record)` sees each line of JSON as it comes."""
    before = _busy_s(), _children_s(), time.monotonic()
    process = subprocess.Popen(
        words,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    errors = []
    reader = threading.Thread(target=lambda: errors.append(process.stderr.read()))
    reader.start()
    timer = threading.Timer(timeout_s, _end_group, [process])
    timer.start()
    records = []
    try:
        for line in process.stdout:
            with contextlib.suppress(ValueError):
                record = json.loads(line)
                if isinstance(record, dict):
                    records.append(record)
                    if on_line:
                        on_line(record)
        process.wait()
        timed_out = not timer.is_alive()
    finally:
        timer.cancel()
        _end_group(process)
        process.wait()
        reader.join()
    after = _busy_s(), _children_s(), time.monotonic()
    seconds = after[2] - before[2]
    # Ranks that an MPI launcher put on other hosts are not our descendants; they tell their time.
    own = max([after[1] - before[1], *(record.get("process_s", 0) for record in records)])
    return Outcome(
        records=records,
        failure=_failure(process.returncode, timed_out, timeout_s, b"".join(errors), records),
        seconds=seconds,
        others=max(0.0, (after[0] - before[0] - own) / seconds),
    )


def _failure(status, timed_out, timeout_s, errors, records):
    if timed_out:
        return f"timed out after {timeout_s:.0f} s"
    if status != 0:
        lines = [line for line in errors.decode(errors="replace").splitlines() if line.strip()]
        ours = [line for line in lines if line.startswith(("peers_", "["))]
        return f"exit status {status}: {(ours or lines or ['no message'])[0].strip()}"
    if any(record.get("wrong", 0) for record in records):
        return "wrong results"
    return ""


def _end_group(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _busy_s():
    """User and system time of all processors, without interrupts."""
    with open("/proc/stat") as file:
        user, nice, system = (int(word) for word in file.readline().split()[1:4])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


def _children_s():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def wait_until_quiet(limit_s, processors=0.15):
    """Wait, but not longer than limit_s, until other programs take little of the machine."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        before, start = _busy_s(), time.monotonic()
        time.sleep(min(1.0, limit_s))
        if (_busy_s() - before) / (time.monotonic() - start) <= processors:
            return
