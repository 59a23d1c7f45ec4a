"""Bring a lab up, and take it down so that nothing of it is left."""

import contextlib
import json
import os
import shutil
import signal
import time

from . import hosts, wires
from .errors import LabError
from .lab import STATE_ROOT, new_link
from .system import (
    CLONE_NEWNET,
    batch,
    command,
    in_child,
    locked_directory,
    quiet_command,
    setns,
)

# Rails never mix, and nobody but the programs under test talks.
_NETWORK_SETTINGS = {
    "ipv4/ip_forward": "0",
    "ipv4/conf/all/arp_ignore": "1",
    "ipv4/conf/all/arp_announce": "2",
}
_ALLOWED_CONGESTION = "/proc/sys/net/ipv4/tcp_allowed_congestion_control"


def up(lab, spec):
    """Build the lab; on any failure nothing of it is left."""
    try:
        _build(lab, spec)
    except BaseException:
        down(lab)
        raise


def is_as_built(lab, spec):
    """True if the lab is up as `spec` asks, with no rate changed and no rail cut."""
    if not lab.load().is_up or lab.spec != spec or lab.links != _fresh_links(spec):
        return False
    return set(_wanted_namespaces(lab)) == set(lab.namespaces())


def _fresh_links(spec):
    return [[new_link(rate) for rate in rates] for rates in spec.rates]


def _wanted_namespaces(lab):
    names = [lab.host_namespace(host) for host in lab.hosts()]
    if lab.spec.topology == "switch":
        names += [lab.switch_namespace(rail) for rail in lab.rails()]
    return names


def _build(lab, spec):
    lab.spec, lab.links, lab.carried = spec, _fresh_links(spec), {}
    os.makedirs(lab.scratch)
    for namespace in _wanted_namespaces(lab):
        command("ip", "netns", "add", namespace)
    with _congestion_allowed(spec.congestion):
        for namespace in _wanted_namespaces(lab):
            in_child(lambda: _settle_network(namespace, spec))
    for host in lab.hosts():
        hosts.make(lab, host)
    if spec.topology == "direct":
        _join_directly(lab)
    else:
        _join_by_switches(lab)
    for host in lab.hosts():
        _open_rails(lab, host)
    _wait_for_carrier(lab)
    lab.save()
    lab.is_up = True


def _settle_network(namespace, spec):
    """Runs in a process of its own, since it moves into the namespace."""
    setns(f"/run/netns/{namespace}", CLONE_NEWNET)
    command("ip", "link", "set", "lo", "up")
    without_ipv6 = "0" if spec.has_ipv6 else "1"
    settings = {
        **_NETWORK_SETTINGS,
        "ipv6/conf/all/disable_ipv6": without_ipv6,
        "ipv6/conf/default/disable_ipv6": without_ipv6,
    }
    for key, value in settings.items():
        with contextlib.suppress(FileNotFoundError):  # a kernel without IPv6
            with open(f"/proc/sys/net/{key}", "w") as file:
                file.write(value)
    with open("/proc/sys/net/ipv4/tcp_congestion_control", "w") as file:
        file.write(spec.congestion)


@contextlib.contextmanager
def _congestion_allowed(name):
    """A namespace may choose only from a list of the whole machine: widen it for the moment."""
    with locked_directory(STATE_ROOT), _widened_list(name):
        yield


@contextlib.contextmanager
def _widened_list(name):
    with open(_ALLOWED_CONGESTION) as file:
        allowed = file.read().split()
    if name in allowed:
        yield
        return
    try:
        with open(_ALLOWED_CONGESTION, "w") as file:
            file.write(" ".join([*allowed, name]))
    except OSError:
        raise LabError(f"the kernel has no TCP congestion control {name!r}") from None
    try:
        yield
    finally:
        with open(_ALLOWED_CONGESTION, "w") as file:
            file.write(" ".join(allowed))


def _join_directly(lab):
    first, second = lab.host_namespace(0), lab.host_namespace(1)
    mtu = lab.spec.mtu
    batch(
        "ip",
        first,
        [
            f"link add rail{rail} mtu {mtu} type veth peer name rail{rail} mtu {mtu} netns {second}"
            for rail in lab.rails()
        ],
    )


def _join_by_switches(lab):
    mtu = lab.spec.mtu
    for rail in lab.rails():
        switch = lab.switch_namespace(rail)
        lines = [
            f"link add br0 mtu {mtu} type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
            "link set br0 up",
        ]
        for host in lab.hosts():
            lines.append(
                f"link add h{host} mtu {mtu} type veth "
                f"peer name rail{rail} mtu {mtu} netns {lab.host_namespace(host)}"
            )
            lines.append(f"link set h{host} master br0 up")
        batch("ip", switch, lines)


def _open_rails(lab, host):
    lines = []
    for rail in lab.rails():
        lines.append(f"addr add {lab.address(host, rail)}/24 broadcast + dev rail{rail}")
        lines.append(f"link set rail{rail} up")
        if lab.spec.has_ipv6:
            lines.append(f"addr add {lab.address6(host, rail)}/64 dev rail{rail} nodad")
    batch("ip", lab.host_namespace(host), lines)
    for rail in lab.rails():
        wires.shape(lab, host, rail)


def _wait_for_carrier(lab, patience_s=5.0):
    """The kernel takes up to a second to call a new link running; some programs skip it before."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        states = []
        for host in lab.hosts():
            links = json.loads(command("ip", "-n", lab.host_namespace(host), "-j", "link"))
            states += [link["operstate"] for link in links if link["ifname"] != "lo"]
        if all(state == "UP" for state in states):
            return
        time.sleep(0.02)
    raise LabError(f"the rails got no carrier within {patience_s:g} s")


def down(lab):
    """Remove processes, links, namespaces, mounts and files; harmless if the lab is not up.

    The caller holds the lab's lock.
    """
    stubborn = _end_processes(lab)
    for namespace in lab.namespaces():
        # Links first: a veth pair goes at once even if something still holds the namespace.
        links = json.loads(quiet_command("ip", "-n", namespace, "-j", "link") or "[]")
        for link in links:
            if link["ifname"] != "lo":
                quiet_command("ip", "-n", namespace, "link", "del", link["ifname"])
        command("ip", "netns", "del", namespace)
    with open("/proc/self/mountinfo") as file:
        mounts = [line.split()[4] for line in file]
    for point in reversed(mounts):
        if point.startswith(lab.directory + "/"):
            command("umount", point)
    for entry in os.scandir(lab.directory):  # the directory itself goes with the lock on it
        if entry.is_dir():
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)
    lab.spec, lab.links, lab.carried, lab.is_up = None, [], {}, False
    if stubborn:
        raise LabError(f"processes of lab {lab.name!r} do not end: {stubborn}")


def _end_processes(lab):
    """End what runs inside, gently first; those that are still there after half a minute."""
    pids = lab.processes()
    for sent, patience_s in ((signal.SIGTERM, 2.0), (signal.SIGKILL, 30.0)):
        deadline = time.monotonic() + patience_s
        signalled = set()
        while pids and time.monotonic() < deadline:
            for pid in set(pids) - signalled:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, sent)
                signalled.add(pid)
            time.sleep(0.02)
            pids = lab.processes()
    return pids
