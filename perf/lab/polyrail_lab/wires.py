"""The rails: who carries what, at which rate, and what is cut.

Each direction of a link is shaped where the kernel sends: direct rails at both hosts' ends, rails
with a switch at the host (uplink) and at the switch port (downlink), so that several senders to one
host share its rate as on a real switch.
"""

import json

from .lab import DIRECTIONS
from .system import command

# One packet that the kernel hands to a rail may hold 64 KiB of payload plus its frames' headers;
# a bucket that cannot hold it makes the kernel cut it up in software.
LARGEST_PACKET_BYTES = 68 << 10
# The bucket outlasts the lateness of the kernel's timers, so that no tokens are lost.
BURST_S = 0.5e-3
QUEUE_S = 8e-3
SMALLEST_QUEUE_BYTES = 512 << 10

_OPPOSITE = {"out": "in", "in": "out"}


def carrier(lab, host, rail, direction):
    """(namespace, device) whose queue carries this direction of this host's link."""
    if direction == "out":
        return lab.host_namespace(host), f"rail{rail}"
    if lab.spec.topology == "direct":
        return lab.host_namespace(1 - host), f"rail{rail}"
    return lab.switch_namespace(rail), f"h{host}"


def _sharers(lab, host, rail, direction):
    """The (link, direction) pairs that meet in one queue: both ends of a direct wire."""
    pairs = [(lab.links[host][rail], direction)]
    if lab.spec.topology == "direct":
        pairs.append((lab.links[1 - host][rail], _OPPOSITE[direction]))
    return pairs


def wire_rate(lab, host, rail, direction):
    """Bits per second of one direction: a direct wire is as fast as its slower end."""
    return min(link["rate"][way] for link, way in _sharers(lab, host, rail, direction))


def is_dropping(lab, host, rail, direction):
    return any(link["drop"][way] for link, way in _sharers(lab, host, rail, direction))


def queue_words(spec, bits):
    """Arguments of tc for a token bucket of this rate."""
    burst = spec.burst_bytes or max(LARGEST_PACKET_BYTES, int(bits / 8 * BURST_S))
    queue = spec.queue_bytes or max(SMALLEST_QUEUE_BYTES, int(bits / 8 * QUEUE_S))
    return f"tbf rate {bits}bit burst {burst} limit {burst + queue}"


def shape(lab, host, rail):
    """Make both directions of a link be as its state says."""
    for direction in DIRECTIONS:
        namespace, device = carrier(lab, host, rail, direction)
        if is_dropping(lab, host, rail, direction):
            _keep_count(lab, namespace, device)
            words = "blackhole"
        else:
            words = queue_words(lab.spec, wire_rate(lab, host, rail, direction))
        command("tc", "-n", namespace, "qdisc", "replace", "dev", device, "root", *words.split())


def _keep_count(lab, namespace, device):
    """Note what a token bucket has carried before another queue takes its place."""
    queue = _queues(namespace).get(device, {})
    if queue.get("kind") == "tbf":
        wire = f"{namespace}/{device}"
        lab.carried[wire] = lab.carried.get(wire, 0) + queue.get("bytes", 0)


def set_link(lab, host, rail, state):
    """Pull ("down") or plug ("up") the cable of one host.

    With a switch its port goes down and the host loses the carrier. A direct veth pair knows no
    cable: the host's own interface goes down, and the other host loses the carrier.
    """
    namespace, device = lab.host_namespace(host), f"rail{rail}"
    if lab.spec.topology == "switch":
        namespace, device = lab.switch_namespace(rail), f"h{host}"
    command("ip", "-n", namespace, "link", "set", device, state)
    lab.links[host][rail]["link"] = state


def set_rate(lab, host, rail, bits, directions=DIRECTIONS):
    for direction in directions:
        lab.links[host][rail]["rate"][direction] = bits
    shape(lab, host, rail)


def set_drop(lab, host, rail, dropping, directions=DIRECTIONS):
    """Let packets vanish while both ends believe that the link is well, or end that."""
    for direction in directions:
        lab.links[host][rail]["drop"][direction] = dropping
    shape(lab, host, rail)


def mend(lab, host, rail):
    link = lab.links[host][rail]
    if link["link"] != "up":
        set_link(lab, host, rail, "up")
    if any(link["drop"].values()):
        set_drop(lab, host, rail, False)


def _queues(namespace):
    """Root queues of a namespace by device, with their counters."""
    text = command("tc", "-n", namespace, "-s", "-j", "qdisc", "show")
    return {queue["dev"]: queue for queue in json.loads(text or "[]") if queue.get("root")}


def measure(lab):
    """One record per host and rail: rates, cuts, carrier, and what each direction has carried."""
    queues = {name: _queues(name) for name in lab.namespaces()}
    carriers = {}
    for host in lab.hosts():
        text = command("ip", "-n", lab.host_namespace(host), "-j", "link")
        carriers[host] = {link["ifname"]: link["operstate"].lower() for link in json.loads(text)}
    records = []
    for host in lab.hosts():
        for rail in lab.rails():
            record = {
                "host": f"h{host}",
                "rail": f"rail{rail}",
                "address": lab.address(host, rail),
                "carrier": carriers[host].get(f"rail{rail}", "gone"),
            }
            for direction in DIRECTIONS:
                namespace, device = carrier(lab, host, rail, direction)
                queue = queues[namespace].get(device, {})
                sent = queue.get("bytes", 0) if queue.get("kind") == "tbf" else 0
                record[direction] = {
                    "rate_bits_per_s": wire_rate(lab, host, rail, direction),
                    "is_dropping": is_dropping(lab, host, rail, direction),
                    "bytes": lab.carried.get(f"{namespace}/{device}", 0) + sent,
                    "packets": queue.get("packets", 0),
                    "drops": queue.get("drops", 0),
                }
            records.append(record)
    return records
