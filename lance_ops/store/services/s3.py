"""Amazon S3 and servers that speak its protocol, through s3fs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from lance_ops.core.errors import InvalidInput
from lance_ops.store.services.contract import GENERAL_ALIASES, ListedObject, Service, proxies_of
from lance_ops.store.services.credential_sources import environment_path
from lance_ops.store.storage_options import Aliases, read_bool, read_count, read_options, read_seconds

__all__ = ["S3"]

_ALIASES: Aliases = {
    **GENERAL_ALIASES,
    "access_key_id": ("aws_access_key_id", "access_key_id"),
    "secret_access_key": ("aws_secret_access_key", "secret_access_key"),
    "session_token": ("aws_session_token", "aws_token", "session_token", "token"),
    "region": ("aws_region", "region", "aws_default_region", "default_region"),
    "endpoint": ("aws_endpoint", "aws_endpoint_url", "endpoint", "endpoint_url"),
    "virtual_hosted": ("aws_virtual_hosted_style_request", "virtual_hosted_style_request"),
    "skip_signature": ("aws_skip_signature", "skip_signature"),
    "s3_express": ("aws_s3_express", "s3_express"),
    "encryption": ("aws_server_side_encryption",),
    "encryption_key": ("aws_sse_kms_key_id",),
    "encryption_bucket_key": ("aws_sse_bucket_key_enabled",),
}
_EXPRESS_SUFFIX = "--x-s3"
_PAGE_NAMES = 1000  # S3 lists no more at once
_CONNECTIONS = 64
_BAD_REQUEST = 400
_CONDITION_FAILED = 412
# A timeout (408), a concurrent request to the same key (409) and throttling (429) do not say that nothing happened.
_REFUSALS = frozenset({400, 401, 403, 404, 405, 411, 413, 501})


class S3(Service):
    """Conditional creates are `PUT` with `If-None-Match: *`, which S3 has had since 2024 and many servers ignore."""

    schemes = ("s3", "s3a")
    package = "s3fs"
    deleted_at_once = 1000
    takes_time_limits = True
    credential_variables = ("aws_", "boto_config")

    def protocol(self, scheme: str) -> str:
        return "s3"

    def account(self, authority: str) -> str:
        return ""

    def credential_files(self, options: Mapping[str, object]) -> Iterable[str]:
        return (
            *environment_path("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"),
            *environment_path("AWS_CONFIG_FILE", "~/.aws/config"),
            *environment_path("BOTO_CONFIG", "~/.boto"),
            *environment_path("AWS_WEB_IDENTITY_TOKEN_FILE"),
        )

    def arguments(self, authority: str, options: Mapping[str, object]) -> dict[str, Any]:
        found = _read(options)
        endpoint = found.get("endpoint")
        if endpoint and endpoint.startswith("http://") and not read_bool(found, "allow_http"):
            raise InvalidInput("storage_options: the endpoint is plain http; set allow_http=true if that is intended")
        client: dict[str, Any] = {}
        if "region" in found:
            client["region_name"] = found["region"]
        if read_bool(found, "allow_invalid_certificates"):
            client["verify"] = False
        return {
            "anon": read_bool(found, "skip_signature"),
            "key": found.get("access_key_id"),
            "secret": found.get("secret_access_key"),
            "token": found.get("session_token"),
            "endpoint_url": endpoint,
            "client_kwargs": client,
            "config_kwargs": _client_config(found),
            "s3_additional_kwargs": _encryption(found),
        }

    def allows_http(self, options: Mapping[str, object]) -> bool:
        """Return whether the options allow endpoints of plain http."""
        return read_bool(_read(options), "allow_http")

    def names_region(self, options: Mapping[str, object]) -> bool:
        """Return whether the options themselves name a region, not only the environment."""
        return any(name.lower() in _ALIASES["region"] for name in options)

    def by_name(self, options: Mapping[str, object]) -> dict[str, str]:
        """Return the options by our names, completed from the environment."""
        return _read(options)

    def connect(self, kind: Callable[..., Any], authority: str, options: Mapping[str, object]) -> Any:
        fs = super().connect(kind, authority, options)
        retries = read_count(_read(options), "download_retries")
        if retries is not None:  # s3fs retries around botocore, which does not notice a body that ends early
            fs.retries = retries + 1
        return fs

    def create(self, fs: Any, key: str, data: bytes) -> None:
        try:
            # Never in parts: some servers check the condition only on a single PUT. s3fs splits from twice the size
            # of a chunk on.
            fs.pipe_file(key, data, mode="create", chunksize=len(data) + 1)
        except FileExistsError:
            raise
        except OSError as error:
            if _status(error) == _CONDITION_FAILED:  # s3fs needs an element in the answer that not every server sends
                raise FileExistsError(key) from error
            raise

    def lists_in_order(self, authority: str, options: Mapping[str, object]) -> bool:
        return not (authority.endswith(_EXPRESS_SUFFIX) or read_bool(_read(options), "s3_express"))

    def is_refusal(self, error: Exception) -> bool:
        return _status(error) in _REFUSALS

    def size(self, fs: Any, key: str) -> int:
        bucket, _, name = key.partition("/")
        return int(fs.call_s3("head_object", Bucket=bucket, Key=name)["ContentLength"])

    def delete_several(self, fs: Any, keys: Sequence[str]) -> list[str]:
        bucket = keys[0].partition("/")[0]
        objects = [{"Key": key.partition("/")[2]} for key in keys]
        answer = fs.call_s3("delete_objects", Bucket=bucket, Delete={"Objects": objects, "Quiet": True})
        return [f"{bucket}/{error['Key']}" for error in answer.get("Errors", ())]

    def copy(self, fs: Any, source: str, target: str) -> None:
        from_bucket, _, from_name = source.partition("/")
        bucket, _, name = target.partition("/")
        try:
            fs.call_s3("copy_object", Bucket=bucket, Key=name, CopySource={"Bucket": from_bucket, "Key": from_name})
        except OSError as error:
            if _status(error) != _BAD_REQUEST:
                raise
            fs.cp_file(source, target)  # an object over 5 GB must be copied in parts

    def get(self, fs: Any, key: str) -> bytes:
        return bytes(fs.cat_file(key, max_concurrency=1))  # more concurrency would request the size first

    def walk(self, fs: Any, directory: str) -> Iterator[ListedObject]:
        bucket, _, prefix = directory.partition("/")
        for found in _pages(fs, Bucket=bucket, Prefix=f"{prefix}/" if prefix else ""):
            modified, tag = found["LastModified"].astimezone(UTC), found.get("ETag", "").strip('"') or None
            yield ListedObject(f"{bucket}/{found['Key']}", int(found["Size"]), modified, tag)

    def names(self, fs: Any, directory: str, limit: int | None) -> Mapping[str, str | None]:
        bucket, _, prefix = directory.partition("/")
        start = f"{prefix}/" if prefix else ""
        names: dict[str, str | None] = {}
        page = min(limit or _PAGE_NAMES, _PAGE_NAMES)
        for found in _pages(fs, Bucket=bucket, Prefix=start, Delimiter="/", MaxKeys=page):
            names[found["Key"][len(start) :]] = found.get("ETag", "").strip('"') or None
            if len(names) == limit:
                break
        return names

    def now(self, fs: Any, directory: str) -> datetime:
        answer = fs.call_s3("head_bucket", Bucket=directory.partition("/")[0])
        return parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])


def _read(options: Mapping[str, object]) -> dict[str, str]:
    return read_options(options, _ALIASES, environment_prefixes=("aws_",))


def _client_config(found: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of botocore's `Config`."""
    endpoint = found.get("endpoint")
    config: dict[str, Any] = {"max_pool_connections": _CONNECTIONS}
    if endpoint:
        virtual = read_bool(found, "virtual_hosted")
        config["s3"] = {"addressing_style": "virtual" if virtual else "path"}
        # Servers other than Amazon's fail on the checksums that newer clients add by default.
        config["request_checksum_calculation"] = config["response_checksum_validation"] = "when_required"
    for ours, theirs in (("connect_timeout", "connect_timeout"), ("request_timeout", "read_timeout")):
        seconds = read_seconds(found, ours)
        if seconds is not None:
            config[theirs] = seconds
    retries = read_count(found, "max_retries")
    if retries is not None:
        config["retries"] = {"total_max_attempts": retries + 1, "mode": "standard"}
    proxies = proxies_of(found)
    if proxies:
        config["proxies"] = proxies
    return config


def _encryption(found: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of each write that say how the server encrypts."""
    extra: dict[str, Any] = {}
    if "encryption" in found:
        extra["ServerSideEncryption"] = found["encryption"]
    if "encryption_key" in found:
        extra["SSEKMSKeyId"] = found["encryption_key"]
    if read_bool(found, "encryption_bucket_key"):
        extra["BucketKeyEnabled"] = True
    return extra


def _pages(fs: Any, **request: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects of a listing page by page, without those that represent directories."""
    more: dict[str, Any] = {}
    while True:
        answer = fs.call_s3("list_objects_v2", **request, **more)
        yield from (found for found in answer.get("Contents", ()) if not found["Key"].endswith("/"))
        if not answer.get("IsTruncated"):
            return
        more = {"ContinuationToken": answer["NextContinuationToken"]}


def _status(error: BaseException | None) -> int | None:
    """Return the HTTP status of an s3fs error, from the botocore error that caused it."""
    while error is not None:
        response = getattr(error, "response", None)
        if isinstance(response, Mapping):
            status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
            return int(status) if status is not None else None
        error = error.__cause__
    return None
