"""Run one program on every host with rank variables, and changes to the rails meanwhile."""

import contextlib
import dataclasses
import os
import secrets
import selectors
import signal
import subprocess
import sys
import time

from . import hosts
from .errors import EXIT_TIMEOUT, LabError, UsageError
from .system import die_with_parent


@dataclasses.dataclass
class Launch:
    """What `run` was asked for."""

    words: list  # program and arguments
    on: list  # host indices, in rank order
    ranks_per_host: int = 1
    timeout_s: float = 0.0
    grace_s: float = 3.0  # how long the others may go on after one rank failed
    port: int = 0  # 0: a random one
    pin: bool = False
    prefix: bool = True
    quiet: bool = False
    events: list = dataclasses.field(default_factory=list)  # (seconds, words)


def spawn(lab, host, words, environment, cpu=None, **streams):
    """Start a program in a host, in its own process group; it ends when the lab command does."""

    def prepare():
        die_with_parent(signal.SIGKILL)
        os.setpgid(0, 0)
        hosts.enter(lab, host)
        if cpu is not None:
            os.sched_setaffinity(0, {cpu})

    try:
        return subprocess.Popen(
            words, env=environment, stdin=subprocess.DEVNULL, preexec_fn=prepare, **streams
        )
    except OSError as error:
        raise LabError(f"{words[0]}: {error.strerror}") from None
    except subprocess.SubprocessError as error:
        raise LabError(f"cannot start {words[0]} in h{host}: {error}") from None


def rank_environments(lab, launch):
    """(host, environment) of each rank. Every run has a key and a port of its own."""
    size = len(launch.on) * launch.ranks_per_host
    shared = {
        "WORLD_SIZE": str(size),
        "LOCAL_WORLD_SIZE": str(launch.ranks_per_host),
        "MASTER_ADDR": lab.address(launch.on[0], 0),
        "MASTER_PORT": str(launch.port or 20000 + secrets.randbelow(10000)),
        "POLYRAIL_KEY": secrets.token_hex(32),
    }
    for index in range(size):
        host, local = launch.on[index // launch.ranks_per_host], index % launch.ranks_per_host
        own = {"RANK": str(index), "LOCAL_RANK": str(local)}
        yield host, {**os.environ, **lab.host_environment(host), **shared, **own}


def run(lab, launch, apply_event):
    """Exit status: 0, the first failed rank's, 124 on timeout, or 128 + signal."""
    return _Run(lab, launch, apply_event).status()


class _Run:
    def __init__(self, lab, launch, apply_event):
        self.lab_ = lab
        self.launch_ = launch
        self.apply_event_ = apply_event
        self.processes_ = []
        self.selector_ = selectors.DefaultSelector()
        self.failures_ = []  # (rank, status) in the order seen
        self.signals_ = []
        self.timed_out_ = False

    def status(self):
        before = {
            number: signal.signal(number, lambda got, _: self.signals_.append(got))
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        }
        try:
            self._start()
            self._watch()
        finally:
            self._end_all()
            for number, handler in before.items():
                signal.signal(number, handler)
        for key in list(self.selector_.get_map().values()):
            self._copy_lines(key)
        self._report()
        if self.signals_:
            return 128 + self.signals_[0]
        if self.timed_out_:
            return EXIT_TIMEOUT
        if not self.failures_:
            return 0
        _, status = self.failures_[0]
        return status if status > 0 else 128 - status

    def _start(self):
        cpus = sorted(os.sched_getaffinity(0))
        for rank, (host, environment) in enumerate(rank_environments(self.lab_, self.launch_)):
            process = spawn(
                self.lab_,
                host,
                self.launch_.words,
                environment,
                cpus[rank % len(cpus)] if self.launch_.pin else None,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            self.processes_.append(process)
            for stream, sink in ((process.stdout, sys.stdout), (process.stderr, sys.stderr)):
                os.set_blocking(stream.fileno(), False)
                self.selector_.register(stream, selectors.EVENT_READ, [rank, sink, b""])

    def _watch(self):
        start = time.monotonic()
        events = sorted(self.launch_.events, key=lambda event: event[0])
        seen = set()
        stop_at = float("inf")
        while True:
            passed = time.monotonic() - start
            while events and passed >= events[0][0]:
                self._apply(passed, events.pop(0)[1])
            for rank, process in enumerate(self.processes_):
                if rank not in seen and process.poll() is not None:
                    seen.add(rank)
                    if process.returncode != 0:
                        self.failures_.append((rank, process.returncode))
                        stop_at = min(stop_at, passed + self.launch_.grace_s)
            if len(seen) == len(self.processes_):
                return
            if self.signals_ or passed >= stop_at:
                return
            if self.launch_.timeout_s and passed >= self.launch_.timeout_s:
                self.timed_out_ = True
                return
            wait_s = min(0.05, events[0][0] - passed if events else 0.05)
            if not self.selector_.get_map():
                time.sleep(max(0.0, wait_s))
            else:
                for key, _ in self.selector_.select(max(0.0, wait_s)):
                    self._copy_lines(key)

    def _apply(self, passed, words):
        if not self.launch_.quiet:
            print(f"polyrail-lab: {passed:.2f} s: {' '.join(words)}", file=sys.stderr, flush=True)
        try:
            self.apply_event_(words)
        except LabError as error:
            print(f"polyrail-lab: {error}", file=sys.stderr, flush=True)

    def _copy_lines(self, key):
        """Copy whole lines of a rank to where they belong, with the rank before each."""
        rank, sink, rest = key.data
        ended = False
        while True:
            try:
                piece = os.read(key.fd, 1 << 16)
            except BlockingIOError:
                break
            if not piece:
                ended = True
                break
            rest += piece
        *lines, rest = rest.split(b"\n")
        if ended and rest:
            lines, rest = [*lines, rest], b""
        before = f"[{rank}] " if self.launch_.prefix else ""
        for line in lines:
            sink.write(before + line.decode(errors="replace") + "\n")
        sink.flush()
        key.data[2] = rest
        if ended:
            self.selector_.unregister(key.fileobj)
            key.fileobj.close()

    def _end_all(self):
        """End the process groups that still run, gently first."""
        for sent, patience_s in ((signal.SIGTERM, 1.0), (signal.SIGKILL, 5.0)):
            alive = [process for process in self.processes_ if process.poll() is None]
            for process in alive:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, sent)
            deadline = time.monotonic() + patience_s
            while any(process.poll() is None for process in alive) and time.monotonic() < deadline:
                time.sleep(0.01)

    def _report(self):
        if self.launch_.quiet or not (self.failures_ or self.timed_out_):
            return
        parts = ["timed out"] if self.timed_out_ else []
        for rank, status in self.failures_:
            how = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
            parts.append(f"rank {rank}: {how}")
        print("polyrail-lab: " + ", ".join(parts), file=sys.stderr)


def parse_event(text, commands):
    """'2.5:set-rate rail1 200mbit' -> (2.5, ['set-rate', 'rail1', '200mbit'])."""
    when, colon, what = text.partition(":")
    words = what.split()
    try:
        seconds = float(when)
    except ValueError:
        seconds = -1.0
    if not colon or seconds < 0 or not words or words[0] not in commands:
        raise UsageError(f"--at {text!r}: not SECONDS:COMMAND with {', '.join(commands)}")
    return seconds, words
