"""Where the API server is, and how the operator shows who it is: in a pod, or with a kubeconfig outside of one."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lakestream_operator.errors import SettingsError

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where Kubernetes puts a pod's token, its API server's certificate authority and its namespace."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """How to reach an API server."""

    server: str
    ca_data: str | None
    """PEM of its certificate authority; none: the machine's."""
    insecure: bool = False
    certificate: str | None = None
    """PEM of a client certificate."""
    key: str | None = None
    """PEM of its key."""
    token: str | None = None
    token_file: Path | None = None
    """Read for each connection: kubelet renews it."""
    command: tuple[str, ...] = ()
    """Prints a token as an ExecCredential."""
    command_env: Mapping[str, str] | None = None
    namespace: str = "default"

    def ssl_context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cadata=self.ca_data)
        if self.certificate is not None and self.key is not None:
            # Python takes certificates from files only.
            with tempfile.TemporaryDirectory() as folder:
                certificate, key = Path(folder, "certificate.pem"), Path(folder, "key.pem")
                certificate.write_text(self.certificate, encoding="ascii")
                key.write_text(self.key, encoding="ascii")
                context.load_cert_chain(certificate, key)
        if self.insecure:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context

    async def current_token(self) -> str | None:
        """The token to show now.

        Raises:
            SettingsError: it cannot be had.
        """
        if self.token_file is not None:
            return _read(self.token_file).strip()
        if self.command:
            return await _token_of(self.command, self.command_env or {})
        return self.token


def find_credentials(environment: Mapping[str, str]) -> Credentials:
    """Those of the pod, if this is one, else those of the kubeconfig (`KUBECONFIG`, or `~/.kube/config`).

    Raises:
        SettingsError: there are none, or they cannot be read.
    """
    if "KUBECONFIG" not in environment and "KUBERNETES_SERVICE_HOST" in environment:
        host, port = environment["KUBERNETES_SERVICE_HOST"], environment.get("KUBERNETES_SERVICE_PORT", "443")
        return Credentials(
            server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
            ca_data=_read(ACCOUNT / "ca.crt"),
            token_file=ACCOUNT / "token",
            namespace=_read(ACCOUNT / "namespace").strip(),
        )
    path = environment.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
    return of_kubeconfig(Path(path.split(os.pathsep)[0]))


def of_kubeconfig(path: Path) -> Credentials:
    """The credentials of a kubeconfig's current context.

    Raises:
        SettingsError: it cannot be read, or names nothing that is there.
    """
    config = yaml.safe_load(_read(path)) or {}
    context = _named(config, "contexts", config.get("current-context"), path)["context"]
    cluster = _named(config, "clusters", context.get("cluster"), path)["cluster"]
    user = _named(config, "users", context.get("user"), path)["user"]
    command = user.get("exec") or {}
    return Credentials(
        server=cluster["server"].rstrip("/"),
        ca_data=_pem(cluster, "certificate-authority", path),
        insecure=cluster.get("insecure-skip-tls-verify", False),
        certificate=_pem(user, "client-certificate", path),
        key=_pem(user, "client-key", path),
        token=user.get("token"),
        token_file=path.parent / user["tokenFile"] if "tokenFile" in user else None,
        command=(command["command"], *(command.get("args") or ())) if command else (),
        command_env={one["name"]: one["value"] for one in command.get("env") or ()},
        namespace=context.get("namespace", "default"),
    )


def _named(config: Mapping[str, Any], section: str, name: str | None, path: Path) -> Mapping[str, Any]:
    found = [one for one in config.get(section) or () if one["name"] == name]
    if not found:
        raise SettingsError(f"{path}: there is no entry {name!r} in {section}; choose a context that is there")
    entry: Mapping[str, Any] = found[0]
    return entry


def _pem(entry: Mapping[str, Any], field: str, path: Path) -> str | None:
    """A certificate or key, which is in the kubeconfig or in a file that it names."""
    if f"{field}-data" in entry:
        return base64.b64decode(entry[f"{field}-data"]).decode("ascii")
    return _read(path.parent / entry[field]) if field in entry else None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}; it is needed to reach the API server") from error


async def _token_of(command: tuple[str, ...], env: Mapping[str, str]) -> str:
    process = await asyncio.create_subprocess_exec(
        *command, env={**os.environ, **env}, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    if process.returncode:
        raise SettingsError(f"{command[0]} gave no token: {err.decode(errors='replace').strip()}")
    token: str = json.loads(out)["status"]["token"]
    return token
