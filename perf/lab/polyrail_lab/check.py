"""Measure with iperf3 whether the rails reach their rates."""

import json
import os
import shutil
import subprocess
import time

from .errors import CannotError, LabError
from .launch import spawn
from .wires import wire_rate

FIRST_PORT = 5201


def check(lab, seconds, needed_percent):
    """Each rail alone, then all at once around the ring of hosts; False if one is too slow."""
    if not shutil.which("iperf3"):
        raise CannotError("check needs iperf3 (Debian: apt-get install iperf3)")
    if lab.spec.hosts < 2:
        raise LabError("check needs two hosts")
    print(f"{'stream':<22}{'rate Mbit/s':>12}{'measured':>12}{'percent':>9}{'resent':>8}")
    worst = 100.0
    for rail in lab.rails():
        worst = min(worst, *_show(lab, _streams(lab, [(0, 1, rail)], seconds)))
    ring = [(host, (host + 1) % lab.spec.hosts, r) for host in lab.hosts() for r in lab.rails()]
    before = _processor_times()
    found = _streams(lab, ring, seconds)
    after = _processor_times()
    print(f"all {len(ring)} at once:")
    worst = min(worst, *_show(lab, found))
    total = sum(rate for _, rate, _ in found)
    ideal = sum(_rate(lab, stream) for stream in ring)
    busy = 100 * (after[0] - before[0]) / max(1, after[1] - before[1])
    print(
        f"{'sum':<22}{ideal / 1e6:>12.1f}{total / 1e6:>12.1f}{100 * total / ideal:>9.1f}"
        f"   processors {busy:.0f} % busy"
    )
    return worst >= needed_percent


def _rate(lab, stream):
    """A stream is as fast as the sender's uplink and the receiver's downlink allow."""
    source, target, rail = stream
    return min(wire_rate(lab, source, rail, "out"), wire_rate(lab, target, rail, "in"))


def _show(lab, found):
    percents = []
    for (source, target, rail), rate, resent in found:
        want = _rate(lab, (source, target, rail))
        percents.append(100 * rate / want)
        name = f"h{source} -> h{target} rail{rail}"
        print(
            f"{name:<22}{want / 1e6:>12.1f}{rate / 1e6:>12.1f}{percents[-1]:>9.1f}{resent:>8}",
            flush=True,
        )
    return percents


def _streams(lab, streams, seconds):
    """Run TCP streams (source, target, rail) at once; (stream, bits per second, resent) of each."""
    servers, clients = [], []
    environment = dict(os.environ)
    try:
        for index, (_, target, rail) in enumerate(streams):
            words = ["iperf3", "-s", "-1", "-B", lab.address(target, rail), "-p"]
            words.append(str(FIRST_PORT + index))
            servers.append(spawn(lab, target, words, environment, stdout=subprocess.DEVNULL))
        _wait_for_listeners(lab, streams)
        for index, (source, target, rail) in enumerate(streams):
            words = ["iperf3", "-c", lab.address(target, rail), "-B", lab.address(source, rail)]
            words += ["-p", str(FIRST_PORT + index), "-t", f"{seconds:g}", "-O", "0.5", "-J"]
            clients.append(spawn(lab, source, words, environment, stdout=subprocess.PIPE))
        return [
            (stream, *_result(client, stream, seconds)) for stream, client in zip(streams, clients)
        ]
    finally:
        for process in servers + clients:
            if process.poll() is None:
                process.kill()
            process.wait()


def _result(client, stream, seconds):
    name = "h{} -> h{} rail{}".format(*stream)
    try:
        text, _ = client.communicate(timeout=seconds + 20)
        record = json.loads(text)
    except (subprocess.TimeoutExpired, ValueError):
        raise LabError(f"iperf3 {name} gave no result") from None
    if "error" in record:
        raise LabError(f"iperf3 {name}: {record['error']}")
    end = record["end"]
    return end["sum_received"]["bits_per_second"], end["sum_sent"].get("retransmits", 0)


def _wait_for_listeners(lab, streams, patience_s=5.0):
    deadline = time.monotonic() + patience_s
    for index, (_, target, _) in enumerate(streams):
        words = ["ss", "-Hltn", f"sport = :{FIRST_PORT + index}"]
        while True:
            probe = spawn(lab, target, words, dict(os.environ), stdout=subprocess.PIPE)
            if probe.communicate()[0].strip():
                break
            if time.monotonic() > deadline:
                raise LabError(f"iperf3 does not listen in h{target}")
            time.sleep(0.05)


def _processor_times():
    """(busy, all) ticks of all processors so far."""
    with open("/proc/stat") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)
