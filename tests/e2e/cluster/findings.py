"""What a person would look at when something on the cluster went wrong."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.commands import CommandError, Kubectl, Object

_LINES = 40


def findings(namespaces: list[str]) -> str:
    """Conditions of LakeStreams, pods, events and the last lines of each container that is not well."""
    return "\n".join(line for namespace in namespaces for line in _of(Kubectl(namespace)))


def _of(kubectl: Kubectl) -> Iterator[str]:
    yield f"=== namespace {kubectl.namespace}"
    # The cause first: of a long text the end may be cut off.
    for stream in _items(kubectl, "lakestreams"):
        yield f"--- LakeStream {stream['metadata']['name']}"
        for condition in stream.get("status", {}).get("conditions", []):
            yield "    {type}={status} {reason}: {message}".format_map({"reason": "", "message": "", **condition})
        for writer in stream.get("status", {}).get("writers", []):
            yield f"    {writer}"
    for arguments in (
        ("get", "lakestreams,sparkapplications,pods", "-o", "wide"),
        ("get", "events", "--sort-by=.metadata.creationTimestamp"),
    ):
        yield f"--- kubectl {' '.join(arguments)}"
        yield _tail(_try(kubectl, *arguments), 60)
    for pod in _items(kubectl, "pods"):
        name = pod["metadata"]["name"]
        yield f"--- pod {name}: {pod['status'].get('phase')} {pod['status'].get('message', '')}"
        yield _tail(_try(kubectl, "logs", name, "--all-containers", f"--tail={_LINES}"), _LINES)


def _items(kubectl: Kubectl, kind: str) -> list[Object]:
    try:
        return kubectl.list(kind)
    except CommandError:
        return []


def _try(kubectl: Kubectl, *arguments: str) -> str:
    try:
        return kubectl.run(*arguments)
    except CommandError as error:
        return str(error)


def _tail(text: str, lines: int) -> str:
    return "\n".join("    " + line for line in text.splitlines()[-lines:])
