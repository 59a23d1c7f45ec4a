"""What makes a host besides its network, and how a process gets into it."""

import errno
import os
import uuid

from .errors import LabError
from .system import (
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWUTS,
    MS_BIND,
    MS_PRIVATE,
    MS_REC,
    command,
    mount,
    setns,
    unshare,
)


def make(lab, host):
    """All that is kept of a host is files and mounts; no process stays."""
    os.makedirs(lab.host_path(host, "shm"))
    options = "mode=1777" + (f",size={lab.spec.shm_bytes}" if lab.spec.shm_bytes else "")
    command("mount", "-t", "tmpfs", "-o", options, "polyrail-lab", lab.host_path(host, "shm"))
    with open(lab.host_path(host, "boot_id"), "w") as file:
        file.write(f"{uuid.uuid4()}\n")
    with open(lab.host_path(host, "hosts"), "w") as file:
        file.write("127.0.0.1 localhost\n")
        for other in lab.hosts():
            file.write(f"{lab.address(other, 0)} h{other}\n")
            for rail in lab.rails():
                file.write(f"{lab.address(other, rail)} h{other}-rail{rail}\n")
    for kind in ("uts", "ipc"):
        open(lab.host_path(host, kind), "w").close()
    command(
        "unshare",
        f"--uts={lab.host_path(host, 'uts')}",
        f"--ipc={lab.host_path(host, 'ipc')}",
        "hostname",
        f"h{host}",
    )


def enter(lab, host):
    """Move the calling process into a host, also from inside another one.

    Network, UTS and IPC namespaces are the host's, kept as files. The mount namespace is made anew
    for the process and shows the host's /sys, /dev/shm, /etc/hosts and boot id, so that a program
    that asks "are we on one machine?" hears no.
    """
    try:
        setns(f"/run/netns/{lab.host_namespace(host)}", CLONE_NEWNET)
        setns(lab.host_path(host, "uts"), CLONE_NEWUTS)
        setns(lab.host_path(host, "ipc"), CLONE_NEWIPC)
        unshare(CLONE_NEWNS)
        mount(None, "/", None, MS_REC | MS_PRIVATE)
        _show_own_devices()
        mount(lab.host_path(host, "shm"), "/dev/shm", None, MS_BIND)
        mount(lab.host_path(host, "hosts"), "/etc/hosts", None, MS_BIND)
        mount(lab.host_path(host, "boot_id"), "/proc/sys/kernel/random/boot_id", None, MS_BIND)
    except OSError as error:
        raise LabError(f"cannot enter h{host} of lab {lab.name!r}: {error}") from None


def _show_own_devices():
    try:
        mount("sysfs", "/sys", "sysfs")
    except OSError as error:
        if error.errno != errno.EBUSY:  # busy: entered from inside the same host, already shown
            raise
