"""A lab that ends with the command that made it, even if that command is killed.

A keeper process holds the reading end of a pipe. The pipe closes when the command ends, however it
ends; then the keeper takes the lab down. It is in a session of its own, so that a signal to the
command's group or tree does not reach it.
"""

import contextlib
import os
import signal
import time

from . import build
from .errors import LabError


@contextlib.contextmanager
def kept(lab):
    """Take `lab` down when the block, or this process, ends."""
    life_reader, life_writer = os.pipe()
    report_reader, report_writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(life_writer)
        os.close(report_reader)
        if os.fork() == 0:
            _keep(lab, life_reader, report_writer)
        os._exit(0)
    os.close(life_reader)
    os.close(report_writer)
    os.waitpid(pid, 0)
    try:
        yield lab
    finally:
        os.close(life_writer)
        with os.fdopen(report_reader) as stream:
            trouble = stream.read()
        if trouble:
            raise LabError(trouble)


def _take_down(lab, attempts=5):
    """Nobody comes after the keeper, so it does not give up at the first trouble."""
    for attempt in range(attempts):
        try:
            with lab.locked():
                build.down(lab.load())
            return
        except (LabError, OSError):
            if attempt + 1 == attempts:
                raise
            time.sleep(1.0)


def _keep(lab, life_reader, report_writer):
    trouble = ""
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nothing, descriptor)
        os.read(life_reader, 1)
        _take_down(lab)
    except BaseException as error:  # must reach the report, whatever it is
        trouble = str(error) or repr(error)
    os.write(report_writer, trouble.encode())
    os._exit(0)
