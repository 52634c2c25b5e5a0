"""The one error for data that are not on this machine."""


class MissingData(FileNotFoundError):
    """A dataset that is not on this machine: where it was looked for, and how to get it."""
