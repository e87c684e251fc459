"""The one kind of error that a person is meant to read."""


class Refusal(Exception):
    """Its text is one plain sentence that says what is wrong and what to do about it. Rooms subclass it.

    The command line prints it on stderr and exits with 1; REST answers it as problem+json.
    """
