#!/usr/bin/env python3
"""polyrail-lab: what it promises about hosts, runs, changes, failures and what it leaves behind."""

import os
import signal
import subprocess
import time
import unittest

import lab_harness
from lab_harness import LAB_PROGRAM, Lab, lab_command


def traces(name):
    """Whatever of a lab is left on this machine."""
    namespaces = _output("ip", "netns", "list").splitlines()
    found = [line for line in namespaces if f"prlab-{name}-" in line]
    with open("/proc/self/mountinfo") as file:
        found += [line for line in file if f"/polyrail-lab/{name}" in line]
    if os.path.exists(f"/run/polyrail-lab/{name}"):
        found.append(f"/run/polyrail-lab/{name}")
    return found


def _output(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def wait_until(condition, patience_s=60):
    """Poll for something that another process brings about."""
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Hosts(unittest.TestCase):
    def test_look_like_different_machines(self):
        with Lab("--hosts", "3") as lab:
            show = (
                "hostname; cat /proc/sys/kernel/random/boot_id; touch /dev/shm/$RANK;"
                "ls /dev/shm | tr '\\n' ' '; echo; ls /sys/class/net | tr '\\n' ' '; echo;"
                "getent hosts h2"
            )
            ranks = lab.run("sh", "-c", show)
        self.assertEqual([lines[0] for lines in ranks], ["h0", "h1", "h2"])
        self.assertEqual(len({lines[1] for lines in ranks}), 3)
        self.assertEqual([lines[2].split() for lines in ranks], [["0"], ["1"], ["2"]])
        for lines in ranks:
            self.assertEqual(lines[3].split(), ["lo", "rail0", "rail1"])
            self.assertEqual(lines[4].split()[0], "10.77.0.3")

    def test_can_be_entered_from_inside_a_host(self):
        with Lab() as lab:
            for target in ("h0", "h1"):
                inner = (LAB_PROGRAM, "rsh", "-l", "root", target, "hostname; echo $LAB_HOST")
                self.assertEqual(lab.must("exec", "h0", "--", *inner).split(), [target, target[1:]])

    def test_have_ipv6_addresses_only_if_asked_for(self):
        for words, count in ((), 0), (("--ipv6",), 1):
            with self.subTest(words), Lab(*words) as lab:
                text = lab.must("exec", "h1", "--", "ip", "-6", "addr")
                self.assertEqual(text.count("fd77:0:0:1::2/64"), count)

    def test_two_labs_do_not_meet(self):
        with Lab("--rails", "1gbit") as first, Lab("--rails", "100mbit,100mbit") as second:
            self.assertEqual(first.link("h1", "rail0")["out"]["rate_bits_per_s"], 10**9)
            self.assertEqual(second.link("h1", "rail1")["out"]["rate_bits_per_s"], 10**8)


class Runs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = cls.enterClassContext(Lab())

    def test_set_the_variables_of_ranks(self):
        show = (
            "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $MASTER_ADDR;"
            "echo $POLYRAIL_KEY $MASTER_PORT; env | grep -c ^POLYRAIL_"
        )
        ranks = self.lab.run("sh", "-c", show, options=("--ranks-per-host", "2"))
        again = self.lab.run("sh", "-c", show)
        expected = [f"{rank} 4 {rank % 2} 2 10.77.0.1" for rank in range(4)]
        self.assertEqual([lines[0] for lines in ranks], expected)
        self.assertEqual(len({lines[1] for lines in ranks}), 1)
        self.assertRegex(ranks[0][1], "^[0-9a-f]{64} [0-9]+$")
        self.assertEqual(ranks[0][2], "1")
        self.assertNotEqual(ranks[0][1], again[0][1])

    def test_end_with_the_status_of_the_first_rank_that_failed(self):
        late = "test $RANK = 0 && exit 7; sleep 30"
        done = self.lab.command("run", "--grace", "0", "--", "sh", "-c", late)
        self.assertEqual(done.returncode, 7)
        self.assertIn("rank 0: exit status 7", done.stderr)
        done = self.lab.command("run", "--", "sh", "-c", "kill -9 $$")
        self.assertEqual(done.returncode, 128 + 9)

    def test_end_with_124_when_time_is_up(self):
        done = self.lab.command("run", "--timeout", "0.3", "--", "sleep", "60")
        self.assertEqual(done.returncode, 124)
        self.assertIn("timed out", done.stderr)

    def test_copy_output_and_errors_line_by_line(self):
        done = self.lab.command("run", "--", "sh", "-c", "printf 'a b\\nend'; echo e >&2")
        expected = ["[0] a b", "[0] end", "[1] a b", "[1] end"]
        self.assertEqual(sorted(done.stdout.splitlines()), expected)
        self.assertEqual(sorted(done.stderr.splitlines()), ["[0] e", "[1] e"])
        plain = self.lab.must("run", "--no-prefix", "--on", "h1", "--", "hostname")
        self.assertEqual(plain, "h1\n")

    def test_change_rails_at_the_given_times(self):
        state = "/sys/class/net/rail1/operstate"
        wait = f"until grep -q down {state}; do sleep 0.02; done; echo seen"
        changes = ("--at", "0.1:set-rate rail0 300mbit", "--at", "0.2:cut rail1")
        self.assertEqual(self.lab.run("sh", "-c", wait, options=changes), [["seen"], ["seen"]])
        self.assertEqual(self.lab.link("h0", "rail0")["out"]["rate_bits_per_s"], 3 * 10**8)


class Changes(unittest.TestCase):
    DATAGRAM_OUT = (
        "import socket, sys\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "s.sendto(b'x', (sys.argv[1], 9000))"
    )
    DATAGRAM_IN = (
        "import socket, sys\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "s.bind((sys.argv[1], 9000)); s.settimeout(float(sys.argv[2]))\n"
        "print('ready', flush=True)\n"
        "try: s.recv(9); print('came')\n"
        "except TimeoutError: print('lost')"
    )

    @classmethod
    def setUpClass(cls):
        """Direct cables, and switches."""
        cls.labs = [cls.enterClassContext(Lab("--hosts", hosts)) for hosts in ("2", "3")]

    def datagram(self, lab, source, target, patience_s):
        """What becomes of one datagram over rail0."""
        address = f"10.77.0.{int(target[1:]) + 1}"
        receiver = lab.start(target, self.DATAGRAM_IN, address, str(patience_s))
        receiver.stdout.readline()
        lab.python(source, self.DATAGRAM_OUT, address)
        return receiver.communicate()[0].strip()

    def test_dropping_one_way_leaves_the_other_way_alone(self):
        for lab in self.labs:
            with self.subTest(lab.up_words):
                self.assertEqual(self.datagram(lab, "h0", "h1", 20), "came")
                lab.must("cut", "rail0", "--drop", "--dir", "out", "--host", "h0")
                self.assertEqual(self.datagram(lab, "h0", "h1", 0.3), "lost")
                self.assertEqual(self.datagram(lab, "h1", "h0", 20), "came")
                self.assertEqual(lab.link("h0", "rail0")["carrier"], "up")
                lab.must("mend", "rail0")
                self.assertEqual(self.datagram(lab, "h0", "h1", 20), "came")

    def test_a_cut_link_loses_its_carrier_until_it_is_mended(self):
        for lab in self.labs:
            with self.subTest(lab.up_words):
                lab.must("cut", "rail1", "--host", "h1")
                self.assertTrue(wait_until(lambda: lab.link("h1", "rail1")["carrier"] == "down"))
                self.assertEqual(lab.link("h1", "rail0")["carrier"], "up")
                lab.must("mend", "rail1")
                self.assertTrue(wait_until(lambda: lab.link("h1", "rail1")["carrier"] == "up"))

    def test_counters_survive_a_cut(self):
        for lab in self.labs:
            self.assertEqual(self.datagram(lab, "h0", "h1", 20), "came")
            before = lab.link("h0", "rail0")["out"]["bytes"]
            self.assertGreater(before, 0)
            lab.must("cut", "rail0", "--drop")
            lab.must("mend", "rail0")
            self.assertGreaterEqual(lab.link("h0", "rail0")["out"]["bytes"], before)


class Leftovers(unittest.TestCase):
    def test_down_removes_everything_and_may_be_repeated(self):
        for hosts in ("1", "3"):
            with self.subTest(hosts=hosts), Lab("--hosts", hosts) as lab:
                self.assertEqual(lab.must("up", "--hosts", hosts).split(":")[0], "already up")
                stray = "setsid sleep 1000 >/dev/null 2>&1 & echo $!"
                pids = [int(lines[0]) for lines in lab.run("sh", "-c", stray)]
                self.assertTrue(all(map(is_alive, pids)))
                lab.must("cut", "rail0", "--drop")
                lab.must("down")
                self.assertFalse(any(map(is_alive, pids)))
                self.assertEqual(traces(lab.name), [])

    def test_a_failed_up_leaves_nothing(self):
        lab = Lab()
        done = lab.command("up", "--congestion", "nosuch")
        self.assertEqual(done.returncode, 1)
        self.assertIn("nosuch", done.stderr)
        self.assertEqual(traces(lab.name), [])

    def test_ephemeral_leaves_nothing_however_it_ends(self):
        for sent in (None, signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with self.subTest(signal=sent):
                lab = Lab()
                program = "true" if sent is None else "echo $$; exec sleep 1000"
                words = [LAB_PROGRAM, "--lab", lab.name, "ephemeral", "--no-prefix", "--"]
                process = subprocess.Popen(
                    [*words, "sh", "-c", program],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
                if sent is not None:
                    pids = [int(process.stdout.readline()) for _ in range(2)]
                    process.send_signal(sent)
                    self.assertTrue(wait_until(lambda: not any(map(is_alive, pids))))
                process.communicate()
                expected = {None: 0, signal.SIGKILL: -9}.get(sent, 128 + (sent or 0))
                self.assertEqual(process.returncode, expected)
                self.assertTrue(wait_until(lambda: not traces(lab.name)), traces(lab.name))


class Mistakes(unittest.TestCase):
    def test_are_named_in_one_line_with_status_2(self):
        with Lab() as lab:
            for words, text in (
                (("up", "--rails", "fast"), "not a rate: 'fast'"),
                (("up", "--rails", ""), "--rails"),
                (("up", "--hosts", "0"), "--hosts 0"),
                (("up", "--hosts", "3", "--topology", "direct"), "2 hosts"),
                (("up", "--unequal", "h7:rail0=1gbit"), "no such host or rail"),
                (("up", "--unequal", "rail0=1gbit"), "h1:rail0=500mbit"),
                (("set-rate", "rail9", "1gbit"), "no rail 'rail9'"),
                (("set-rate", "rail0", "-3"), "-3"),
                (("cut", "rail0", "--dir", "in"), "--drop"),
                (("exec", "h5", "--", "true"), "no host 'h5'"),
                (("exec", "h0"), "after --"),
                (("run",), "after --"),
                (("run", "--at", "soon:cut 0", "--", "true"), "SECONDS:COMMAND"),
                (("run", "--at", "1:down", "--", "true"), "SECONDS:COMMAND"),
                (("run", "--at", "1:cut rail7", "--", "true"), "no rail 'rail7'"),
            ):
                with self.subTest(words=words):
                    done = lab.command(*words)
                    self.assertEqual(done.returncode, 2, done.stderr)
                    self.assertIn(text, done.stderr)
                    self.assertNotIn("Traceback", done.stderr)
            self.assertEqual(lab.link("h0", "rail0")["out"]["rate_bits_per_s"], 10**9)
            done = lab.command("run", "--", "no-such-program")
            self.assertEqual(done.returncode, 1)
            self.assertIn("no-such-program: No such file", done.stderr)

    def test_a_lab_that_is_not_up_is_an_error(self):
        done = lab_command("run", "--", "true", name="tnone")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("not up", done.stderr)

    def test_without_root_the_status_is_3(self):
        done = lab_command("up", name="tnobody", user=65534)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertIn("root", done.stderr)


if __name__ == "__main__":
    lab_harness.main()
