#!/usr/bin/env python3
"""Draws a comparison: `plot.py RESULT.json OUT.png COLLECTIVE`. Only this needs matplotlib."""

import json
import sys

PAYLOAD_SHARE = 0.993  # what headers leave at MTU 9000
_MARKERS = "osD^v<>P*Xhd"


def short_size(size):
    for unit, scale in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if size >= scale:
            return f"{size / scale:g}{unit}"
    return f"{size:g}"


def draw(result, path, collective):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    summary = [peer for peer in result["summary"] if peer["collective"] == collective]
    is_intra = result["lab"]["hosts"] == 1
    figure, axes = pyplot.subplots(1, 1 if is_intra else 2, figsize=(8 if is_intra else 14, 6))
    axes = [axes] if is_intra else list(axes)
    limit = result["limit_bytes_per_s"] / 1e9
    colors = pyplot.get_cmap("tab10").colors
    for index, peer in enumerate(summary):
        sizes = sorted(int(size) for size in peer["sizes"])
        if not sizes:
            continue
        look = {
            "marker": _MARKERS[index % len(_MARKERS)],
            "color": colors[index % len(colors)],
            "label": peer["peer"],
            "linestyle": "-" if index < len(colors) else ":",
            "markersize": 5,
            "linewidth": 2.6 if peer["peer"].startswith("polyrail") else 1.3,
        }
        _line(axes[0], peer, sizes, "bus_gb_per_s", look)
        if not is_intra:
            large = [size for size in sizes if size >= 16 << 10]
            _line(axes[1], peer, large, "percent", look)
    axes[0].set_yscale("log")
    axes[0].set_ylabel("bus bandwidth, GB/s")
    if not is_intra:
        axes[0].axhline(limit, color="black", linestyle="--", label=f"all rails: {limit:.3g} GB/s")
        axes[1].axhline(100, color="black", linestyle="--")
        axes[1].axhline(100 * PAYLOAD_SHARE, color="black", linestyle=":", linewidth=1)
        axes[1].set_ylim(0, 105)
        axes[1].set_ylabel("per cent of the rails' rates (dotted: without headers)")
    for axis in axes:
        axis.set_xscale("log", base=2)
        ticks = sorted({int(size) for peer in summary for size in peer["sizes"]})
        if axis is not axes[0]:
            ticks = [size for size in ticks if size >= 16 << 10]
        axis.set_xticks(ticks)
        axis.set_xticklabels([short_size(size) for size in ticks])
        axis.minorticks_off()
        axis.set_xlabel("bytes")
        axis.grid(True, which="major", alpha=0.3)
    figure.suptitle(f"{result['titles'][collective]}: {result['heading']}")
    lines, labels = axes[0].get_legend_handles_labels()
    figure.legend(lines, labels, loc="lower center", ncol=6, fontsize=9, frameon=False)
    figure.tight_layout(rect=(0, 0.03 * (1 + len(labels) // 6), 1, 1))
    figure.savefig(path, dpi=110)


def _line(axis, peer, sizes, key, look):
    if not sizes:
        return
    spread = [peer["sizes"][str(size)][key] for size in sizes]
    axis.plot(sizes, [each["median"] for each in spread], **look)
    axis.fill_between(
        sizes,
        [each["min"] for each in spread],
        [each["max"] for each in spread],
        color=look["color"],
        alpha=0.12,
        linewidth=0,
    )


if __name__ == "__main__":
    with open(sys.argv[1]) as source:
        draw(json.load(source), sys.argv[2], sys.argv[3])
