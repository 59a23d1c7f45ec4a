#!/usr/bin/env python3
"""Checks that the example in README.md is the file that the build compiles."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
readme = (ROOT / "README.md").read_text(encoding="utf-8")
match = re.search(r"<!-- (\S+) -->\n```cpp\n(.*?)\n```", readme, re.S)
if not match:
    sys.exit("README.md holds no marked example")
if (ROOT / match.group(1)).read_text(encoding="utf-8").strip() != match.group(2).strip():
    sys.exit(f"the example in README.md differs from {match.group(1)}")
