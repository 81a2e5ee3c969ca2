"""Names of the JVM, looked up once.

Py4J asks the JVM what `jvm.org.apache.…` is each time, a call for each dot, and `functions.col` as well. A name that is
not imported is looked for in all jars: 170 look-ups for each batch, of some milliseconds of CPU together each. What a
name stands for does not change once all jars are there, which here they are from the start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from py4j.java_gateway import JavaClass, JavaMember, JavaPackage, JVMView

_KEPT = (JavaClass, JavaMember, JavaPackage)
"""Classes, methods and packages; a static field has another value tomorrow."""


def keep_names() -> None:
    """Let what Py4J finds by a name stay where it was found. To be called when PySpark has made its imports."""
    for place in (JVMView, JavaPackage, JavaClass):
        if not hasattr(place.__getattr__, "keeps"):
            place.__getattr__ = _keeping(place.__getattr__)


def _keeping(find: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    def keeping(place: Any, name: str) -> Any:
        found = find(place, name)
        if isinstance(found, _KEPT):
            place.__dict__[name] = found
        return found

    keeping.keeps = True  # type: ignore[attr-defined]
    return keeping
