"""A lab of polyrail-lab that lives as long as this process, and what runs in it."""

import contextlib
import ctypes
import json
import os
import re
import secrets
import signal
import subprocess

from .errors import CannotError, CompareError, UsageError
from .units import parse_rate

EXIT_CANNOT = 3  # of polyrail-lab
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def _end_with_parent():
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


class Laboratory:
    """`with Laboratory(...) as lab:`; rates are bits per second, one per rail."""

    def __init__(self, programs, hosts, rates, unequal=(), ranks_per_host=1):
        self.programs = programs  # the directory of all binaries
        self.hosts = hosts
        self.rates = list(rates)
        self.unequal = list(unequal)
        self.ranks_per_host = ranks_per_host
        self.name = "cmp" + secrets.token_hex(4)
        self.holder_ = None
        self.scratch = ""

    @property
    def rank_count(self):
        return self.hosts * self.ranks_per_host

    def host_rates(self):
        """Rates by host and rail, with what --unequal changes."""
        rates = [list(self.rates) for _ in range(self.hosts)]
        for text in (word for option in self.unequal for word in option.split(",")):
            if match := re.fullmatch(r"h([0-9]+):(?:rail)?([0-9]+)=(.+)", text.strip()):
                rates[int(match.group(1))][int(match.group(2))] = parse_rate(match.group(3))
        return rates

    @property
    def rails(self):
        """Rail indices, the fastest first."""
        return sorted(range(len(self.rates)), key=lambda rail: -self.rates[rail])

    def program(self, name):
        return os.path.join(self.programs, name)

    @staticmethod
    def address(host, rail):
        return f"10.77.{rail}.{host + 1}"

    def __enter__(self):
        # An ephemeral lab ends with its program; that one ends with us, however we end.
        words = [self.program("polyrail-lab"), "--lab", self.name, "ephemeral", "--no-prefix"]
        words += ["--quiet", "--on", "h0", "--hosts", str(self.hosts)]
        words += ["--rails", ",".join(f"{rate}bit" for rate in self.rates)]
        for text in self.unequal:
            words += ["--unequal", text]
        words += ["--", "sh", "-c", "echo ready; exec sleep infinity"]
        self.holder_ = subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=_end_with_parent,
        )
        if self.holder_.stdout.readline().strip() != "ready":
            _, errors = self.holder_.communicate()
            why = " ".join(errors.split()) or "polyrail-lab gave no reason"
            kinds = {2: UsageError, EXIT_CANNOT: CannotError}
            raise kinds.get(self.holder_.returncode, CompareError)(why)
        # For files of the launches; the lab takes it along when it goes.
        self.scratch = json.loads(self.command("status", "--json"))["scratch"]
        return self

    def __exit__(self, *_):
        self.holder_.send_signal(signal.SIGTERM)
        self.holder_.communicate()

    def words(self, *words):
        """The command line of a polyrail-lab command on this lab."""
        return [self.program("polyrail-lab"), "--lab", self.name, *words]

    def command(self, *words):
        done = subprocess.run(self.words(*words), capture_output=True, text=True)
        if done.returncode != 0:
            raise CompareError(f"polyrail-lab {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def run_words(self, *program):
        """Runs a program as every rank."""
        return self.words(
            "run", "--no-prefix", "--ranks-per-host", str(self.ranks_per_host), "--", *program
        )

    def exec_words(self, host, *program):
        return self.words("exec", f"h{host}", "--", *program)

    def sent_bytes(self):
        """What host 0 has sent so far, by rail."""
        links = json.loads(self.command("status", "--json"))["links"]
        return [link["out"]["bytes"] for link in links if link["host"] == "h0"]

    def end_leftovers(self):
        """End what a launch left behind in the hosts, so that it does not disturb the next."""
        holder = {int(line) for line in self._children_of(self.holder_.pid)}
        for pid in json.loads(self.command("status", "--json"))["processes"]:
            if pid not in holder:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    @staticmethod
    def _children_of(pid):
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return file.read().split()

    def join_multipath(self):
        """Tell each kernel's Multipath TCP about the rails besides the fastest."""
        for host in range(self.hosts):
            lines = [
                "ip mptcp limits set subflows 8 add_addr_accepted 8",
                "ip mptcp endpoint flush",
            ]
            for rail in self.rails[1:]:
                lines.append(f"ip mptcp endpoint add {self.address(host, rail)} signal")
            self.command("exec", f"h{host}", "--", "sh", "-ec", "\n".join(lines))
