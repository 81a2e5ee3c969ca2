"""Where the API server is, and how the operator shows who it is: as the package `kubernetes` finds it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import yaml
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config, refresh_token

from lakestream_operator.errors import SettingsError

Credentials = Configuration
"""In the package's words: the API server's address too."""

_CONNECTIONS = 32
"""Of a client, so many requests at a time: more would only wait in the API server."""


@asynccontextmanager
async def credentials_of(environ: Mapping[str, str]) -> AsyncIterator[Configuration]:
    """Those of the kubeconfig (`KUBECONFIG`), else of the pod, if this is one, else of `~/.kube/config`; kept fresh
    while the context lasts.

    Raises:
        SettingsError: there are none, or they cannot be read.
    """
    # Else each request reads ~/.netrc, in a thread of its own.
    session = {"trust_env": False}
    configuration = Configuration(client_session_kwargs=session, connection_pool_maxsize=_CONNECTIONS)
    refreshing = None
    try:
        if "KUBERNETES_SERVICE_HOST" in environ and "KUBECONFIG" not in environ:
            # The token is read again each minute: the kubelet renews it.
            load_incluster_config(configuration)
        else:
            path = environ.get("KUBECONFIG")
            loader = await load_kube_config(path, client_configuration=configuration, persist_config=False)
            # Else it logs what its command (`exec`) said, and goes on as nobody.
            if configuration.host.startswith("https:") and not (configuration.api_key or configuration.cert_file):
                raise ConfigException(f"none of user {loader.current_context['context']['user']} can be used")
            refreshing = asyncio.create_task(refresh_token(loader, configuration))
    except (ConfigException, OSError, yaml.YAMLError) as error:
        raise SettingsError(f"there are no credentials for an API server: {error}") from error
    try:
        yield configuration
    finally:
        if refreshing is not None:
            refreshing.cancel()
