"""PyTorch's datasets give the reference's tensors."""

from __future__ import annotations

import inspect
import pickle
import pkgutil
from importlib import import_module
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import InvalidInput, UnsupportedFeature

torch = pytest.importorskip("torch", reason="torch is not installed")
lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = [
    pytest.mark.interop,
    # Of the reference: it converts Arrow's constant memory without a copy, and warns of its own arguments.
    pytest.mark.filterwarnings("ignore:The given NumPy array is not writable", "ignore:with_row_id is not supported"),
]

data = import_module("lance_ops.torch.data")
dist = import_module("lance_ops.torch.dist")
REFERENCE = import_module("lance.torch.data")

NUM_ROWS = 97

LEFT_OUT = {
    "vector search": {"bench_utils", "distance", "kmeans"},
    "a loader in another process: `DataLoader` has workers": {"async_dataset"},
    "halves of the reference's own": {"data.TensorDataset", "data.ToTensorFn", "data.concat_batches"},
}
"""Names of the reference's `lance.torch` that are not here, by reason."""


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    uri = str(tmp_path_factory.mktemp("torch") / "t")
    numbers = np.arange(100)
    table = pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "u": pa.array(numbers, pa.uint64()),
            "f": pa.array(numbers / 4, pa.float32()),
            "half": pa.array((numbers / 4).astype(np.float16)),
            "flag": pa.array(numbers % 2 == 0),
            "v": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(400), pa.float32()), 4),
            "bits": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(200) % 3 == 0), 2),
            "t": pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(600, dtype=np.int32).reshape(100, 2, 3)),
            "s": [str(number) for number in numbers],
        }
    )
    lance.write_dataset(table, uri, max_rows_per_file=40).delete("id IN (3, 50, 99)")
    return uri


def tensors(batches: Any) -> list[Any]:
    """Return batches as nested lists with the types of their tensors."""
    found = []
    for batch in batches:
        named = batch if isinstance(batch, dict) else {"": batch}
        found.append({name: (str(each.dtype), tuple(each.shape), each.tolist()) for name, each in named.items()})
    return found


NUMBERS = ["id", "u", "f", "half", "flag", "v", "t"]


@pytest.mark.parametrize(
    "options",
    [
        {"columns": NUMBERS, "batch_size": 10},
        {"columns": ["id"], "batch_size": 7},
        {"columns": ["v", "id"], "batch_size": 500},
        {"columns": ["id"], "batch_size": 9, "with_row_id": True},
        {"columns": ["id"], "batch_size": 9, "filter": "id > 20 AND flag"},
        {"columns": ["id"], "batch_size": 8, "shard_granularity": "batch"},
        {"columns": ["id"], "batch_size": 8, "shard_granularity": "fragment"},
        {"columns": ["id"], "batch_size": 8, "cache": True},
        {"columns": ["id"], "batch_size": 200, "samples": 1000},
        {"columns": ["id"], "batch_size": 8, "auto_detect_rank": False},
    ],
    ids=str,
)
def test_batches_of_tensors_are_the_reference_s(uri: str, options: dict[str, Any]) -> None:
    mine, other = data.LanceDataset(uri, **options), REFERENCE.LanceDataset(uri, **options)
    first = tensors(mine)
    assert first
    expected = tensors(other)
    if "filter" in options:  # the reference's batches may be longer than asked for
        flat = [[value for batch in each for value in batch[""][2]] for each in (first, expected)]
        assert flat[0] == flat[1]
        assert all(len(batch[""][2]) == options["batch_size"] for batch in first[:-1])
    else:
        assert first == expected
    assert tensors(mine) == first  # the second epoch


@pytest.mark.parametrize("granularity", ["fragment", "batch"])
@pytest.mark.parametrize("world_size", [2, 4])
def test_ranks_share_the_rows(uri: str, granularity: str, world_size: int) -> None:
    found: list[int] = []
    for rank in range(world_size):
        with pytest.warns(DeprecationWarning, match="rank and world_size"):
            part = data.LanceDataset(
                uri, 6, columns=["id"], rank=rank, world_size=world_size, shard_granularity=granularity
            )
        found += [value for batch in part for value in batch.tolist()]
    assert sorted(found) == [number for number in range(100) if number not in (3, 50, 99)]


def test_workers_of_a_loader_share_the_rows(uri: str) -> None:
    loader = torch.utils.data.DataLoader(
        data.LanceDataset(uri, 10, columns=["id"]),
        batch_size=None,
        num_workers=2,
        multiprocessing_context="spawn",
    )
    found = sorted(value for batch in loader for value in batch.tolist())
    assert found == [number for number in range(100) if number not in (3, 50, 99)]


def test_a_sampler_and_a_converter_of_one_s_own_are_used(uri: str) -> None:
    sampler = import_module("lance_ops.sampler").ShardedFragmentSampler(1, 2)
    made = data.LanceDataset(uri, 100, columns=["id"], sampler=sampler, to_tensor_fn=lambda batch, **_: batch.num_rows)
    assert list(made) == [39]
    (batch,) = data.LanceDataset(uri, 100, columns=["s"], to_tensor_fn=None)
    assert isinstance(batch, pa.RecordBatch)


def test_the_cache_serves_later_epochs_from_the_folder_that_is_named(uri: str, tmp_path: Path) -> None:
    made = data.LanceDataset(uri, 20, columns=["id"], cache=str(tmp_path))
    first = tensors(made)
    assert len(list(tmp_path.rglob("*.arrow"))) == 1
    made.dataset = None  # no epoch reads the table again
    assert tensors(made) == first
    made.cached_ds.close()
    assert list(tmp_path.iterdir()) == []


def test_an_epoch_that_was_left_early_does_not_shorten_the_next(uri: str) -> None:
    made = data.LanceDataset(uri, 20, columns=["id"], cache=True)
    next(iter(made))
    assert sum(len(batch) for batch in made) == NUM_ROWS


def test_each_worker_gets_its_share_of_rows_that_its_parent_has_cached(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = data.LanceDataset(uri, 20, columns=["id"], cache=True)
    assert sum(len(batch) for batch in made) == NUM_ROWS
    found = []
    for worker in range(2):
        info = SimpleNamespace(id=worker, num_workers=2)
        monkeypatch.setattr(torch.utils.data, "get_worker_info", lambda info=info: info)
        found += [number for batch in made for number in batch.tolist()]
    assert len(found) == len(set(found)) == NUM_ROWS


def test_nulls_become_nan_in_both(tmp_path: Path) -> None:
    values = pa.array([1.5, None, 3.0], pa.float32())
    uri = lance_ops.write_dataset(pa.table({"f": values, "g": values}), tmp_path / "t").uri
    mine, other = (next(iter(library.LanceDataset(uri, 3, columns=["f"]))) for library in (data, REFERENCE))
    assert mine.dtype == other.dtype
    assert str(mine.tolist()) == str(other.tolist()) == "[1.5, nan, 3.0]"


@pytest.mark.parametrize("column", ["s"])
def test_a_column_without_a_tensor_is_named(uri: str, column: str) -> None:
    with pytest.raises(InvalidInput, match=f"{column}.*string"):
        list(data.LanceDataset(uri, 10, columns=[column]))
    with pytest.raises(ValueError, match="string"):
        list(REFERENCE.LanceDataset(uri, 10, columns=[column]))


def test_columns_are_computed(uri: str) -> None:
    (found,) = data.LanceDataset(uri, 100, columns={"twice": "id * 2"}, filter="id < 3")
    assert found.tolist() == [0, 2, 4]


def test_the_batches_of_small_fragments_are_joined_as_in_the_reference(tmp_path: Path) -> None:
    uri = lance_ops.write_dataset(pa.table({"id": range(50)}), tmp_path / "t", max_rows_per_file=3).uri
    assert tensors(data.LanceDataset(uri, 10)) == tensors(REFERENCE.LanceDataset(uri, 10))


def test_a_tensor_may_be_written_to(uri: str) -> None:
    (batch,) = data.LanceDataset(uri, 100, columns=["id"])
    batch += 1
    assert batch[0] == 1


def test_an_unknown_granularity_is_refused(uri: str) -> None:
    with pytest.raises(InvalidInput, match="shard_granularity"):
        data.LanceDataset(uri, 10, shard_granularity="row")


def test_blobs_come_as_files_for_a_converter(tmp_path: Path) -> None:
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    blobs = pa.array([b"a", b"bb", None, b"dddd"], pa.large_binary())
    table = pa.table([pa.array(range(4)), blobs], pa.schema([pa.field("id", pa.int64()), field]))
    uri = lance_ops.write_dataset(table, tmp_path / "t", data_storage_version="2.1").uri

    def read(batch: Any, *, use_blob_api: bool, **_: Any) -> list[Any]:
        assert use_blob_api
        return [(number.as_py(), blob and blob.read()) for number, blob in zip(batch["id"], batch["b"], strict=True)]

    (found,) = data.LanceDataset(uri, 10, to_tensor_fn=read)
    assert found == [(0, b"a"), (1, b"bb"), (2, None), (3, b"dddd")]
    with pytest.raises(UnsupportedFeature, match="to_tensor_fn"):
        list(data.LanceDataset(uri, 10))


def test_bfloat16_becomes_torch_s_own_type(tmp_path: Path) -> None:
    arrow = import_module("lance.arrow")
    array = arrow.bfloat16_array([1.5, 2.0, None, -4.25])
    lance.write_dataset(pa.table({"b": array}), tmp_path / "t")
    for library in (data, REFERENCE):
        (found,) = library.LanceDataset(str(tmp_path / "t"), 10, columns=["b"])
        assert found.dtype == torch.bfloat16
        assert str(found.tolist()) == "[1.5, 2.0, nan, -4.25]"


def test_images_of_hugging_face_are_opened(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    stream = BytesIO()
    image.new("RGB", (2, 1), (7, 8, 9)).save(stream, "PNG")
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    metadata = {"huggingface": '{"info": {"features": {"img": {"_type": "Image"}}}}'}
    rows = pa.array([{"bytes": stream.getvalue(), "path": "a.png"}], kind)
    table = pa.table({"img": rows}).replace_schema_metadata(metadata)
    uri = lance_ops.write_dataset(table, tmp_path / "t").uri
    for library in (data, REFERENCE):
        ((found,),) = library.LanceDataset(uri, 10)
        assert found.getpixel((1, 0)) == (7, 8, 9)
    only_named = pa.array([{"bytes": None, "path": "/etc/hostname"}], kind)
    lance_ops.write_dataset(pa.table({"img": only_named}).replace_schema_metadata(metadata), tmp_path / "named")
    with pytest.raises(InvalidInput, match="without its bytes"):
        list(data.LanceDataset(str(tmp_path / "named"), 10))


def test_rows_are_indexed_as_in_the_reference(uri: str) -> None:
    mine, other = data.SafeLanceDataset(uri), REFERENCE.SafeLanceDataset(uri)
    assert len(mine) == len(other) == NUM_ROWS
    assert mine[3] == other[3]
    assert mine.__getitems__([5, 0, 60]) == other.__getitems__([5, 0, 60])
    again = pickle.loads(pickle.dumps(mine))
    assert again[96]["id"] == 98
    lance_ops_rows = lance_ops.dataset(uri, version=1).count_rows()
    assert len(data.SafeLanceDataset(uri, dataset_options={"version": 1})) == lance_ops_rows == 100


def test_a_safe_loader_reads_every_row_in_spawned_workers(uri: str) -> None:
    loader = data.get_safe_loader(data.SafeLanceDataset(uri), batch_size=16, num_workers=2, collate_fn=_ids)
    assert loader.persistent_workers
    assert sorted(number for batch in loader for number in batch) == [
        number for number in range(100) if number not in (3, 50, 99)
    ]
    alone = data.get_safe_loader(data.SafeLanceDataset(uri), num_workers=0, collate_fn=_ids)
    assert [number for batch in alone for number in batch][:3] == [0, 1, 2]


def _ids(rows: list[dict[str, Any]]) -> list[int]:
    return [row["id"] for row in rows]


def test_every_name_of_the_reference_is_here_or_left_out_for_a_reason() -> None:
    package = import_module("lance.torch")
    absent = set()
    for found in pkgutil.iter_modules(package.__path__):
        try:
            mine = import_module(f"lance_ops.torch.{found.name}")
        except ImportError:
            absent.add(found.name)
            continue
        theirs = import_module(f"lance.torch.{found.name}")
        own = {name for name, value in vars(theirs).items() if getattr(value, "__module__", "") == theirs.__name__}
        absent |= {f"{found.name}.{name}" for name in own if name[0] != "_" and not hasattr(mine, name)}
    assert absent == set().union(*LEFT_OUT.values())


@pytest.mark.parametrize("name", ["LanceDataset", "SafeLanceDataset", "get_safe_loader"])
def test_arguments_are_the_reference_s(name: str) -> None:
    mine, other = (inspect.signature(getattr(library, name)).parameters.values() for library in (data, REFERENCE))
    assert [(each.name, each.kind) for each in mine] == [(each.name, each.kind) for each in other]
    defaults = [each for each in mine if each.name != "to_tensor_fn"]
    assert [each.default for each in defaults] == [each.default for each in other if each.name != "to_tensor_fn"]


def test_ranks_and_devices_are_the_reference_s() -> None:
    reference = import_module("lance.torch.dist")
    for name in dist.__all__:
        assert getattr(dist, name)() == getattr(reference, name)()
    for device in (None, "cpu", torch.device("meta")):
        theirs = import_module("lance.torch").preferred_device(device)
        assert import_module("lance_ops.torch").preferred_device(device) == theirs
