"""Amazon S3 and servers that speak its protocol, through obstore.

Credentials that are neither options nor environment variables (profiles, roles, containers, instances) come from
botocore, so that they are those which s3fs would use.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from lance_ops.core.errors import StoreError
from lance_ops.store.services.contract import proxies_of
from lance_ops.store.services.obstore.errors import RequestFailed
from lance_ops.store.services.obstore.profile_files import special_settings
from lance_ops.store.services.obstore.service import ObstoreService
from lance_ops.store.services.obstore.unsigned_head import region_of_bucket
from lance_ops.store.services.s3 import S3
from lance_ops.store.storage_options import read_bool

__all__ = ["ObstoreS3"]

_CONDITION_FAILED = 412
# What only botocore reads: addresses other than Amazon's usual ones, and the certificates to trust.
_ADDRESS_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT")
_BOTOCORE_CERTIFICATES, _CERTIFICATES = "AWS_CA_BUNDLE", "SSL_CERT_FILE"
_CHINA = "cn-"
_DEFAULT_REGION = "us-east-1"
_TAKEN_OVER = {
    "endpoint": "endpoint",
    "encryption": "aws_server_side_encryption",
    "encryption_key": "aws_sse_kms_key_id",
}
_SWITCHES = {
    "virtual_hosted": "virtual_hosted_style_request",
    "s3_express": "s3_express",
    "encryption_bucket_key": "aws_sse_bucket_key_enabled",
}


class ObstoreS3(ObstoreService):
    """Amazon S3, and servers that speak its protocol, through obstore.

    obstore reports a concurrent request (409) as an object that exists; only a failed condition (412) says that.
    """

    store_class = "S3Store"
    deleted_at_once = 1000
    cuts_listings = True

    def __init__(self) -> None:
        super().__init__(S3())

    def given(self, authority: str, options: Mapping[str, object]) -> dict[str, str]:
        return S3().by_name(options)

    def serves(self, options: Mapping[str, object]) -> bool:
        special = special_settings()
        other_certificates = "ca_bundle" in special or os.environ.get(_BOTOCORE_CERTIFICATES) not in (
            None,
            os.environ.get(_CERTIFICATES),
        )
        if not special and not other_certificates and os.environ.keys().isdisjoint(_ADDRESS_VARIABLES):
            return True
        endpoint = self.given("", options).get("endpoint", "")  # options are slower to read than the variables
        return endpoint.startswith("http://" if other_certificates else "http")

    def config(self, authority: str, options: Mapping[str, object]) -> dict[str, Any]:
        found = self.given(authority, options)
        config: dict[str, Any] = {theirs: found[ours] for ours, theirs in _TAKEN_OVER.items() if ours in found}
        config |= {theirs: True for ours, theirs in _SWITCHES.items() if read_bool(found, ours)}
        if read_bool(found, "skip_signature"):
            config["skip_signature"] = True
        elif "access_key_id" in found and "secret_access_key" in found:
            keys = ("access_key_id", "secret_access_key", "session_token")
            config |= {name: found[name] for name in keys if name in found}
        else:
            session = import_module("botocore.session").get_session()
            credentials = _BotocoreCredentials(session)  # without any, nothing is asked of the network
            region = self._region(authority, options, found.get("region") or session.get_config_variable("region"))
            return {"config": _placed(config, region), "credential_provider": credentials}
        return {"config": _placed(config, self._region(authority, options, found.get("region")))}

    def address(self, config: Mapping[str, str]) -> str:
        return f"{config.get('endpoint') or _address_of(config['region'])}/{config['bucket']}"

    def _region(self, authority: str, options: Mapping[str, object], configured: str | None) -> str:
        """Return the region to sign for: that of the bucket, unless the caller names one or an endpoint.

        The environment and profiles name the region of most of a user's buckets. botocore follows a redirect to the
        region of any other bucket; obstore does not.
        """
        found, region = self.given(authority, options), configured or _DEFAULT_REGION
        if "endpoint" in found or S3().names_region(options):
            return region
        verifies = not read_bool(found, "allow_invalid_certificates")
        return region_of_bucket(_bucket_url(region, authority), proxies_of(found), verifies=verifies) or region

    def is_taken(self, error: RequestFailed) -> bool:
        return error.status == _CONDITION_FAILED


class _BotocoreCredentials:
    """What obstore calls for credentials. botocore itself renews those that expire."""

    def __init__(self, session: Any) -> None:
        self._credentials = session.get_credentials()
        if self._credentials is None:
            raise StoreError("no credentials for S3: neither options nor the environment nor a file has any")

    def __call__(self) -> dict[str, Any]:
        frozen = self._credentials.get_frozen_credentials()
        expires = hasattr(self._credentials, "refresh_needed")
        return {
            "access_key_id": frozen.access_key,
            "secret_access_key": frozen.secret_key,
            "token": frozen.token,
            # obstore is told that they expire now, so that botocore decides before each request.
            "expires_at": datetime.now(UTC) if expires else None,
        }


def _placed(config: Mapping[str, Any], region: str) -> dict[str, Any]:
    """Add the region, and the address where obstore would name another one."""
    address = {"endpoint": _address_of(region)} if region.startswith(_CHINA) else {}
    return {**address, **config, "region": region}


def _bucket_url(region: str, bucket: str) -> str:
    return f"{_address_of(region)}/{bucket}"


def _address_of(region: str) -> str:
    return f"https://s3.{region}.amazonaws.com{'.cn' if region.startswith(_CHINA) else ''}"
