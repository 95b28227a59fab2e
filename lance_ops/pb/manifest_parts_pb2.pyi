from google.protobuf import timestamp_pb2 as _timestamp_pb2
from lance_ops.pb import table_pb2 as _table_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ManifestParts(_message.Message):
    __slots__ = ("fields", "fragments", "schema_metadata")
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    FRAGMENTS_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_METADATA_FIELD_NUMBER: _ClassVar[int]
    fields: _containers.RepeatedScalarFieldContainer[bytes]
    fragments: _containers.RepeatedScalarFieldContainer[bytes]
    schema_metadata: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, fields: _Optional[_Iterable[bytes]] = ..., fragments: _Optional[_Iterable[bytes]] = ..., schema_metadata: _Optional[_Iterable[bytes]] = ...) -> None: ...

class ManifestTransaction(_message.Message):
    __slots__ = ("transaction_section_deprecated", "transaction_section")
    TRANSACTION_SECTION_DEPRECATED_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_SECTION_FIELD_NUMBER: _ClassVar[int]
    transaction_section_deprecated: int
    transaction_section: int
    def __init__(self, transaction_section_deprecated: _Optional[int] = ..., transaction_section: _Optional[int] = ...) -> None: ...

class ManifestHeads(_message.Message):
    __slots__ = ("fragments",)
    FRAGMENTS_FIELD_NUMBER: _ClassVar[int]
    fragments: _containers.RepeatedCompositeFieldContainer[FragmentHead]
    def __init__(self, fragments: _Optional[_Iterable[_Union[FragmentHead, _Mapping]]] = ...) -> None: ...

class FragmentHead(_message.Message):
    __slots__ = ("id", "deletion_file", "physical_rows")
    ID_FIELD_NUMBER: _ClassVar[int]
    DELETION_FILE_FIELD_NUMBER: _ClassVar[int]
    PHYSICAL_ROWS_FIELD_NUMBER: _ClassVar[int]
    id: int
    deletion_file: _table_pb2.DeletionFile
    physical_rows: int
    def __init__(self, id: _Optional[int] = ..., deletion_file: _Optional[_Union[_table_pb2.DeletionFile, _Mapping]] = ..., physical_rows: _Optional[int] = ...) -> None: ...

class ManifestSummary(_message.Message):
    __slots__ = ("fragments", "version", "timestamp", "fragment_tree")
    FRAGMENTS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    FRAGMENT_TREE_FIELD_NUMBER: _ClassVar[int]
    fragments: _containers.RepeatedCompositeFieldContainer[FragmentSizes]
    version: int
    timestamp: _timestamp_pb2.Timestamp
    fragment_tree: bytes
    def __init__(self, fragments: _Optional[_Iterable[_Union[FragmentSizes, _Mapping]]] = ..., version: _Optional[int] = ..., timestamp: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., fragment_tree: _Optional[bytes] = ...) -> None: ...

class FragmentSizes(_message.Message):
    __slots__ = ("files", "deletion_file", "physical_rows")
    FILES_FIELD_NUMBER: _ClassVar[int]
    DELETION_FILE_FIELD_NUMBER: _ClassVar[int]
    PHYSICAL_ROWS_FIELD_NUMBER: _ClassVar[int]
    files: _containers.RepeatedCompositeFieldContainer[FileSize]
    deletion_file: _table_pb2.DeletionFile
    physical_rows: int
    def __init__(self, files: _Optional[_Iterable[_Union[FileSize, _Mapping]]] = ..., deletion_file: _Optional[_Union[_table_pb2.DeletionFile, _Mapping]] = ..., physical_rows: _Optional[int] = ...) -> None: ...

class FileSize(_message.Message):
    __slots__ = ("file_size_bytes",)
    FILE_SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    file_size_bytes: int
    def __init__(self, file_size_bytes: _Optional[int] = ...) -> None: ...

class ManifestFileNames(_message.Message):
    __slots__ = ("fragments",)
    FRAGMENTS_FIELD_NUMBER: _ClassVar[int]
    fragments: _containers.RepeatedCompositeFieldContainer[FragmentFileNames]
    def __init__(self, fragments: _Optional[_Iterable[_Union[FragmentFileNames, _Mapping]]] = ...) -> None: ...

class FragmentFileNames(_message.Message):
    __slots__ = ("id", "files", "deletion_file", "physical_rows", "external_row_ids", "external_last_updated_at_versions", "external_created_at_versions")
    ID_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    DELETION_FILE_FIELD_NUMBER: _ClassVar[int]
    PHYSICAL_ROWS_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_ROW_IDS_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_LAST_UPDATED_AT_VERSIONS_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_CREATED_AT_VERSIONS_FIELD_NUMBER: _ClassVar[int]
    id: int
    files: _containers.RepeatedCompositeFieldContainer[FileName]
    deletion_file: _table_pb2.DeletionFile
    physical_rows: int
    external_row_ids: _table_pb2.ExternalFile
    external_last_updated_at_versions: _table_pb2.ExternalFile
    external_created_at_versions: _table_pb2.ExternalFile
    def __init__(self, id: _Optional[int] = ..., files: _Optional[_Iterable[_Union[FileName, _Mapping]]] = ..., deletion_file: _Optional[_Union[_table_pb2.DeletionFile, _Mapping]] = ..., physical_rows: _Optional[int] = ..., external_row_ids: _Optional[_Union[_table_pb2.ExternalFile, _Mapping]] = ..., external_last_updated_at_versions: _Optional[_Union[_table_pb2.ExternalFile, _Mapping]] = ..., external_created_at_versions: _Optional[_Union[_table_pb2.ExternalFile, _Mapping]] = ...) -> None: ...

class FileName(_message.Message):
    __slots__ = ("path", "base_id")
    PATH_FIELD_NUMBER: _ClassVar[int]
    BASE_ID_FIELD_NUMBER: _ClassVar[int]
    path: str
    base_id: int
    def __init__(self, path: _Optional[str] = ..., base_id: _Optional[int] = ...) -> None: ...
