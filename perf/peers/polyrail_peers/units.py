"""Rates and sizes as people write them."""

import re

from .errors import UsageError

_THOUSANDS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
_BINARY = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def parse_rate(text):
    """'2.5gbit' -> 2500000000 bits per second."""
    match = re.fullmatch(r"([0-9]*\.?[0-9]+)([kmg]?)bit", text.strip().lower())
    if not match:
        raise UsageError(f"not a rate: {text!r} (write for example 500mbit or 2.5gbit)")
    return round(float(match.group(1)) * _THOUSANDS[match.group(2)])


def parse_size(text):
    """'64k' -> 65536; k, m, g are powers of two."""
    match = re.fullmatch(r"([0-9]+)([kmg]?)(?:i?b)?", text.strip().lower())
    size = int(match.group(1)) * _BINARY[match.group(2)] if match else 0
    if size < 4 or size % 4 != 0:
        raise UsageError(f"not a size: {text!r} (a multiple of 4 bytes, for example 8, 64k or 16M)")
    return size


def show_size(size):
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= scale and size % scale == 0:
            return f"{size // scale} {unit}"
    return f"{size} B"


def show_rate(bits):
    for unit, scale in (("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3)):
        if bits >= scale:
            return f"{bits / scale:g}{unit}"
    return f"{bits:g}bit"
