"""Paths as Spark's readers take them, which look for wildcards in each."""

import re

_WILDCARDS = re.compile(r"[\\{}\[\]*?]")


def literally(uri: str) -> str:
    """A path to be read that is none but itself, whatever characters its folders have.

    Spark can be told to look for no wildcards (`__globPaths__`), but then reads all paths once for each that has one.
    """
    return _WILDCARDS.sub(r"\\\g<0>", uri)
