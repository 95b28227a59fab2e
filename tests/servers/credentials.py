"""A server that records who signs requests, and that hands out credentials as clouds do, on 127.0.0.1.

It answers as an object store without objects, as Amazon's metadata, container and role services, and as the token
services of Google and Azure. The credentials it hands out expire at once, so a client must renew them.
"""

from __future__ import annotations

import json
import re
import threading
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

_SOON = timedelta(seconds=30)
"""Clients renew credentials that last less than some minutes before each request."""


class CredentialServer:
    """`signers` are those of the requests for objects, in order; `handed_out` counts credentials."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.signers: list[str] = []
        self.handed_out = 0
        self._lock = threading.Lock()

    def next_name(self) -> str:
        """Return a name for the next credentials."""
        with self._lock:
            self.handed_out += 1
            return f"TENANT{self.handed_out:02d}"

    def record(self, headers: dict[str, str], path: str) -> None:
        """Record the access key, the account, the token or the signature of a request."""
        signed = headers.get("authorization", "")
        found = re.search(r"Credential=([^/]+)/|SharedKey ([^:]+):|Bearer (.+)", signed)
        signature = parse_qs(urlsplit(path).query).get("sig", ["nobody"])[0]
        with self._lock:
            self.signers.append(next(filter(None, found.groups())) if found else signature)


@contextmanager
def credential_server() -> Iterator[CredentialServer]:
    """Run the server for the block."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as listening:
        server = listening.state = CredentialServer(f"http://127.0.0.1:{listening.server_port}")  # type: ignore[attr-defined]
        thread = threading.Thread(target=listening.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            listening.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """Print nothing."""

    def _answer(self) -> None:
        state: CredentialServer = self.server.state  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode("utf-8", "replace")
        path = urlsplit(self.path).path
        expires = datetime.now(UTC) + _SOON
        moment = expires.strftime("%Y-%m-%dT%H:%M:%SZ")
        keys = {"SecretAccessKey": "x" * 40, "Token": "t", "Expiration": moment, "Code": "Success", "Type": "AWS-HMAC"}
        if path == "/latest/api/token":
            self._send("token-of-the-metadata", {"x-aws-ec2-metadata-token-ttl-seconds": "60"})
        elif path.endswith("/security-credentials/"):
            self._send("role")
        elif path.endswith("/security-credentials/role") or path == "/container":
            self._send(json.dumps({"AccessKeyId": state.next_name(), **keys}))
        elif "AssumeRole" in body:
            self._send(_ASSUMED.format(name=state.next_name(), moment=moment), {"content-type": "text/xml"})
        elif path == "/google-token":
            claims = parse_qs(body)["assertion"][0].split(".")[1]
            issuer = json.loads(urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["iss"]
            name = f"{issuer.partition('@')[0]}-{state.next_name()}"
            self._send(json.dumps({"access_token": name, "expires_in": 30, "token_type": "Bearer"}))
        elif path == "/azure-identity":
            granted = {"access_token": state.next_name(), "expires_on": str(int(expires.timestamp()))}
            self._send(json.dumps({**granted, "resource": "r", "token_type": "Bearer"}))
        else:
            state.record({name.lower(): value for name, value in self.headers.items()}, self.path)
            self._send("", status=404)

    do_GET = do_PUT = do_POST = do_HEAD = _answer  # noqa: N815 - the names of the base class

    def _send(self, text: str, headers: dict[str, str] | None = None, status: int = 200) -> None:
        data = text.encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


_ASSUMED = (
    "<AssumeRoleResponse xmlns='https://sts.amazonaws.com/doc/2011-06-15/'><AssumeRoleResult><Credentials>"
    "<AccessKeyId>{name}</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>t</SessionToken>"
    "<Expiration>{moment}</Expiration></Credentials><AssumedRoleUser><Arn>a</Arn><AssumedRoleId>a:b</AssumedRoleId>"
    "</AssumedRoleUser></AssumeRoleResult><ResponseMetadata><RequestId>1</RequestId></ResponseMetadata>"
    "</AssumeRoleResponse>"
)
