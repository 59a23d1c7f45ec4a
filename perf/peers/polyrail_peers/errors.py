"""What ends a comparison early, with its exit status."""


class CompareError(Exception):
    status = 1


class UsageError(CompareError):
    status = 2


class CannotError(CompareError):
    """This machine cannot run it, for example without root; as polyrail-lab's status 3."""

    status = 3
