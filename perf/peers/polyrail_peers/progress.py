"""Says on the terminal what is going on; quiet one-liners where there is no terminal."""

import sys
import time


class Progress:
    def __init__(self, total):
        self.total_ = total
        self.done_ = 0
        self.start_ = time.monotonic()
        self.is_terminal_ = sys.stderr.isatty()

    def show(self, text):
        left = ""
        if self.done_:
            passed = time.monotonic() - self.start_
            left = f", about {passed / self.done_ * (self.total_ - self.done_) / 60:.0f} min left"
        self.done_ += 1
        line = f"[{self.done_}/{self.total_}] {text}{left}"
        if self.is_terminal_:
            print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)

    def note(self, text):
        self.end()
        print(f"compare: {text}", file=sys.stderr, flush=True)

    def end(self):
        if self.is_terminal_:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
