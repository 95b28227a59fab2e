"""Serialize Arrow extension types into the metadata that represents them on a storage field."""

from __future__ import annotations

import json

import pyarrow as pa

__all__ = ["EXTENSION_METADATA", "EXTENSION_NAME", "serialized_extension"]

EXTENSION_NAME = "ARROW:extension:name"
EXTENSION_METADATA = "ARROW:extension:metadata"


def serialized_extension(arrow_type: pa.BaseExtensionType) -> str:
    """Return an extension type's parameters as Arrow's canonical text.

    Types defined in Python serialize themselves. pyarrow does not expose this for its built-in types. The two of them
    that have parameters are serialized here, as Arrow's list of canonical extension types defines; others give "".
    """
    if isinstance(arrow_type, pa.ExtensionType):
        serialized: bytes = arrow_type.__arrow_ext_serialize__()
        return serialized.decode("utf-8", "surrogateescape")
    match arrow_type:
        case pa.FixedShapeTensorType():
            parameters = {
                "shape": arrow_type.shape,
                "dim_names": arrow_type.dim_names,
                "permutation": arrow_type.permutation,
            }
            return json.dumps({key: value for key, value in parameters.items() if value is not None})
        case pa.OpaqueType():
            return json.dumps({"type_name": arrow_type.type_name, "vendor_name": arrow_type.vendor_name})
    return ""
