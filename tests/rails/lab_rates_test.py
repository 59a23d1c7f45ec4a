#!/usr/bin/env python3
"""polyrail-lab: rails carry their rate, in each direction, also after a change and under fan-in.

The only tests here that look at a clock. Rates are low, so that a busy machine does not matter, and
a measurement that fails is made once more.
"""

import unittest

import lab_harness
from lab_harness import Lab

# MTU 9000: of 9014 bytes on the wire 8948 are payload (IP and TCP headers with time stamps).
PAYLOAD_SHARE = 8948 / 9014
TOLERANCE = 0.03

# Receives from argv[2] senders at once; prints the bytes per second of the middle of the stream.
RECEIVER = """
import selectors, socket, sys, time
server = socket.create_server((sys.argv[1], 7000)); print('ready', flush=True)
selector = selectors.DefaultSelector()
for _ in range(int(sys.argv[2])):
    stream, _ = server.accept(); selector.register(stream, selectors.EVENT_READ)
buffer, marks, got = bytearray(1 << 18), [], 0
while selector.get_map():
    for key, _ in selector.select():
        count = key.fileobj.recv_into(buffer)
        if not count: selector.unregister(key.fileobj)
        got += count
    marks.append((time.monotonic(), got))
first, last = marks[0][0], marks[-1][0]
span = [m for m in marks if first + 0.2 <= m[0] <= last - 0.1]
print((span[-1][1] - span[0][1]) / (span[-1][0] - span[0][0]))
"""
SENDER = """
import socket, sys, time
stream = socket.create_connection((sys.argv[1], 7000), source_address=(sys.argv[2], 0))
data, end = bytes(1 << 16), time.monotonic() + 1.2
while time.monotonic() < end: stream.sendall(data)
"""


def address(host, rail):
    return f"10.77.{rail}.{int(host[1:]) + 1}"


def measured(lab, sources, target, rail):
    """Bits per second that TCP from all sources to one target gets over a rail."""
    receiver = lab.start(target, RECEIVER, address(target, rail), str(len(sources)))
    receiver.stdout.readline()
    senders = [
        lab.start(source, SENDER, address(target, rail), address(source, rail))
        for source in sources
    ]
    rate = 8 * float(receiver.communicate()[0])
    for sender in senders:
        sender.communicate()
    return rate


class Rates(unittest.TestCase):
    def expect(self, lab, sources, target, rail, bits):
        want = bits * PAYLOAD_SHARE
        for attempt in range(2):
            rate = measured(lab, sources, target, rail)
            if abs(rate - want) <= TOLERANCE * want:
                return
        self.fail(
            f"{sources} to {target}, rail{rail}: {rate / 1e6:.1f} Mbit/s, not {want / 1e6:.1f}"
        )

    def test_are_those_asked_for_and_follow_changes(self):
        with Lab("--rails", "300mbit,80mbit") as lab:
            self.expect(lab, ["h0"], "h1", 0, 300e6)
            self.expect(lab, ["h0"], "h1", 1, 80e6)
            lab.must("set-rate", "rail0", "150mbit", "--dir", "out", "--host", "h1")
            self.expect(lab, ["h1"], "h0", 0, 150e6)
            self.expect(lab, ["h0"], "h1", 0, 300e6)

    def test_of_a_host_with_slower_links_hold_both_ways(self):
        for hosts in ("2", "3"):
            words = ("--hosts", hosts, "--rails", "300mbit", "--unequal", "h1:rail0=100mbit")
            with self.subTest(hosts=hosts), Lab(*words) as lab:
                self.expect(lab, ["h0"], "h1", 0, 100e6)
                self.expect(lab, ["h1"], "h0", 0, 100e6)

    def test_into_one_host_are_shared_by_its_senders(self):
        with Lab("--hosts", "3", "--rails", "200mbit") as lab:
            self.expect(lab, ["h0", "h1"], "h2", 0, 200e6)

    def test_are_counted_at_the_queues(self):
        with Lab("--rails", "200mbit,200mbit") as lab:
            before = lab.link("h0", "rail0")["out"]["bytes"]
            self.expect(lab, ["h0"], "h1", 0, 200e6)
            self.assertGreater(lab.link("h0", "rail0")["out"]["bytes"] - before, 20e6)
            self.assertLess(lab.link("h0", "rail1")["out"]["bytes"], 1e5)


if __name__ == "__main__":
    lab_harness.main()
