"""A manifest store in a relational database, through SQLAlchemy.

One table serves all datasets. Its primary key is a dataset's URI and a version, so the database refuses a second insert
of the same version. SQLite is set to sync each commit to disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, IntegrityError, NoSuchModuleError, SQLAlchemyError

from lance_ops.committers.manifest_stores.contract import ManifestRow, ManifestStore
from lance_ops.core.errors import InvalidInput, StoreError
from lance_ops.store import PROCESS_RESOURCES

__all__ = ["SqlManifestStore"]


_SQLITE_WAITS_SECONDS = 30.0
_METADATA = sa.MetaData()
_ROWS = sa.Table(
    "lance_manifests",
    _METADATA,
    # Bounded, because not every database can index text of any length.
    sa.Column("base_uri", sa.String(700), primary_key=True),
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
        try:
            sa.make_url(url).get_dialect()
        except (ArgumentError, NoSuchModuleError, ImportError) as error:
            raise InvalidInput(f"manifest_store: SQLAlchemy cannot use the URL: {_without_url(error, url)}") from None
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
            connection.execute(update.values(path=row.path, size_bytes=row.size_bytes))

    def remove(self, version: int) -> None:
        """See `ManifestStore.remove`."""
        with self._connection() as connection:
            connection.execute(sa.delete(_ROWS).where(self._is(version)))

    def _is(self, version: int) -> sa.ColumnElement[bool]:
        return sa.and_(_ROWS.c.base_uri == self.dataset_uri, _ROWS.c.version == version)

    def _select(self, query: sa.Select[Any]) -> ManifestRow | None:
        with self._connection() as connection:
            found = connection.execute(query).one_or_none()
        return None if found is None else ManifestRow(found.version, found.path, found.size_bytes)

    @contextmanager
    def _connection(self) -> Iterator[sa.Connection]:
        """Yield a connection in a transaction that is committed at the end; every failure becomes a `StoreError`."""
        try:
            engine = PROCESS_RESOURCES.client(("sql", self.url), lambda: _connect(self.url), sa.Engine.dispose)
            with engine.begin() as connection:
                yield connection
        except IntegrityError:
            raise
        except SQLAlchemyError as error:
            raise StoreError(f"manifest store of {self.dataset_uri}: {_without_url(error, self.url)}") from None


def _of(dataset_uri: str) -> sa.Select[Any]:
    return sa.select(_ROWS.c.version, _ROWS.c.path, _ROWS.c.size_bytes).where(_ROWS.c.base_uri == dataset_uri)


def _connect(url: str) -> sa.Engine:
    """Return an engine whose database has the table."""
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


def _without_url(error: Exception, url: str) -> str:
    password = sa.make_url(url).password if "://" in url else None
    text = str(error.__cause__ or error).replace(url, "its URL")
    return text.replace(str(password), "***") if password else text
