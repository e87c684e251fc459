"""The one kind of error that a person is meant to read."""


class Refusal(Exception):
    """An error whose text is one plain sentence with the fault and the cure. Packages subclass it.

    The command line prints the text on stderr and exits with 1; REST answers it as problem+json.
    """
