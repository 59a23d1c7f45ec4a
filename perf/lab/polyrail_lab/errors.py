"""The ways a lab command can fail, each with its exit status. Messages are one line."""

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_CANNOT = 3
EXIT_TIMEOUT = 124


class LabError(Exception):
    """Something did not work; `status` is what the command exits with."""

    status = EXIT_FAILED


class UsageError(LabError):
    """The caller asked for something that makes no sense."""

    status = EXIT_USAGE


class CannotError(LabError):
    """This machine or user cannot run a lab; callers may skip or fall back."""

    status = EXIT_CANNOT
