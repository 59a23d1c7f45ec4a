"""One lab: what was asked for, its names and addresses, and its state file.

Everything a lab makes outside its own namespaces lies in /run/polyrail-lab/NAME and among the
entries of `ip netns`, which begin with "prlab-NAME-".
"""

import contextlib
import dataclasses
import fcntl
import json
import os
import re

from .errors import LabError, UsageError

STATE_ROOT = "/run/polyrail-lab"
NAMESPACE_ROOT = "/run/netns"  # where `ip netns` keeps them
SUBNET = "10.77"
MAX_HOSTS, MAX_RAILS = 64, 16
DIRECTIONS = ("out", "in")  # as the host sees them


@dataclasses.dataclass
class Spec:
    """What `up` was asked for. Rates are bits per second."""

    hosts: int
    rates: list  # rates[host][rail]
    topology: str  # "direct" or "switch"
    mtu: int = 9000
    congestion: str = "cubic"
    burst_bytes: int = 0  # 0: from the rate
    queue_bytes: int = 0
    shm_bytes: int = 0  # 0: the kernel's default
    has_ipv6: bool = False


def new_link(rate):
    """State of one host's end of one rail."""
    return {
        "rate": {"out": rate, "in": rate},
        "drop": {"out": False, "in": False},
        "link": "up",
    }


class Lab:
    def __init__(self, name):
        if not re.fullmatch(r"[a-z0-9]{1,16}", name):
            raise UsageError(f"not a lab name: {name!r} (1 to 16 of a-z 0-9)")
        self.name = name
        self.directory = os.path.join(STATE_ROOT, name)
        self.spec = None
        self.links = []  # links[host][rail]
        self.carried = {}  # "namespace/device": bytes carried by queues that are gone
        self.is_up = False

    # ---- state ----

    @contextlib.contextmanager
    def locked(self):
        """One command at a time changes a lab; the lock ends with the process.

        The lock is on the lab's directory, which goes when the lab does.
        """
        descriptor = self._lock()
        try:
            yield self
        finally:
            for directory in (self.directory, STATE_ROOT):
                with contextlib.suppress(OSError):
                    os.rmdir(directory)  # stays while something is in it
            os.close(descriptor)

    def _lock(self):
        while True:
            with contextlib.suppress(FileNotFoundError):  # removed by another command meanwhile
                os.makedirs(self.directory, exist_ok=True)
                descriptor = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                # A lock on a directory that has been removed while we waited locks nothing.
                with contextlib.suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(descriptor), os.stat(self.directory)):
                        return descriptor
                os.close(descriptor)

    def load(self):
        """Read the state file if there is one; `is_up` says so."""
        try:
            with open(self.path("state.json")) as file:
                state = json.load(file)
        except FileNotFoundError:
            self.is_up = False
            return self
        except ValueError as error:
            raise LabError(f"{self.path('state.json')} is damaged ({error}): run down") from None
        self.spec = Spec(**state["spec"])
        self.links = state["links"]
        self.carried = state["carried"]
        self.is_up = True
        return self

    def load_running(self):
        if not self.load().is_up:
            raise LabError(f"lab {self.name!r} is not up (polyrail-lab --lab {self.name} up ...)")
        return self

    def save(self):
        path = self.path("state.json")
        state = {
            "spec": dataclasses.asdict(self.spec),
            "links": self.links,
            "carried": self.carried,
        }
        with open(path + ".new", "w") as file:
            json.dump(state, file, indent=1)
        os.replace(path + ".new", path)

    # ---- names ----

    def path(self, *parts):
        return os.path.join(self.directory, *parts)

    def host_path(self, host, what):
        return self.path(f"h{host}", what)

    @property
    def scratch(self):
        """A directory that all hosts see and that goes when the lab does."""
        return self.path("scratch")

    @property
    def prefix(self):
        return f"prlab-{self.name}-"

    def host_namespace(self, host):
        return f"{self.prefix}h{host}"

    def switch_namespace(self, rail):
        return f"{self.prefix}sw{rail}"

    def namespaces(self):
        """The lab's network namespaces that exist, also those of an `up` that broke off."""
        return [name for name in _all_namespaces() if name.startswith(self.prefix)]

    @staticmethod
    def address(host, rail):
        return f"{SUBNET}.{rail}.{host + 1}"

    @staticmethod
    def address6(host, rail):
        return f"fd77:0:0:{rail:x}::{host + 1:x}"

    def hosts(self):
        return range(self.spec.hosts)

    def rails(self):
        return range(len(self.spec.rates[0]))

    def host_index(self, text):
        match = re.fullmatch(r"h?([0-9]+)", str(text))
        if not match or int(match.group(1)) >= self.spec.hosts:
            raise UsageError(f"no host {text!r} (there are h0 to h{self.spec.hosts - 1})")
        return int(match.group(1))

    def rail_index(self, text):
        match = re.fullmatch(r"(?:rail)?([0-9]+)", str(text))
        if not match or int(match.group(1)) >= len(self.rails()):
            raise UsageError(f"no rail {text!r} (there are rail0 to rail{len(self.rails()) - 1})")
        return int(match.group(1))

    def processes(self):
        """Ids of the processes inside the lab's network namespaces."""
        inside = {os.stat(f"{NAMESPACE_ROOT}/{name}").st_ino for name in self.namespaces()}
        pids = []
        for name in os.listdir("/proc"):
            # Processes that end meanwhile are gone; those that have ended have no namespace.
            with contextlib.suppress(OSError):
                if name.isdigit() and os.stat(f"/proc/{name}/ns/net").st_ino in inside:
                    pids.append(int(name))
        return sorted(set(pids) - {os.getpid()})

    def host_environment(self, host):
        """Variables for the programs of a host; the prefix LAB_ is the lab's own."""
        return {
            "LAB_NAME": self.name,
            "LAB_SCRATCH": self.scratch,
            "LAB_HOST": str(host),
            "LAB_HOSTS": str(self.spec.hosts),
            "LAB_DEVICES": ",".join(f"rail{rail}" for rail in self.rails()),
            "LAB_ADDRESSES": ",".join(self.address(host, rail) for rail in self.rails()),
            "LAB_RATES": ",".join(str(self.links[host][r]["rate"]["out"]) for r in self.rails()),
        }


def _all_namespaces():
    return os.listdir(NAMESPACE_ROOT) if os.path.isdir(NAMESPACE_ROOT) else []


def all_labs():
    """Every lab that has left something on this machine."""
    names = set(os.listdir(STATE_ROOT)) if os.path.isdir(STATE_ROOT) else set()
    for namespace in _all_namespaces():
        if match := re.match(r"prlab-([a-z0-9]+)-", namespace):
            names.add(match.group(1))
    return [Lab(name) for name in sorted(names)]
