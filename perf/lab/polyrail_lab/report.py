"""What `status` and `list` print."""

import dataclasses
import json

from . import wires
from .units import show_rate


def describe(spec):
    rails = ", ".join(show_rate(rate) for rate in spec.rates[0])
    unequal = [
        f"h{host}:rail{rail}={show_rate(rate)}"
        for host, rates in enumerate(spec.rates)
        for rail, rate in enumerate(rates)
        if rate != spec.rates[0][rail]
    ]
    besides = f" except {', '.join(unequal)}" if unequal else ""
    return f"{spec.hosts} hosts, rails {rails}{besides}, {spec.topology}"


def status_json(lab):
    state = {
        "lab": lab.name,
        "scratch": lab.scratch,
        "spec": dataclasses.asdict(lab.spec),
        "links": wires.measure(lab),
        "processes": lab.processes(),
    }
    return json.dumps(state, indent=1)


def status_text(lab):
    """A table within 100 columns."""
    spec = lab.spec
    lines = [
        f"lab {lab.name}: {describe(spec)}, mtu {spec.mtu}, {spec.congestion}, "
        f"{len(lab.processes())} processes inside",
        f"{'host':<5}{'rail':<7}{'address':<13}{'carrier':<9}{'out rate':>9}{'in rate':>9}"
        f" {'drops all':<10}{'out MB':>10}{'in MB':>10}{'out lost':>9}{'in lost':>9}",
    ]
    for record in wires.measure(lab):
        ways = (record["out"], record["in"])
        cut = ",".join(name for name in ("out", "in") if record[name]["is_dropping"]) or "-"
        rates = "".join(f"{show_rate(way['rate_bits_per_s']):>9}" for way in ways)
        carried = "".join(f"{way['bytes'] / 1e6:>10.1f}" for way in ways)
        lost = "".join(f"{way['drops']:>9}" for way in ways)
        lines.append(
            f"{record['host']:<5}{record['rail']:<7}{record['address']:<13}"
            f"{record['carrier']:<9}{rates} {cut:<10}{carried}{lost}"
        )
    return "\n".join(lines)
