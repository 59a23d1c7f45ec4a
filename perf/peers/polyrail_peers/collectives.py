"""The collectives that are compared, and nccl-tests' factors between their size and the bus."""

import dataclasses
from typing import Callable

from .errors import UsageError


@dataclasses.dataclass(frozen=True)
class Collective:
    name: str
    title: str
    bus_factor: Callable  # of the number of ranks

    def bus_bytes(self, size, ranks):
        """What a call of `size` bytes must move, each way, through the busiest rank's links."""
        return size * self.bus_factor(ranks)


def _twice_others(ranks):
    return 2 * (ranks - 1) / ranks


def _others(ranks):
    return (ranks - 1) / ranks


def _all(_):
    return 1.0


COLLECTIVES = {
    each.name: each
    for each in (
        Collective("all_reduce", "All-reduce, float32 sum", _twice_others),
        Collective("all_gather", "All-gather, float32", _others),
        Collective("reduce_scatter", "Reduce-scatter, float32 sum", _others),
        Collective("broadcast", "Broadcast, float32", _all),
        Collective("reduce", "Reduce, float32 sum", _all),
        Collective("all_to_all", "All-to-all, float32", _others),
        Collective("gather", "Gather, float32", _others),
        Collective("scatter", "Scatter, float32", _others),
    )
}
ALL_REDUCE = COLLECTIVES["all_reduce"]


def parse_collectives(text):
    """'all_reduce,gather' -> those, in the order given; 'all' is all of them."""
    if text == "all":
        return list(COLLECTIVES.values())
    chosen = []
    for word in text.split(","):
        if word not in COLLECTIVES:
            raise UsageError(f"no collective {word!r} (all, or of {', '.join(COLLECTIVES)})")
        if COLLECTIVES[word] not in chosen:
            chosen.append(COLLECTIVES[word])
    return chosen
