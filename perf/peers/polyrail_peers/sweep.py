"""The comparison over sizes: peers take turns, so that all meet the same state of the machine."""

import dataclasses
import statistics

from .collectives import Collective
from .launch import wait_until_quiet
from .progress import Progress


@dataclasses.dataclass
class Plan:
    """What each launch of some peers does."""

    collective: Collective
    peers: list
    sizes: list
    budget_s: float = 0.15

    def arguments(self):
        words = ["--collective", self.collective.name, "--sizes", ",".join(map(str, self.sizes))]
        return [*words, "--budget", f"{self.budget_s:g}"]

    def turns(self, run):
        """The peers, each run beginning with another."""
        first = run % len(self.peers)
        return self.peers[first:] + self.peers[:first]


def rail_limit(lab):
    """Bytes per second of all rails of the slowest host together."""
    return min(sum(rates) for rates in lab.host_rates()) / 8


def timeout_s(lab, plan):
    """Enough for a peer that reaches a twentieth of the rails, and for its start."""
    moved = sum(plan.collective.bus_bytes(size, lab.rank_count) for size in plan.sizes)
    calls = 4
    return 120 + 10 * plan.budget_s * len(plan.sizes) + calls * moved / (rail_limit(lab) / 20)


def sweep(lab, plans, runs, quiet_s):
    """(measurements, launches): one measurement per collective, peer, run and size."""
    measurements, launches = [], []
    progress = Progress(runs * sum(len(plan.peers) for plan in plans))
    for peer in {peer.name: peer for plan in plans for peer in plan.peers}.values():
        peer.prepare(lab)
    turns = ((run, plan, peer) for run in range(runs) for plan in plans for peer in plan.turns(run))
    for run, plan, peer in turns:
        collective = plan.collective
        progress.show(f"run {run + 1} of {runs}: {collective.name}, {peer.name}")
        if quiet_s:
            wait_until_quiet(quiet_s)
        before = lab.sent_bytes()
        outcome = peer.run(lab, plan, timeout_s(lab, plan))
        lab.end_leftovers()
        launches.append(
            {
                "collective": collective.name,
                "peer": peer.name,
                "run": run,
                "failure": outcome.failure,
                "seconds": outcome.seconds,
                "others": outcome.others,
                "rail_shares": _shares(before, lab.sent_bytes()),
            }
        )
        if outcome.failure:
            progress.note(f"{collective.name}, {peer.name}, run {run + 1}: {outcome.failure}")
        for record in outcome.records:
            if "mean_us" in record and not record.get("wrong"):
                measurements.append(_measurement(lab, collective, peer, run, record))
    progress.end()
    return measurements, launches


def _shares(before, after):
    sent = [last - first for first, last in zip(before, after)]
    return [bytes_ / max(1, sum(sent)) for bytes_ in sent]


def _measurement(lab, collective, peer, run, record):
    moved = collective.bus_bytes(record["bytes"], lab.rank_count)
    bytes_per_s = moved / (record["mean_us"] * 1e-6)
    return {
        "collective": collective.name,
        "peer": peer.name,
        "run": run,
        **record,
        "bus_gb_per_s": bytes_per_s / 1e9,
        "percent": 100 * bytes_per_s / rail_limit(lab),
    }


def summarise(measurements, launches, plan):
    """Per peer and size the median, least and greatest of each number; shares of the rails."""
    summary = []
    for peer in plan.peers:
        whose = {"collective": plan.collective.name, "peer": peer.name}
        own = [each for each in measurements if _is_of(each, whose)]
        tries = [each for each in launches if _is_of(each, whose)]
        sizes = {}
        for size in sorted({each["bytes"] for each in own}):
            of_size = [each for each in own if each["bytes"] == size]
            sizes[size] = {
                key: _spread(of_size, key) for key in of_size[0] if _is_number(of_size, key)
            }
        good = [each for each in tries if not each["failure"]]
        summary.append(
            {
                **whose,
                "what": peer.what,
                "sizes": sizes,
                "runs": len(tries),
                "failed": len(tries) - len(good),
                "failure": next((each["failure"] for each in tries if each["failure"]), ""),
                "others": statistics.median(each["others"] for each in tries) if tries else 0,
                "rail_shares": _median_shares(good),
            }
        )
    return summary


def _is_of(row, whose):
    return all(row[key] == value for key, value in whose.items())


def _is_number(rows, key):
    return key not in ("bytes", "run") and all(
        isinstance(row.get(key), (int, float)) for row in rows
    )


def _spread(rows, key):
    values = [row[key] for row in rows]
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def _median_shares(launches):
    if not launches:
        return []
    return [
        statistics.median(column) for column in zip(*(each["rail_shares"] for each in launches))
    ]
