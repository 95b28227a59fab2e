"""Refuse a Spark master of no known form, or that does not answer, before a session is asked of it.

Spark itself starts a JVM first, tries an absent master for minutes, and then prints hundreds of lines of frames.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Sequence
from urllib.parse import urlsplit

from lance_ops.core.errors import ConfigError

__all__ = ["check_answers", "check_master", "endpoint_of"]

_STANDALONE = "spark://"
_STANDALONE_PORT = 7077
_LOCAL = re.compile(r"local(\[(\*|[1-9]\d*)(\s*,\s*\d+)?\])?|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]")
_KINDS = "local[*], local[4], spark://host:7077, yarn, k8s://https://host:443, or sc://host:15002 of Spark Connect"
_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")  # through which a client of Spark Connect reaches its server
_PATIENCE_S = 5.0


def check_master(master: str) -> None:
    """Raise `ConfigError` for a text of no known form, and for a standalone master that accepts no connection.

    Whatever has a scheme passes: Spark loads managers of other clusters by it.
    """
    if "://" not in master and master != "yarn" and not _LOCAL.fullmatch(master):
        raise ConfigError(f"Spark has no master {master!r}: there are {_KINDS}")
    if master.startswith(_STANDALONE):
        hosts = master.removeprefix(_STANDALONE).split(",")
        check_answers(master, [endpoint_of(f"{_STANDALONE}{host}", _STANDALONE_PORT) for host in hosts])


def check_answers(master: str, endpoints: Sequence[tuple[str, int]]) -> None:
    """Raise `ConfigError` if none of some hosts and ports accepts a connection.

    A server of Spark Connect behind a proxy is not tried.
    """
    if not master.startswith(_STANDALONE) and any(os.environ.get(name) for name in _PROXIES):
        return
    reasons = []
    for host, port in endpoints:
        try:
            with socket.create_connection((host, port), _PATIENCE_S):
                return
        except OSError as error:
            reasons.append(f"{host}:{port}: {error}")
    raise ConfigError(f"Spark's master {master} does not answer ({'; '.join(reasons)}): check the address, or start it")


def endpoint_of(url: str, default_port: int) -> tuple[str, int]:
    """Return host and port of a master's URL.

    Raise `ConfigError` if it names no host; the message leaves out the parameters of the URL.
    """
    scheme = url.partition("://")[0]
    try:
        parts = urlsplit(url.partition(";")[0])  # parameters may hold a token
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(f"a master is named as {scheme}://host:{default_port}: {error}") from None
    if not host:
        raise ConfigError(f"a master is named as {scheme}://host:{default_port}: there is no host")
    return host, port or default_port
