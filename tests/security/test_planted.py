"""The search itself finds what was planted."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.security.planted import found_in, found_in_error, found_in_files, plain, planted


@pytest.mark.parametrize("shift", range(3))
def test_a_planted_secret_is_found_in_every_form(shift: int) -> None:
    for secret in (planted("a_key"), plain("a_key")):
        for form in (secret, quote(secret), json.dumps(secret), repr(secret), secret.upper(), f"x\n{secret}y"):
            assert found_in(form) and found_in(form.encode())
        assert found_in(base64.b64encode(b"u" * shift + secret.encode()))
    assert not found_in("an account_key is missing")


def test_a_planted_secret_is_found_in_linked_errors_and_in_files(tmp_path: Path) -> None:
    def fail() -> None:
        try:
            raise KeyError(planted("cause"))
        except KeyError:
            raise ValueError("clean") from None

    with pytest.raises(ValueError, match="clean") as caught:
        fail()
    assert found_in_error(caught.value)
    (tmp_path / "clean").write_text("clean")
    assert not found_in_files(tmp_path)
    (tmp_path / "file").write_bytes(b"\0" + planted("file").encode())
    assert list(found_in_files(tmp_path)) == [str(tmp_path / "file")]
