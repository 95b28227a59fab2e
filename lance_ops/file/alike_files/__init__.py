"""Small files of one schema, opened and read together: no Python object stands for a single file or page."""

from lance_ops.file.alike_files.alike_files import WHOLE_FILE_BYTES, AlikeFiles

__all__ = ["WHOLE_FILE_BYTES", "AlikeFiles"]
