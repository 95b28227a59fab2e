"""Arrays of images have the reference's types, and travel through tables of either library."""

from __future__ import annotations

import io
import pickle
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

import lance_ops
from lance_ops import arrow
from lance_ops.errors import InvalidInput, ObjectNotFound, StoreError, WrongType

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

REFERENCE = import_module("lance.arrow")
PIXELS = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)


def tensors(library: Any, pixels: npt.NDArray[Any] = PIXELS) -> Any:
    return library.ImageArray.from_array(pa.FixedShapeTensorArray.from_numpy_ndarray(pixels))


IMAGES: dict[str, Any] = {
    "URIs": lambda library: library.ImageURIArray.from_uris(["/a/1.png", Path("/a/2.png")]),
    "large URIs": lambda library: library.ImageURIArray.from_uris(pa.array(["/a/1.png", None], pa.large_string())),
    "encoded": lambda library: library.ImageArray.from_array(pa.array([b"one", None])),
    "large encoded": lambda library: library.ImageArray.from_array(pa.array([b"one"], pa.large_binary())),
    "pixels": tensors,
    "float pixels": lambda library: tensors(library, PIXELS.astype(np.float32)),
    "no pixels": lambda library: tensors(library)[:0],
}


@pytest.mark.parametrize("form", IMAGES)
def test_types_have_the_reference_s_names_parameters_and_storage(form: str) -> None:
    mine, other = IMAGES[form](arrow), IMAGES[form](REFERENCE)
    assert (type(mine).__name__, type(mine.type).__name__) == (type(other).__name__, type(other.type).__name__)
    assert mine.type.extension_name == other.type.extension_name
    assert mine.type.__arrow_ext_serialize__() == other.type.__arrow_ext_serialize__()
    assert mine.storage.equals(other.storage)
    again = type(mine.type).__arrow_ext_deserialize__(other.type.storage_type, other.type.__arrow_ext_serialize__())
    assert again == mine.type == pickle.loads(pickle.dumps(mine.type))
    for image, reference in zip(mine, other, strict=True):
        assert type(image).__name__ == type(reference).__name__
        assert image.as_py() == (None if reference.value is None else reference.value.as_py())
    assert type(mine).__name__ in repr(mine)


@pytest.mark.parametrize("form", IMAGES)
def test_tables_of_either_library_hold_the_same_images(tmp_path: Path, form: str) -> None:
    for library, module in ((lance_ops, arrow), (lance, REFERENCE)):
        uri = str(tmp_path / library.__name__)
        library.write_dataset(pa.table({"i": IMAGES[form](module)}), uri)
        read = [reader.dataset(uri).to_table()["i"].combine_chunks() for reader in (lance_ops, lance)]
        for images in read:  # the reference has registered its types, so both libraries read columns of them
            assert images.type == IMAGES[form](REFERENCE).type
            assert images.storage.equals(IMAGES[form](REFERENCE).storage)


def test_pixels_become_an_array_of_numpy() -> None:
    for library in (arrow, REFERENCE):
        np.testing.assert_array_equal(tensors(library).to_numpy(), PIXELS)
        np.testing.assert_array_equal(tensors(library)[1:].to_numpy(), PIXELS[1:])
    made = arrow.FixedShapeImageTensorType(pa.uint8(), [3, 4])
    with_null = arrow.FixedShapeImageTensorArray.from_storage(made, pa.array([None, [0] * 12], made.storage_type))
    with pytest.raises(InvalidInput, match="1 images are null"):
        with_null.to_numpy()


@pytest.mark.parametrize("library", [arrow, REFERENCE])
def test_the_caller_s_codec_is_used(library: Any) -> None:
    encoded = tensors(library).to_encoded(lambda pixels: pa.array([each.tobytes() for each in pixels]))
    assert encoded.to_pylist() == [each.tobytes() for each in PIXELS]

    def decode(images: pa.Array) -> npt.NDArray[Any]:
        return np.stack([np.frombuffer(each, np.uint8).reshape(3, 4) for each in images.to_pylist()])

    assert encoded.to_tensor(decode).type == tensors(library).type
    np.testing.assert_array_equal(encoded[1:].to_tensor(decode).to_numpy(), PIXELS[1:])


def test_pillow_is_the_codec_otherwise() -> None:
    pillow = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    there = tensors(arrow).to_encoded()
    assert there.to_pylist() == tensors(REFERENCE).to_encoded().to_pylist()
    np.testing.assert_array_equal(there.to_tensor().to_numpy(), PIXELS)
    assert tensors(arrow).to_encoded(storage_type=pa.large_binary()).type.storage_type == pa.large_binary()
    with io.BytesIO() as file:
        pillow.fromarray(PIXELS[0, :2]).save(file, format="PNG")
        wrong = file.getvalue()
    for data, message in (
        ([], "no image"),
        ([None], "image 0 is null"),
        ([b"no image"], "image 0 cannot be decoded"),
        ([*there.to_pylist(), wrong], r"image 2 has pixels \(2, 4\)"),
    ):
        with pytest.raises(InvalidInput, match=message):
            arrow.ImageArray.from_array(pa.array(data, pa.binary())).to_tensor()
    with pytest.raises(InvalidInput, match="PNG"):
        tensors(arrow, PIXELS.astype(np.float64)).to_encoded()


def test_files_are_read_from_every_kind_of_local_uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a b%20.png").write_bytes(b"first")
    (tmp_path / "2.png").write_bytes(b"second")
    encoded = (tmp_path / "a b%20.png").as_uri()
    uris = [str(tmp_path / "2.png"), encoded, None, str(tmp_path / "a b%20.png")] * 20
    images = arrow.ImageURIArray.from_uris(uris).read_uris()
    assert images.to_pylist() == [b"second", b"first", None, b"first"] * 20
    reference = REFERENCE.ImageURIArray.from_uris(uris[:2]).read_uris()
    assert images[:2].storage.equals(reference.storage) and images.type.extension_name == reference.type.extension_name
    large = arrow.ImageURIArray.from_uris(uris[:1]).read_uris(pa.large_binary())
    assert large.type == arrow.EncodedImageType(pa.large_binary())
    monkeypatch.chdir(tmp_path)
    assert arrow.ImageURIArray.from_uris(["2.png"]).read_uris().to_pylist() == [b"second"]


def test_a_file_that_cannot_be_read_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "1.png").write_bytes(b"first")
    with pytest.raises(ObjectNotFound, match=r"absent\.png"):
        arrow.ImageURIArray.from_uris([tmp_path / "1.png", tmp_path / "absent.png"]).read_uris()
    with pytest.raises(InvalidInput, match="names no file"):
        arrow.ImageURIArray.from_uris([f"{tmp_path}/"]).read_uris()


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:  # the name that the server calls
        self.send_response({"/1.png": 200, "/absent.png": 404}.get(self.path, 500))
        self.end_headers()
        self.wfile.write(b"of the web")

    def log_message(self, *args: Any) -> None:
        """Write nothing to the console of the tests."""


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_images_of_the_web_are_read_or_named_in_an_error(web: str) -> None:
    for library in (arrow, REFERENCE):
        assert library.ImageURIArray.from_uris([f"{web}/1.png"]).read_uris().to_pylist() == [b"of the web"]
    for name, error in (("absent.png", ObjectNotFound), ("broken.png", StoreError)):
        with pytest.raises(error, match=f"{web}/{name}"):
            arrow.ImageURIArray.from_uris([f"{web}/{name}"]).read_uris()


def test_what_is_no_image_is_refused() -> None:
    cases: list[Any] = [
        lambda library: library.ImageArray.from_array(3),
        lambda library: library.ImageURIArray.from_uris(3),
        lambda library: library.ImageURIType(pa.int8()),
        lambda library: library.EncodedImageType(pa.string()),
    ]
    for case in cases:
        for library, error in ((arrow, WrongType), (REFERENCE, (TypeError, ValueError))):
            with pytest.raises(error):
                case(library)
    with pytest.raises(WrongType, match="int64"):  # of which the reference makes texts
        arrow.ImageArray.from_array(pa.array([1]))
    with pytest.raises(InvalidInput, match="dimension"):
        arrow.FixedShapeImageTensorType(pa.uint8(), ())


def test_columns_of_a_table_become_images_again(tmp_path: Path) -> None:
    uris = arrow.ImageURIArray.from_uris(["a", "b"])
    assert arrow.ImageArray.from_array(uris) is uris
    chunked = pa.chunked_array([["a"], ["b"]])
    assert arrow.ImageArray.from_array(chunked).equals(uris) and arrow.ImageArray.from_array(["a", "b"]).equals(uris)
