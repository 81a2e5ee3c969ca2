"""Which driver is to carry out what was asked for with a document."""


def is_for(asked: str, newest: int, *, definition: str, epoch: int) -> bool:
    """Whether a driver is: one with the same definition; or one that took over since, whose document is no earlier one.

    Args:
        asked: digest of the definition that it was asked for with; empty: any.
        newest: epoch of the newest driver by then.
        definition: digest of the driver's.
        epoch: of the driver.
    """
    return asked in ("", definition) or epoch > newest
