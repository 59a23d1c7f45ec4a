"""The command line of `compare`."""

import argparse
import os
import signal
import subprocess
import sys

from . import faults, sweep, tables, versus
from .collectives import ALL_REDUCE, COLLECTIVES, parse_collectives
from .errors import CompareError, UsageError
from .laboratory import Laboratory
from .peers import INTRA_PEERS, PEERS
from .special import AllReducePerf, UcxPerftest
from .units import parse_rate, parse_size

HERE = os.path.dirname(os.path.realpath(__file__))
ALL_PEERS = (*PEERS, AllReducePerf(), UcxPerftest())
DEFAULT_PEERS = (
    "polyrail,openmpi-all,openmpi-weights,openmpi-ucx,mpich-all,gloo-split,mptcp,"
    "sockets-one,sockets-split,ucx-perftest"
)
FAULT_PEERS = "polyrail,openmpi-all,openmpi-ucx,mpich-all,gloo-split,mptcp,sockets-split"
DEFAULT_SIZES = "8,1k,8k,64k,256k,1M,4M,16M,64M,256M"
INTRA_SIZES = "8,1k,64k,1M,64M"

DESCRIPTION = """\
Polyrail beside other libraries, on the same shaped rails, in the same run.

Peers take turns, so that all of them meet the same state of the machine; every launch is a new
process. Prints tables and writes CSV, JSON and a PNG. Peers that are not installed are left out
with the reason. Only ratios within one run mean anything: the rails are made of memory."""

EXAMPLES = """\
examples:
  compare                                       two hosts, rails 1 + 2.5 + 0.5 Gbit/s
  compare --rails 800mbit,200mbit --sizes 64k,1M,16M --runs 3
  compare --hosts 4 --rails 500mbit,1.25gbit,250mbit
  compare --fault slow                          one of two rails at a tenth in mid-run
  compare --intra                               two ranks in one host
  compare --collective all --sizes 8,64k,4M     or some: all_gather,broadcast
  compare --peers polyrail,openmpi              a name, or the beginning of several

exit status: 0; 1 failed; 2 wrong arguments; 3 this machine or user cannot run it"""


def make_parser():
    parser = argparse.ArgumentParser(
        prog="compare",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--hosts", type=int, default=2, metavar="N", help="default 2")
    parser.add_argument("--rails", metavar="RATES", help="default 1gbit,2.5gbit,500mbit")
    parser.add_argument(
        "--unequal", action="append", default=[], metavar="H:R=RATE", help="h1:rail0=500mbit"
    )
    parser.add_argument("--sizes", metavar="SIZES", help=f"default {DEFAULT_SIZES}")
    parser.add_argument("--runs", type=int, default=5, metavar="R", help="launches each, default 5")
    parser.add_argument("--peers", metavar="LIST", help="see --list")
    parser.add_argument(
        "--collective",
        default="all_reduce",
        metavar="LIST",
        help=f"all, or of {', '.join(COLLECTIVES)}; default all_reduce",
    )
    parser.add_argument(
        "--budget", type=float, default=0.15, metavar="S", help="timed calls per size, default 0.15"
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--fault", choices=("slow", "drop", "down"), help="harm rail1 in mid-run")
    mode.add_argument("--intra", action="store_true", help="two ranks in one host")
    parser.add_argument("--out", default="compare", metavar="PREFIX", help="of the files written")
    parser.add_argument("--no-plot", action="store_true")
    parser.add_argument(
        "--quiet",
        type=float,
        default=0,
        metavar="S",
        help="before each launch wait up to S seconds until other programs are quiet",
    )
    parser.add_argument("--install", action="store_true", help="first install the peers' packages")
    parser.add_argument("--list", action="store_true", help="name the peers and end")
    parser.add_argument("--programs", metavar="DIR", help="default: build/bin")
    return parser


def program_directory(given):
    """Where the binaries are: given, beside the link that was called, or in the source's build."""
    beside = os.path.dirname(os.path.abspath(sys.argv[0]))
    built = os.path.join(HERE, "..", "..", "..", "build", "bin")
    for directory in (given, beside, os.path.normpath(built)):
        if directory and os.path.exists(os.path.join(directory, "polyrail-lab")):
            return os.path.abspath(directory)
    raise UsageError("where are the binaries? Build, or give --programs DIR")


def choose_peers(text, available, programs):
    """Those that were asked for and can run; says why others cannot."""
    chosen = []
    for word in (word for word in text.split(",") if word):
        found = [peer for peer in available if peer.name == word]
        found = found or [peer for peer in available if peer.name.startswith(word)]
        if not found:
            raise UsageError(f"no peer {word!r} (compare --list)")
        chosen += [peer for peer in found if peer not in chosen]
    ready = []
    for peer in chosen:
        if why := peer.missing(programs):
            print(f"compare: without {peer.name}: {why}", file=sys.stderr)
        else:
            ready.append(peer)
    if not ready:
        raise CompareError("none of these peers can run here")
    return ready


def make_plans(collectives, peers, sizes, budget_s):
    """For each collective the peers that have it; says which do not."""
    for peer in peers:
        if lacks := [each.name for each in collectives if each.name not in peer.collectives]:
            only = ", ".join(peer.collectives)
            print(
                f"compare: {peer.name} has only {only}: not in {', '.join(lacks)}", file=sys.stderr
            )
    plans = []
    for collective in collectives:
        having = [peer for peer in peers if collective.name in peer.collectives]
        if not having:
            raise CompareError(f"none of these peers has {collective.name}")
        plans.append(sweep.Plan(collective, having, sizes, budget_s))
    return plans


def list_peers(programs):
    for title, peers in (("several hosts:", ALL_PEERS), ("one host (--intra):", INTRA_PEERS)):
        print(title)
        for peer in peers:
            why = peer.missing(programs)
            print(f"  {peer.name:<17}{peer.what}{f' (cannot run: {why})' if why else ''}")
    return 0


def install(programs):
    script = os.path.join(HERE, "..", "install_peers.sh")
    if subprocess.run(["sh", script]).returncode != 0:
        raise CompareError("install_peers.sh failed")
    build = os.path.dirname(programs)
    for words in (["cmake", build], ["cmake", "--build", build]):
        if subprocess.run(words, stdout=subprocess.DEVNULL).returncode != 0:
            raise CompareError(f"{' '.join(words)} failed")


def compare_sizes(lab, plans, arguments):
    measurements, launches = sweep.sweep(lab, plans, arguments.runs, arguments.quiet)
    heading = tables.heading(lab, arguments.runs)
    summary = []
    for plan in plans:
        own = sweep.summarise(measurements, launches, plan)
        print(f"{plan.collective.title}: {heading}\n")
        print(tables.sweep_text(own, lab))
        summary += own
    beside = versus.versus(summary)
    if beside:
        print(tables.versus_text(beside))
    tables.write_csv(arguments.out + ".csv", measurements)
    result = {
        "heading": heading,
        "lab": {"hosts": lab.hosts, "rates_bits_per_s": lab.rates, "unequal": lab.unequal},
        "limit_bytes_per_s": sweep.rail_limit(lab),
        "titles": {plan.collective.name: plan.collective.title for plan in plans},
        "summary": summary,
        "versus_openmpi": beside,
        "launches": launches,
        "measurements": measurements,
    }
    tables.write_json(arguments.out + ".json", result)
    written = [arguments.out + ".csv", arguments.out + ".json"]
    if not arguments.no_plot:
        written += draw(arguments.out, [plan.collective.name for plan in plans])
    print("written:", *written)
    return 1 if any(each["failure"] for each in launches) else 0


def draw(prefix, collectives):
    """Draws each collective; the files written, none without matplotlib.

    Debian's matplotlib belongs to Debian's Python, which `python3` need not be.
    """
    script = os.path.join(HERE, "plot.py")
    for python in dict.fromkeys((sys.executable, "/usr/bin/python3")):
        done = subprocess.run([python, "-c", "import matplotlib"], capture_output=True)
        if done.returncode == 0:
            written = []
            for name in collectives:
                path = f"{prefix}.png" if len(collectives) == 1 else f"{prefix}-{name}.png"
                subprocess.run([python, script, prefix + ".json", path, name], check=True)
                written.append(path)
            return written
    print("compare: no plot: needs matplotlib (Debian: python3-matplotlib)", file=sys.stderr)
    return []


def compare_faults(lab, peers, arguments):
    size = parse_size(arguments.sizes or "16M")
    records = faults.run_faults(lab, peers, arguments.fault, size, arguments.runs)
    print(f"{ALL_REDUCE.title}: {tables.heading(lab, arguments.runs)}\n")
    print(faults.faults_text(records, lab, arguments.fault, size))
    tables.write_csv(arguments.out + ".csv", records)
    tables.write_json(arguments.out + ".json", {"fault": arguments.fault, "records": records})
    print(f"written: {arguments.out}.csv {arguments.out}.json")
    return 0


def run(arguments):
    programs = program_directory(arguments.programs)
    if arguments.list:
        return list_peers(programs)
    if arguments.install:
        install(programs)
    if arguments.runs < 1:
        raise UsageError("--runs: at least 1")
    collectives = parse_collectives(arguments.collective)
    if arguments.fault and collectives != [ALL_REDUCE]:
        raise UsageError("--fault is for all_reduce only")
    default_rails = "1gbit,1gbit" if arguments.fault else "1gbit,2.5gbit,500mbit"
    rates = [parse_rate(word) for word in (arguments.rails or default_rails).split(",")]
    if arguments.intra:
        peers = choose_peers(
            arguments.peers or ",".join(peer.name for peer in INTRA_PEERS), INTRA_PEERS, programs
        )
        lab = Laboratory(programs, hosts=1, rates=rates, ranks_per_host=2)
    else:
        names = arguments.peers or (FAULT_PEERS if arguments.fault else DEFAULT_PEERS)
        available = PEERS if arguments.fault else ALL_PEERS
        peers = choose_peers(names, available, programs)
        lab = Laboratory(programs, arguments.hosts, rates, arguments.unequal)
    if arguments.fault and len(rates) < 2:
        raise UsageError("--fault needs two rails")
    with lab:
        if arguments.fault:
            return compare_faults(lab, peers, arguments)
        default_sizes = INTRA_SIZES if arguments.intra else DEFAULT_SIZES
        sizes = [parse_size(word) for word in (arguments.sizes or default_sizes).split(",")]
        plans = make_plans(collectives, peers, sorted(sizes), arguments.budget)
        return compare_sizes(lab, plans, arguments)


def main(words):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        return run(make_parser().parse_args(words))
    except CompareError as error:
        print(f"compare: {error}", file=sys.stderr)
        return error.status
    except KeyboardInterrupt:
        return 130
