"""Results as text within 100 columns, as CSV and as JSON."""

import csv
import json

from .units import show_rate, show_size
from .versus import is_faster

SMALL_BYTES = 64 << 10  # from here on the rails' rate counts, below it the time of a call
NOTED_PROCESSORS = 0.15  # of other programs, from which on a remark says so
_COLUMN = 10
_NAME = 17
_WIDTH = 100


def heading(lab, runs):
    rails = " + ".join(show_rate(rate) for rate in lab.rates)
    besides = f" ({', '.join(lab.unequal)})" if lab.unequal else ""
    return f"{lab.hosts} hosts, {lab.rank_count} ranks, rails {rails}{besides}, {runs} runs each"


def sweep_text(summary, lab):
    """Time of small calls, rate of large ones, and processor time."""
    sizes = sorted({size for peer in summary for size in peer["sizes"]})
    small = [size for size in sizes if size < SMALL_BYTES]
    large = [size for size in sizes if size >= SMALL_BYTES]
    parts = []
    if lab.hosts == 1:
        parts.append("Time of one call, us: median (least-greatest)")
        parts += _grid(summary, sizes, lambda cell: _range(cell["mean_us"], _digits))
        parts.append("Bus bandwidth, GB/s:")
        parts += _grid(summary, large, lambda cell: _range(cell["bus_gb_per_s"], "{:.2f}".format))
    else:
        parts.append("Time of one call, us: median (least-greatest)")
        parts += _grid(summary, small, lambda cell: _range(cell["mean_us"], _digits))
        parts.append("Bus bandwidth, per cent of the rails' rates (headers leave 99.3):")
        parts += _grid(summary, large, lambda cell: _range(cell["percent"], "{:.0f}".format))
        parts.append("Bytes per rail of host 0:")
        parts += _shares(summary)
    parts.append("Processor time per call, us: all ranks / the whole machine, with interrupts")
    parts += _grid(summary, sizes, _processor)
    parts += _remarks(summary)
    return "\n".join(parts)


def _digits(value):
    """Three digits."""
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def _range(spread, show):
    """'99 (97-99)', or only the median if all runs agree."""
    middle, least, most = (show(spread[key]) for key in ("median", "min", "max"))
    return middle if least == most else f"{middle} ({least}-{most})"


def _processor(cell):
    if "processor_us" not in cell:
        return "-"
    return f"{_short(cell['processor_us']['median'])} / {_short(cell['machine_busy_us']['median'])}"


def _short(us):
    return f"{us / 1e6:.1f}s" if us >= 1e6 else f"{us / 1e3:.1f}m" if us >= 1e3 else f"{us:.1f}"


def _grid(summary, sizes, show):
    """One row per peer, one column per size."""
    rows = {
        peer["peer"]: [
            show(peer["sizes"][size]) if size in peer["sizes"] else "-" for size in sizes
        ]
        for peer in summary
    }
    return _blocks("peer", sizes, rows)


def _blocks(title, sizes, rows):
    """Rows of cells by name; as many columns as fit, then the next block of columns."""
    lines = []
    columns = range(len(sizes))
    heads = [show_size(size) for size in sizes]
    widths = [
        max(_COLUMN, len(heads[column]), *(len(cells[column]) for cells in rows.values())) + 1
        for column in columns
    ]
    left = list(columns)
    while left:
        block = []
        while left and _NAME + sum(widths[column] for column in [*block, left[0]]) <= _WIDTH:
            block.append(left.pop(0))
        if not block:
            block.append(left.pop(0))
        for name, cells in ((title, heads), *rows.items()):
            text = "".join(f"{cells[column]:>{widths[column]}}" for column in block)
            lines.append(f"  {name:<{_NAME - 2}}{text}".rstrip())
        lines.append("")
    return lines


def _shares(summary):
    lines = []
    for peer in summary:
        shares = "  ".join(
            f"rail{rail} {100 * share:3.0f} %" for rail, share in enumerate(peer["rail_shares"])
        )
        lines.append(f"  {peer['peer']:<{_NAME - 2}} {shares}".rstrip())
    return [*lines, ""]


def _remarks(summary):
    """What failed, and where other programs took processors from the measurement."""
    lines = []
    for peer in summary:
        notes = []
        if peer["failed"]:
            notes.append(f"{peer['failed']} of {peer['runs']} runs failed: {peer['failure']}")
        if peer["others"] >= NOTED_PROCESSORS:
            notes.append(f"other programs took {peer['others']:.1f} processors")
        if notes:
            lines.append(f"  {peer['peer']:<{_NAME - 2}} {'; '.join(notes)}"[:_WIDTH].rstrip())
    return ["Remarks:", *lines, ""] if lines else []


def versus_text(rows):
    """The rows of versus(): times and ratios by collective and size, and where it is behind."""
    lines = []
    sizes = sorted({row["bytes"] for row in rows})
    for peer in dict.fromkeys(row["peer"] for row in rows):
        own = [row for row in rows if row["peer"] == peer]
        cells = {}
        for row in own:
            by_size = cells.setdefault(row["collective"], ["-"] * len(sizes))
            mark = " " if is_faster(row) else "!"
            by_size[sizes.index(row["bytes"])] = f"{_digits(row['us'])} {_times(row)}{mark}"
        lines.append(f"{peer}: us of a call, and how many times as long the best Open MPI takes")
        lines += _blocks("collective", sizes, cells)
        behind = [row for row in own if not is_faster(row)]
        lines.append(f"! {peer} is not faster in {len(behind)} of {len(own)}" + ":" * bool(behind))
        for row in sorted(behind, key=lambda row: row["ratio"]):
            lines.append(
                f"  {row['collective']:<{_NAME - 2}}{show_size(row['bytes']):>{_COLUMN}}"
                f"{_digits(row['us']):>{_COLUMN}} us, {row['rival']} {_digits(row['rival_us'])} us"
                f" ({_times(row)})"
            )
        lines.append("")
    return "\n".join(lines)


def _times(row):
    return f"x{_digits(row['ratio'])}"


def write_csv(path, rows):
    columns = list(dict.fromkeys(key for row in rows for key in row))
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)


def write_json(path, content):
    with open(path, "w") as file:
        json.dump(content, file, indent=1)
        file.write("\n")
