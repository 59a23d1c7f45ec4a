"""Rates and sizes as people write them, to numbers and back."""

import re

from .errors import UsageError

_RATE = re.compile(r"([0-9]*\.?[0-9]+)([kmgt]?)bit")
_SIZE = re.compile(r"([0-9]*\.?[0-9]+)([kmg]?)(?:i?b)?")
_THOUSANDS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def parse_rate(text):
    """'2.5gbit' -> 2500000000 bits per second."""
    match = _RATE.fullmatch(text.strip().lower())
    if not match:
        raise UsageError(f"not a rate: {text!r} (write for example 500mbit or 2.5gbit)")
    bits = round(float(match.group(1)) * _THOUSANDS[match.group(2)])
    if bits < 8000:
        raise UsageError(f"rate below 8kbit: {text!r}")
    return bits


def parse_rates(text):
    """'1gbit,2.5gbit' -> [1000000000, 2500000000]."""
    return [parse_rate(word) for word in text.split(",") if word.strip()]


def show_rate(bits):
    """2500000000 -> '2.5gbit'."""
    for unit, scale in (("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3)):
        if bits >= scale:
            return f"{bits / scale:g}{unit}"
    return f"{bits:g}bit"


def parse_size(text):
    """'256k', '1M', '16MiB' -> bytes; k, m, g are powers of two."""
    match = _SIZE.fullmatch(text.strip().lower())
    if not match:
        raise UsageError(f"not a size: {text!r} (write for example 64k, 16M or 1GiB)")
    return int(float(match.group(1)) * _BINARY[match.group(2)])


def show_size(size):
    """16777216 -> '16 MiB'."""
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= scale:
            return f"{size / scale:g} {unit}"
    return f"{size:g} B"
