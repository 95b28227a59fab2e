"""What has been read and may be needed again: the files and indices of a session, and a version's deletion vectors."""

from lance_ops.snapshot.caches.open_file_cache import OpenFiles
from lance_ops.snapshot.caches.read_cache import ReadCache
from lance_ops.snapshot.caches.session import Session

__all__ = ["OpenFiles", "ReadCache", "Session"]
