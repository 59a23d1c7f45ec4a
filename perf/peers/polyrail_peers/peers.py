"""The peers: what each needs, and the command line that runs it on a lab's rails.

"one" uses the fastest rail, "all" uses all rails as the peer does by itself, "split" and "weights"
are told the true rates by hand.
"""

import dataclasses
import os
import shutil
import tempfile
from typing import Callable

from .collectives import COLLECTIVES
from .launch import launch

INSTALL = "perf/peers/install_peers.sh, then build again"
ONLY_ALL_REDUCE = ("all_reduce",)


@dataclasses.dataclass(frozen=True)
class Peer:
    name: str
    what: str
    needs: tuple  # programs: our own by name, others by path search
    # words(lab, arguments): the command line with the shared loop's arguments
    words: Callable
    prepare: Callable = lambda lab: None
    needs_multipath: bool = False
    collectives: tuple = tuple(COLLECTIVES)  # names

    def run(self, lab, plan, timeout_s):
        """One launch over all sizes of the plan."""
        return launch(self.words(lab, plan.arguments()), timeout_s)

    def missing(self, programs):
        """Why this peer cannot run here; empty if it can."""
        for program in self.needs:
            own = os.path.join(programs, program)
            if not os.path.exists(own) and not shutil.which(program):
                how = "build it" if program.startswith("peers_poly") else INSTALL
                return f"no {program} ({how})"
        if self.needs_multipath and not _kernel_has_multipath():
            return "the kernel has no Multipath TCP"
        return ""


def _kernel_has_multipath():
    try:
        with open("/proc/sys/net/mptcp/enabled") as file:
            return file.read().strip() == "1"
    except OSError:
        return False


# ---- command lines ----


def _devices(rails):
    return ",".join(f"rail{rail}" for rail in rails)


def _openmpi(lab, arguments, *settings):
    hosts = ",".join(f"h{host}:{lab.ranks_per_host}" for host in range(lab.hosts))
    words = ["mpirun.openmpi", "--allow-run-as-root", "--host", hosts, "-np", str(lab.rank_count)]
    words += ["--mca", "plm_rsh_agent", lab.program("polyrail-lab-rsh")]
    words += ["--mca", "oob_tcp_if_include", "rail0"]
    # Each host sees all processors: bound, every host's first rank would sit on processor 0.
    words += ["--bind-to", "none"]
    if lab.rank_count > (os.cpu_count() or 1):
        words += ["--mca", "mpi_yield_when_idle", "1"]
    return lab.exec_words(0, *words, *settings, lab.program("peers_openmpi"), *arguments)


def _openmpi_tcp(lab, arguments, rails, *settings):
    return _openmpi(
        lab,
        arguments,
        *("--mca", "pml", "ob1", "--mca", "btl", "tcp,self"),
        *("--mca", "btl_tcp_if_include", _devices(rails)),
        *settings,
    )


def _openmpi_weights(lab, arguments):
    settings = []
    for rail, rate in enumerate(lab.rates):
        settings += ["--mca", f"btl_tcp_bandwidth_rail{rail}", str(round(rate / 1e6))]
        settings += ["--mca", f"btl_tcp_latency_rail{rail}", "50"]
    return _openmpi_tcp(lab, arguments, lab.rails, *settings)


def _openmpi_ucx(lab, arguments, transports, rails):
    return _openmpi(
        lab,
        arguments,
        *("--mca", "pml", "ucx", "--mca", "btl", "^openib"),
        *("--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any"),
        *_pairs("-x {}={}", _ucx_settings(transports, rails)),
    )


def _mpich(lab, arguments, transports, rails):
    hosts = ",".join(f"h{host}:{lab.ranks_per_host}" for host in range(lab.hosts))
    words = ["mpirun.mpich", "-launcher", "ssh", "-launcher-exec", lab.program("polyrail-lab-rsh")]
    words += ["-hosts", hosts, "-np", str(lab.rank_count), "-iface", "rail0"]
    words += _pairs("-genv {} {}", _ucx_settings(transports, rails))
    return lab.exec_words(0, *words, lab.program("peers_mpich"), *arguments)


def _ucx_settings(transports, rails):
    settings = {"UCX_TLS": transports}
    if rails:
        settings["UCX_NET_DEVICES"] = _devices(rails)
        settings["UCX_MAX_RNDV_RAILS"] = str(len(rails))
    return settings


def _pairs(form, settings):
    return [word for key, value in settings.items() for word in form.format(key, value).split()]


def _gloo(lab, arguments, devices, shares):
    store = tempfile.mkdtemp(prefix="gloo-", dir=lab.scratch)
    words = [lab.program("peers_gloo"), "--store", store, "--devices", devices]
    return lab.run_words(*words, "--shares", shares, *arguments)


def _gloo_split(lab, arguments):
    shares = ",".join(str(lab.rates[rail]) for rail in lab.rails)
    return _gloo(lab, arguments, _devices(lab.rails), shares)


def _sockets(lab, arguments, shares, *flags):
    addresses = ",".join(
        "/".join(lab.address(host, rail) for rail in lab.rails) for host in range(lab.hosts)
    )
    words = [lab.program("peers_sockets"), "--addresses", addresses]
    words += ["--shares", ",".join(map(str, shares)), *flags]
    return lab.run_words(*words, *arguments)


def _sockets_split(lab, arguments, *flags):
    return _sockets(lab, arguments, [lab.rates[rail] for rail in lab.rails], *flags)


def _multipath(lab, arguments):
    return _sockets(lab, arguments, [1], "--multipath", "--subflows", str(len(lab.rails) - 1))


def _polyrail(lab, arguments, *flags):
    return lab.run_words(lab.program("peers_polyrail"), *flags, *arguments)


# ---- the table ----

_OPENMPI = ("mpirun.openmpi", "peers_openmpi")
_MPICH = ("mpirun.mpich", "peers_mpich")

PEERS = (
    Peer("polyrail", "Polyrail, told nothing", ("peers_polyrail",), _polyrail),
    Peer(
        "openmpi-one",
        "Open MPI over TCP, fastest rail",
        _OPENMPI,
        lambda lab, arguments: _openmpi_tcp(lab, arguments, lab.rails[:1]),
    ),
    Peer(
        "openmpi-all",
        "Open MPI over TCP, all rails",
        _OPENMPI,
        lambda lab, arguments: _openmpi_tcp(lab, arguments, lab.rails),
    ),
    Peer("openmpi-weights", "Open MPI, bandwidths given by hand", _OPENMPI, _openmpi_weights),
    Peer(
        "openmpi-ucx",
        "Open MPI over UCX, all rails",
        _OPENMPI,
        lambda lab, arguments: _openmpi_ucx(lab, arguments, "tcp,self", lab.rails),
    ),
    Peer(
        "mpich-one",
        "MPICH over UCX, fastest rail",
        _MPICH,
        lambda lab, arguments: _mpich(lab, arguments, "tcp,self", lab.rails[:1]),
    ),
    Peer(
        "mpich-all",
        "MPICH over UCX, all rails",
        _MPICH,
        lambda lab, arguments: _mpich(lab, arguments, "tcp,self", lab.rails),
    ),
    Peer(
        "gloo-one",
        "Gloo ring, fastest rail",
        ("peers_gloo",),
        lambda lab, arguments: _gloo(lab, arguments, _devices(lab.rails[:1]), "1"),
        collectives=ONLY_ALL_REDUCE,
    ),
    Peer(
        "gloo-split",
        "Gloo ring, split by hand",
        ("peers_gloo",),
        _gloo_split,
        collectives=ONLY_ALL_REDUCE,
    ),
    Peer(
        "mptcp",
        "socket ring over kernel Multipath TCP",
        ("peers_sockets", "ip"),
        _multipath,
        prepare=lambda lab: lab.join_multipath(),
        needs_multipath=True,
        collectives=ONLY_ALL_REDUCE,
    ),
    Peer(
        "sockets-one",
        "socket ring, fastest rail",
        ("peers_sockets",),
        lambda lab, arguments: _sockets(lab, arguments, [1]),
        collectives=ONLY_ALL_REDUCE,
    ),
    Peer(
        "sockets-equal",
        "socket ring, equal shares",
        ("peers_sockets",),
        lambda lab, arguments: _sockets(lab, arguments, [1] * len(lab.rails)),
        collectives=ONLY_ALL_REDUCE,
    ),
    Peer(
        "sockets-split",
        "socket ring told the true rates",
        ("peers_sockets",),
        _sockets_split,
        collectives=ONLY_ALL_REDUCE,
    ),
    Peer(
        "sockets-spin",
        "sockets-split that never sleeps",
        ("peers_sockets",),
        lambda lab, arguments: _sockets_split(lab, arguments, "--spin"),
        collectives=ONLY_ALL_REDUCE,
    ),
)

INTRA_PEERS = (
    Peer("polyrail", "Polyrail, ordinary buffers", ("peers_polyrail",), _polyrail),
    Peer(
        "polyrail-shared",
        "Polyrail, buffers from mem_alloc",
        ("peers_polyrail",),
        lambda lab, arguments: _polyrail(lab, arguments, "--shared"),
    ),
    Peer(
        "openmpi-vader",
        "Open MPI's own shared memory",
        _OPENMPI,
        lambda lab, arguments: _openmpi(
            lab, arguments, "--mca", "pml", "ob1", "--mca", "btl", "vader,self"
        ),
    ),
    Peer(
        "openmpi-ucx",
        "Open MPI over UCX shared memory",
        _OPENMPI,
        lambda lab, arguments: _openmpi_ucx(lab, arguments, "shm,self", []),
    ),
    Peer(
        "mpich",
        "MPICH over UCX shared memory",
        _MPICH,
        lambda lab, arguments: _mpich(lab, arguments, "shm,self", []),
    ),
    Peer(
        "gloo-loopback",
        "Gloo ring over the loopback",
        ("peers_gloo",),
        lambda lab, arguments: _gloo(lab, arguments, "lo", "1"),
        collectives=ONLY_ALL_REDUCE,
    ),
)
