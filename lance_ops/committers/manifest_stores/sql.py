"""A manifest store in a relational database, through SQLAlchemy.

One table serves all datasets. Its primary key is a dataset's URI and a version, so the database refuses a second insert
of the same version. SQLite is set to sync each commit to disk.

A URI is compared by its bytes: where a database compares text without case by default, the column says otherwise. A
table that was created without that may mix two datasets up, so a row of another URI is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import Any, Self

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError, NoSuchModuleError, SQLAlchemyError

from lance_ops.committers.manifest_stores.contract import ManifestRow, ManifestStore
from lance_ops.core.errors import InvalidInput, MissingPackage, StoreError
from lance_ops.core.records import dataclass
from lance_ops.core.redaction import environment_secrets, raise_alone, redact, secret_values
from lance_ops.store import PROCESS_RESOURCES
from lance_ops.store.services import digest_of_sources, environment_path

__all__ = ["SqlManifestStore"]


_SQLITE_WAITS_SECONDS = 30.0
_CREDENTIAL_VARIABLES = ("pg", "mysql_")  # of the databases' own clients
_METADATA = sa.MetaData()
_URI = (
    sa.String(700)  # bounded, because not every database can index text of any length
    .with_variant(sa.String(700, collation="utf8mb4_bin"), "mysql", "mariadb")
    .with_variant(sa.String(700, collation="Latin1_General_BIN2"), "mssql")
)
_ROWS = sa.Table(
    "lance_manifests",
    _METADATA,
    sa.Column("base_uri", _URI, primary_key=True),
    sa.Column("version", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("path", sa.String(300), nullable=False),
    sa.Column("size_bytes", sa.BigInteger, nullable=False),
)


@dataclass(frozen=True, slots=True)
class SqlManifestStore(ManifestStore):
    """`url` is SQLAlchemy's; it may hold a password."""

    url: str = field(repr=False)
    dataset_uri: str

    @classmethod
    def open(cls, url: str, dataset_uri: str, storage_options: Mapping[str, object]) -> Self:
        """See `ManifestStore.open`."""
        _check_driver(url)
        return cls(url, dataset_uri)

    def newest(self) -> ManifestRow | None:
        """See `ManifestStore.newest`."""
        return self._select(_of(self.dataset_uri).order_by(_ROWS.c.version.desc()).limit(1))

    def get(self, version: int) -> ManifestRow | None:
        """See `ManifestStore.get`."""
        return self._select(_of(self.dataset_uri).where(_ROWS.c.version == version))

    def insert(self, row: ManifestRow) -> bool:
        """See `ManifestStore.insert`."""
        values = {
            "base_uri": self.dataset_uri,
            "version": row.version,
            "path": row.path,
            "size_bytes": row.size_bytes,
        }
        try:
            with self._connection() as connection:
                connection.execute(sa.insert(_ROWS).values(values))
        except IntegrityError:
            return False
        return True

    def replace(self, row: ManifestRow) -> None:
        """See `ManifestStore.replace`."""
        update = sa.update(_ROWS).where(self._is(row.version))
        with self._connection() as connection:
            replaced = connection.execute(update.values(path=row.path, size_bytes=row.size_bytes))
        if not replaced.rowcount:
            raise StoreError(f"manifest store of {self.dataset_uri}: it has no row of version {row.version}")

    def remove(self, version: int) -> None:
        """See `ManifestStore.remove`."""
        with self._connection() as connection:
            connection.execute(sa.delete(_ROWS).where(self._is(version)))

    def _is(self, version: int) -> sa.ColumnElement[bool]:
        return sa.and_(_ROWS.c.base_uri == self.dataset_uri, _ROWS.c.version == version)

    def _select(self, query: sa.Select[Any]) -> ManifestRow | None:
        with self._connection() as connection:
            found = connection.execute(query).one_or_none()
        if found is None:
            return None
        if found.base_uri != self.dataset_uri:
            raise InvalidInput(
                f"manifest_store: the database takes {found.base_uri!r} and {self.dataset_uri!r} for the same text: "
                f"give the column base_uri of {_ROWS.name} a binary collation, or use another path"
            )
        return ManifestRow(found.version, found.path, found.size_bytes)

    @contextmanager
    def _connection(self) -> Iterator[sa.Connection]:
        """Yield a connection in a transaction that is committed at the end; every failure becomes a `StoreError`."""
        files = environment_path("PGPASSFILE", "~/.pgpass")
        key = ("sql", self.url, digest_of_sources(_CREDENTIAL_VARIABLES, files))
        try:
            engine = PROCESS_RESOURCES.client(key, lambda: _connect(self.url), sa.Engine.dispose)
            with engine.begin() as connection:
                yield connection
        except IntegrityError:
            raise
        except SQLAlchemyError as error:
            secrets = secret_values({"manifest_store": self.url}) | environment_secrets(_CREDENTIAL_VARIABLES)
            text = redact(str(error.__cause__ or error), secrets)
            raise_alone(StoreError(f"manifest store of {self.dataset_uri}: {text}"))


def _of(dataset_uri: str) -> sa.Select[Any]:
    return sa.select(_ROWS).where(_ROWS.c.base_uri == dataset_uri)


def _connect(url: str) -> sa.Engine:
    """Return an engine whose database has the table."""
    _check_driver(url)  # a process that got the store as a pickle may lack the driver
    sqlite = sa.make_url(url).get_backend_name() == "sqlite"
    if sqlite:
        engine = sa.create_engine(url, connect_args={"timeout": _SQLITE_WAITS_SECONDS})
        sa.event.listen(engine, "connect", _make_durable)
    else:
        engine = sa.create_engine(url, pool_pre_ping=True)
    try:
        _METADATA.create_all(engine)
    except SQLAlchemyError:  # another process may have created it at the same moment
        if not sa.inspect(engine).has_table(_ROWS.name):
            raise
    return engine


def _make_durable(connection: Any, _: object) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")


def _check_driver(url: str) -> None:
    """Raise `InvalidInput` for a URL that names no database, and `MissingPackage` if the database's driver is missing.

    SQLAlchemy's own errors quote parts of the URL, which may be parts of a password.
    """
    try:
        parsed = sa.make_url(url)
    except Exception:  # noqa: BLE001 - it raises whatever a part of the URL fails with
        raise_alone(
            InvalidInput(
                "manifest_store: SQLAlchemy cannot read the URL; write dialect://user:password@host:port/database, "
                "and in a password %40 for @, %3A for : and %2F for /"
            )
        )
    try:
        parsed.get_dialect().import_dbapi()
    except NoSuchModuleError:
        raise_alone(InvalidInput("manifest_store: SQLAlchemy knows no dialect and driver of the name before the ://"))
    except ImportError as error:
        package = error.name or "the database's driver"
        raise MissingPackage(f"manifest_store: {parsed.drivername}://", package, None, str(error)) from error
