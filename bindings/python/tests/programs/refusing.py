"""A call must be refused."""


def refused(kind, call, *parts):
    """The exception of a refused call, with these parts in its text."""
    try:
        call()
    except kind as error:
        assert all(part in str(error) for part in parts), f"{error!r} has not {parts}"
        return error
    raise AssertionError("it was not refused")
