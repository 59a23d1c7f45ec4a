"""What the command line takes, and its help."""

import argparse

DESCRIPTION = """\
Several hosts with unlike rails on one machine.

A host is a set of Linux namespaces with its own interfaces, host name, /dev/shm, /etc/hosts and
boot id. A rail is an independent link (rail0, rail1, ... in every host) whose rate is limited in
both directions. Host H has the address 10.77.RAIL.(H+1) on each rail. With 2 hosts rails are
direct cables; with more each rail has a switch. Needs root."""

EXAMPLES = """\
examples:
  polyrail-lab up --hosts 2 --rails 1gbit,2.5gbit,500mbit
  polyrail-lab run -- build/bin/all_reduce_perf -b 8 -e 64M -f 8
  polyrail-lab run --at "1:set-rate rail1 200mbit" --at "3:cut rail0" --at "5:mend rail0" -- PROG
  polyrail-lab exec h0 -- ip -br addr
  polyrail-lab down
  polyrail-lab ephemeral --hosts 4 --rails 1gbit,500mbit -- PROG     up, run and down in one

exit status: 0; 1 failed; 2 wrong arguments; 3 this machine or user cannot run a lab;
  run and ephemeral: that of the first rank that failed, 124 after --timeout, 128 + signal"""


def add_spec_arguments(parser):
    parser.add_argument("--hosts", type=int, default=2, metavar="N", help="default 2")
    parser.add_argument(
        "--rails", default="1gbit,1gbit", metavar="RATES", help="default 1gbit,1gbit"
    )
    parser.add_argument(
        "--unequal",
        action="append",
        default=[],
        metavar="HOST:RAIL=RATE",
        help="another rate for one host's rail: h1:rail0=500mbit (commas, or repeat)",
    )
    parser.add_argument(
        "--topology",
        choices=("auto", "direct", "switch"),
        default="auto",
        help="default: direct cables for 2 hosts, else a switch per rail",
    )
    parser.add_argument("--mtu", type=int, default=9000, help="default 9000")
    parser.add_argument(
        "--congestion", default="cubic", metavar="NAME", help="of TCP; default cubic"
    )
    parser.add_argument("--burst", metavar="SIZE", help="token bucket (default: from the rate)")
    parser.add_argument("--queue", metavar="SIZE", help="queue of a rail (default: from the rate)")
    parser.add_argument("--ipv6", action="store_true", help="also fd77:0:0:RAIL::(H+1)")
    parser.add_argument("--shm", metavar="SIZE", help="size of each host's /dev/shm")


def add_run_arguments(parser):
    parser.add_argument("--ranks-per-host", type=int, default=1, metavar="K", help="default 1")
    parser.add_argument("--on", metavar="HOSTS", help="only these, in rank order: h0,h2")
    parser.add_argument("--timeout", type=float, default=0, metavar="S", help="end all after S")
    parser.add_argument(
        "--grace",
        type=float,
        default=3.0,
        metavar="S",
        help="after one rank failed the others may go on for S seconds (default 3)",
    )
    parser.add_argument(
        "--at",
        action="append",
        default=[],
        metavar="S:COMMAND",
        help="set-rate, cut or mend, S seconds after the start (repeatable)",
    )
    parser.add_argument("--port", type=int, default=0, help="MASTER_PORT (default: random)")
    parser.add_argument("--pin", action="store_true", help="rank r on processor r modulo all")
    parser.add_argument("--no-prefix", action="store_true", help="no [rank] before each line")
    parser.add_argument("--quiet", action="store_true", help="no remarks of the lab's own")
    add_program_argument(parser)


def add_program_argument(parser):
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="-- PROGRAM ...")


def add_link_arguments(parser, direction_help):
    parser.add_argument("--host", metavar="HOST", help="only this host's link (default: all)")
    if direction_help:
        parser.add_argument(
            "--dir", choices=("both", "out", "in"), default="both", help=direction_help
        )


def make_parser(functions):
    """`functions` maps each command's name to what does it."""
    parser = argparse.ArgumentParser(
        prog="polyrail-lab",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--lab", metavar="NAME", help="for several labs at once (default: $LAB_NAME or main)"
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name, text, description=None):
        command = commands.add_parser(name, help=text, description=description or text)
        command.set_defaults(command=functions.get(name))
        return command

    command = add("up", "make the hosts and rails; does nothing if they are there already")
    add_spec_arguments(command)
    command.add_argument("--fresh", action="store_true", help="rebuild even if it is up")

    command = add(
        "run",
        "run a program on every host, with rank variables",
        "Sets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT and a new "
        "POLYRAIL_KEY, so that a Polyrail program needs nothing else; also LAB_HOST, LAB_HOSTS, "
        "LAB_DEVICES, LAB_ADDRESSES, LAB_RATES and LAB_SCRATCH, a directory that all hosts see.",
    )
    add_run_arguments(command)

    command = add("ephemeral", "up, run and down in one, also if it is killed")
    add_spec_arguments(command)
    add_run_arguments(command)

    command = add("exec", "become a program inside one host")
    command.add_argument("host", metavar="HOST")
    add_program_argument(command)

    # Shown in the help only: its options are ssh's, so `main` hands its words on unparsed.
    add("rsh", "what MPI launchers take for ssh: rsh HOST COMMAND, in the lab $LAB_NAME")

    command = add("set-rate", "change the rate of a rail; connections live on")
    command.add_argument("rail", metavar="RAIL")
    command.add_argument("rate", metavar="RATE")
    add_link_arguments(command, "seen from the host")

    command = add(
        "cut",
        "take a rail down, or let its packets vanish",
        "Without --drop the hosts see that the link goes down. With --drop they do not.",
    )
    command.add_argument("rail", metavar="RAIL")
    command.add_argument("--drop", action="store_true", help="packets vanish, the link stays up")
    add_link_arguments(command, "with --drop: one way only, seen from the host")

    command = add("mend", "undo every cut of a rail")
    command.add_argument("rail", metavar="RAIL")
    add_link_arguments(command, None)

    command = add("status", "rates, cuts, bytes and losses (exit status 1 if down)")
    command.add_argument("--json", action="store_true")

    command = add("check", "measure with iperf3: each rail alone, then all at once")
    command.add_argument("--time", type=float, default=3.0, metavar="S", help="default 3")
    command.add_argument(
        "--need", type=float, default=97.0, metavar="PERCENT", help="or exit status 1; default 97"
    )

    command = add("down", "remove everything, also processes left inside")
    command.add_argument("--all", action="store_true", help="every lab of this machine")

    add("list", "the labs of this machine")
    add("probe", "say whether this machine can run a lab (exit status 0 or 3)")
    return parser
