"""The commands: check what was asked, then have the part do it that can."""

import os
import re
import secrets
import sys

from . import build, hosts, launch, report, wires
from .arguments import make_parser
from .check import check
from .ephemeral import kept
from .errors import EXIT_FAILED, EXIT_USAGE, LabError, UsageError
from .lab import DIRECTIONS, MAX_HOSTS, MAX_RAILS, Lab, Spec, all_labs
from .system import require_machine
from .units import parse_rate, parse_rates, parse_size

CHANGES = ("set-rate", "cut", "mend")  # what --at may do


def spec_from(arguments):
    if not 1 <= arguments.hosts <= MAX_HOSTS:
        raise UsageError(f"--hosts {arguments.hosts}: from 1 to {MAX_HOSTS}")
    rails = parse_rates(arguments.rails)
    if not 1 <= len(rails) <= MAX_RAILS:
        raise UsageError(f"--rails {arguments.rails!r}: from 1 to {MAX_RAILS} rates")
    if not 576 <= arguments.mtu <= 65535:
        raise UsageError(f"--mtu {arguments.mtu}: from 576 to 65535")
    topology = arguments.topology
    if topology == "auto":
        topology = "direct" if arguments.hosts == 2 else "switch"
    if topology == "direct" and arguments.hosts != 2:
        raise UsageError("--topology direct is for 2 hosts")
    rates = [list(rails) for _ in range(arguments.hosts)]
    for text in (word for option in arguments.unequal for word in option.split(",")):
        match = re.fullmatch(r"h([0-9]+):(?:rail)?([0-9]+)=(.+)", text.strip())
        if not match:
            raise UsageError(f"--unequal {text!r}: write for example h1:rail0=500mbit")
        host, rail = int(match.group(1)), int(match.group(2))
        if host >= arguments.hosts or rail >= len(rails):
            raise UsageError(f"--unequal {text!r}: no such host or rail")
        rates[host][rail] = parse_rate(match.group(3))
    return Spec(
        hosts=arguments.hosts,
        rates=rates,
        topology=topology,
        mtu=arguments.mtu,
        congestion=arguments.congestion,
        burst_bytes=parse_size(arguments.burst) if arguments.burst else 0,
        queue_bytes=parse_size(arguments.queue) if arguments.queue else 0,
        has_ipv6=arguments.ipv6,
        shm_bytes=parse_size(arguments.shm) if arguments.shm else 0,
    )


def up(lab, arguments):
    spec = spec_from(arguments)
    require_machine()
    with lab.locked():
        if not arguments.fresh and build.is_as_built(lab, spec):
            print(f"already up: {report.describe(spec)}")
            return 0
        build.down(lab)
        build.up(lab, spec)
    print(f"up: {report.describe(spec)}")
    return 0


def down(lab, arguments):
    require_machine()
    for each in all_labs() if arguments.all else [lab]:
        with each.locked():
            build.down(each)
    return 0


def status(lab, arguments):
    require_machine()
    if not lab.load().is_up:
        print("{}" if arguments.json else f"lab {lab.name}: down")
        return EXIT_FAILED
    print(report.status_json(lab) if arguments.json else report.status_text(lab))
    return 0


def list_labs(_, arguments):
    require_machine()
    for lab in all_labs():
        what = report.describe(lab.spec) if lab.load().is_up else "broken: run down"
        print(f"{lab.name:<17}{what}")
    return 0


def probe(_, arguments):
    require_machine()
    print("this machine can run a lab")
    return 0


def program_words(arguments):
    words = arguments.program[1:] if arguments.program[:1] == ["--"] else arguments.program
    if not words:
        raise UsageError("which program? Write it after --")
    return words


def launch_from(lab, arguments):
    """Check all of it now rather than in the middle of the run."""
    on = list(lab.hosts())
    if arguments.on:
        on = [lab.host_index(word) for word in arguments.on.split(",")]
    if arguments.ranks_per_host < 1:
        raise UsageError("--ranks-per-host: at least 1")
    events = [launch.parse_event(text, CHANGES) for text in arguments.at]
    for _, words in events:
        change = make_parser(COMMANDS).parse_args(words)
        targets(lab, change)
    return launch.Launch(
        words=program_words(arguments),
        on=on,
        ranks_per_host=arguments.ranks_per_host,
        timeout_s=arguments.timeout,
        grace_s=arguments.grace,
        port=arguments.port,
        pin=arguments.pin,
        prefix=not arguments.no_prefix,
        quiet=arguments.quiet,
        events=events,
    )


def apply_event(lab):
    def apply(words):
        change = make_parser(COMMANDS).parse_args(words)
        change.command(lab, change)

    return apply


def run(lab, arguments):
    require_machine()
    lab.load_running()
    return launch.run(lab, launch_from(lab, arguments), apply_event(lab))


def ephemeral(lab, arguments):
    spec = spec_from(arguments)
    program_words(arguments)
    require_machine()
    if arguments.lab is None:
        lab = Lab("e" + secrets.token_hex(4))
    with kept(lab):
        with lab.locked():
            build.down(lab)
            build.up(lab, spec)
        return launch.run(lab, launch_from(lab, arguments), apply_event(lab))


def execute(lab, arguments):
    require_machine()
    lab.load_running()
    replace_process(lab, lab.host_index(arguments.host), program_words(arguments))


def rsh(lab, words):
    """What MPI launchers expect of ssh: options, a host, and a command for its shell."""
    words = list(words)
    while words and words[0].startswith("-"):
        if words.pop(0) in ("-l", "-p", "-i", "-o", "-F", "-E", "-c", "-m") and words:
            words.pop(0)
    if len(words) < 2:
        raise UsageError("rsh HOST COMMAND ...")
    require_machine()
    lab.load_running()
    replace_process(lab, lab.host_index(words[0]), ["sh", "-c", " ".join(words[1:])])


def replace_process(lab, host, words):
    """Become the program, inside the host."""
    os.environ.update(lab.host_environment(host))
    hosts.enter(lab, host)
    try:
        os.execvp(words[0], words)
    except OSError as error:
        raise LabError(f"{words[0]}: {error.strerror}") from None


def targets(lab, arguments):
    """The (host, rail) links that a change names: one host's, or every host's."""
    rail = lab.rail_index(arguments.rail)
    chosen = lab.hosts() if arguments.host is None else [lab.host_index(arguments.host)]
    return [(host, rail) for host in chosen]


def change_links(lab, arguments, change):
    require_machine()
    with lab.locked():
        lab.load_running()
        for host, rail in targets(lab, arguments):
            change(host, rail)
        lab.save()
    return 0


def directions(arguments):
    return DIRECTIONS if arguments.dir == "both" else (arguments.dir,)


def set_rate(lab, arguments):
    bits = parse_rate(arguments.rate)
    ways = directions(arguments)
    return change_links(lab, arguments, lambda h, r: wires.set_rate(lab, h, r, bits, ways))


def cut(lab, arguments):
    if arguments.drop:
        ways = directions(arguments)
        return change_links(lab, arguments, lambda h, r: wires.set_drop(lab, h, r, True, ways))
    if arguments.dir != "both":
        raise UsageError("cut --dir needs --drop: a link goes down both ways")
    return change_links(lab, arguments, lambda h, r: wires.set_link(lab, h, r, "down"))


def mend(lab, arguments):
    return change_links(lab, arguments, lambda h, r: wires.mend(lab, h, r))


def check_rates(lab, arguments):
    require_machine()
    return 0 if check(lab.load_running(), arguments.time, arguments.need) else EXIT_FAILED


COMMANDS = {
    "up": up,
    "run": run,
    "ephemeral": ephemeral,
    "exec": execute,
    "set-rate": set_rate,
    "cut": cut,
    "mend": mend,
    "status": status,
    "check": check_rates,
    "down": down,
    "list": list_labs,
    "probe": probe,
}


def main(words):
    default_name = os.environ.get("LAB_NAME") or "main"
    try:
        if words[:1] == ["rsh"] and words[1:2] not in (["-h"], ["--help"]):
            return rsh(Lab(default_name), words[1:])  # its options are ssh's, not ours
        arguments = make_parser(COMMANDS).parse_args(words)
        return arguments.command(Lab(arguments.lab or default_name), arguments)
    except LabError as error:
        print(f"polyrail-lab: {error}", file=sys.stderr)
        return error.status
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return EXIT_FAILED
    except SystemExit as stop:  # argparse: 0 after --help
        return EXIT_USAGE if stop.code else 0
