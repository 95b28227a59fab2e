"""Generate `lance_ops/pb` from the `.proto` files beside this script; with `--check`, fail if the two differ.

The compiler comes with the pinned `grpcio-tools` (protoc 5.29). Its code loads under every protobuf runtime from 5.29
on, and Dagster still requires a runtime below 7. protoc sees the files as `lance_ops/pb/<name>.proto`, so that the
generated imports and the names in the process-wide descriptor pool belong to this package.
"""

from __future__ import annotations

import filecmp
import sys
import tempfile
from pathlib import Path

import grpc_tools
from grpc_tools import protoc

PROTOS = Path(__file__).parent
PACKAGE = "lance_ops/pb"
TARGET = PROTOS.parent / PACKAGE


def generate(out: Path) -> None:
    """Compile every `.proto` file into `out/lance_ops/pb`."""
    names = sorted(path.name for path in PROTOS.glob("*.proto"))
    well_known = Path(grpc_tools.__file__).parent / "_proto"
    arguments = ["protoc", f"-I{PACKAGE}={PROTOS}", f"-I{well_known}", f"--python_out={out}", f"--pyi_out={out}"]
    if protoc.main(arguments + [f"{PACKAGE}/{name}" for name in names]):
        raise SystemExit("protoc refused the files in protos/")


def differences() -> list[str]:
    """Name every generated file that is missing, stale or left over in `lance_ops/pb`."""
    with tempfile.TemporaryDirectory() as scratch:
        generate(Path(scratch))
        fresh = Path(scratch) / PACKAGE
        names = {path.name for folder in (fresh, TARGET) for path in folder.glob("*_pb2.py*")}
        _, changed, missing = filecmp.cmpfiles(fresh, TARGET, sorted(names), shallow=False)
    return changed + missing


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        stale = differences()
        if stale:
            raise SystemExit(
                f"lance_ops/pb is not what protos/ says ({', '.join(stale)}): run python protos/generate.py"
            )
    else:
        generate(PROTOS.parent)
