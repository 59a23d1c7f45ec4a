"""The few system calls and commands a lab is made of, with errors that name what was tried."""

import contextlib
import ctypes
import fcntl
import os
import shutil
import subprocess

from .errors import CannotError, LabError

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWNET = 0x40000000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)


def _call(name, *args):
    if getattr(_libc, name)(*args) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


def setns(path, kind):
    """Move the calling process into the namespace that `path` names."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _call("setns", descriptor, kind)
    finally:
        os.close(descriptor)


def unshare(flags):
    _call("unshare", flags)


def mount(source, target, kind=None, flags=0):
    encode = lambda text: None if text is None else os.fsencode(text)  # noqa: E731
    try:
        _call("mount", encode(source), encode(target), encode(kind), ctypes.c_ulong(flags), None)
    except OSError as error:
        raise OSError(error.errno, f"mount on {target}: {os.strerror(error.errno)}") from None


@contextlib.contextmanager
def locked_directory(path):
    """Hold a lock on a directory that stays there; the lock ends with the process."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def die_with_parent(signal_number):
    """The kernel sends this signal when the thread that made this process ends."""
    _call("prctl", PR_SET_PDEATHSIG, signal_number, 0, 0, 0)


def command(*words, stdin=None):
    """Run a command and give back what it printed; its own error text on failure."""
    done = subprocess.run(words, input=stdin, capture_output=True, text=True)
    if done.returncode != 0:
        why = " ".join(done.stderr.split()) or f"exit status {done.returncode}"
        raise LabError(f"{' '.join(words)}: {why}")
    return done.stdout


def quiet_command(*words):
    """As `command`, for clean-up: no error, empty output on failure."""
    done = subprocess.run(words, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else ""


def batch(tool, namespace, lines):
    """Many `ip` or `tc` commands of one network namespace in one process."""
    if lines:
        command(tool, "-n", namespace, "-batch", "-", stdin="\n".join(lines) + "\n")


def in_child(work):
    """Run `work()` in a forked process, whose namespaces end with it; raise what it raised."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        text = b""
        try:
            work()
        except BaseException as error:  # the child must not run the parent's code
            text = (str(error) or repr(error)).encode()
        os.write(writer, text)
        os._exit(1 if text else 0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        text = stream.read().decode(errors="replace")
    _, status = os.waitpid(pid, 0)
    if status != 0:
        raise LabError(text or f"helper process ended with status {status}")


def require_machine():
    """Raise CannotError, with the reason, unless this user and kernel can run a lab."""
    if os.geteuid() != 0:
        raise CannotError("needs root (network namespaces, tc)")
    for tool in ("ip", "tc", "unshare"):
        if not shutil.which(tool):
            raise CannotError(f"needs the program {tool!r} (Debian: iproute2, util-linux)")

    def try_everything():
        unshare(CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNS)
        mount(None, "/", None, MS_REC | MS_PRIVATE)
        mount("sysfs", "/sys", "sysfs")
        command("ip", "link", "add", "try0", "type", "veth", "peer", "name", "try1")
        bucket = "tbf rate 1gbit burst 70000 limit 600000"
        command("tc", "qdisc", "add", "dev", "try0", "root", *bucket.split())

    try:
        in_child(try_everything)
    except LabError as error:
        raise CannotError(f"this machine cannot run a lab: {error}") from None
