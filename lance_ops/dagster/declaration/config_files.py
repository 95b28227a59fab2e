"""Read declared datasets from YAML files, one dataset in each; every error names the file and the key.

A file has the keys of a dataset, or it is a `defs.yaml`, which has them beneath `attributes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from lance_ops.core.errors import ConfigError
from lance_ops.core.redaction import raise_alone
from lance_ops.dagster.declaration import templates
from lance_ops.dagster.declaration.attributes import COMPONENT_TYPE, ComponentAttributes
from lance_ops.dagster.declaration.config import DatasetConfig
from lance_ops.dagster.declaration.declared_model import DeclaredModel
from lance_ops.dagster.declaration.documents import check_keys_are_unique, parse_document, read_document

__all__ = [
    "ONE_TABLE",
    "Render",
    "declaration_file",
    "load_attributes",
    "load_dataset",
    "load_datasets",
    "load_declaration",
]

Declared = TypeVar("Declared", bound=DeclaredModel)

ONE_TABLE = (
    "declare a table once, because its history records batches by key alone: one dataset would take the other's "
    "batches for its own"
)
"""The reason why two datasets may not have the same table. Error messages end with it."""

Render = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Returns nested values with every text rendered as a template."""


def load_datasets(folder: Path) -> tuple[DatasetConfig, ...]:
    """Return the datasets that the `*.yaml` files in `folder` declare, sorted by file name.

    Raises `ConfigError` for a file that `load_dataset` refuses, and if two files declare the same name or table.
    """
    declared: dict[Path, DatasetConfig] = {}
    for path in sorted(folder.glob("*.yaml")):
        config = load_dataset(path)
        for before, other in declared.items():
            if config.name == other.name:
                raise ConfigError(f"{path}: name: {config.name} is already declared in {before}")
            if config.shares_table_with(other):
                raise ConfigError(f"{path}: uri: it is the table of {other.name} in {before}: {ONE_TABLE}")
        declared[path] = config
    return tuple(declared.values())


def load_dataset(path: Path) -> DatasetConfig:
    """Read one declared dataset, also from the `defs.yaml` of a component.

    Only Dagster renders `{{ }}`, so a `defs.yaml` with such a template is refused.
    """
    document = _mapping(path)
    if "type" not in document:
        return _validated(path, document, DatasetConfig)
    if document["type"] != COMPONENT_TYPE:
        raise ConfigError(f"{path}: type: must be {COMPONENT_TYPE}")
    attributes = document.get("attributes")
    if not isinstance(attributes, dict):
        raise ConfigError(f"{path}: attributes: must be a mapping of keys, such as `name: flights`")
    for key, _ in templates.templates_in(attributes, "attributes"):
        raise ConfigError(f"{path}: {_dotted(key)}: only Dagster renders templates; write ${{NAME}} for a variable")
    return _validated(path, attributes, ComponentAttributes, "attributes")


def load_attributes(place: Path, given: BaseModel | None, model: type[Declared], render: Render) -> Declared:
    """Return the model that a component's attributes declare once Dagster's `render` has replaced their templates.

    `place` is the component's file, or its folder with a `defs.yaml`, and `given` is what Dagster has read there.
    Raises `ConfigError`, which names the file and the key, for a wrong value and for a variable that is not set.
    """
    path = declaration_file(place)
    _check_keys_are_unique(path)
    # Pydantic would warn of each template that stands where the model wants another type than text.
    written = given.model_dump(exclude_unset=True, warnings=False) if given else {}
    for key, template in templates.templates_in(written, "attributes"):
        if name := templates.unset_variable(template):
            raise ConfigError(
                f"{path}: {_dotted(key)}: environment variable {name} is not set; set it, or give a default as "
                f"{{{{ env('{name}', ...) }}}}"
            )
    whole = {"attributes": written}  # so that Dagster's own errors find the line of a template
    return _validated(path, templates.with_rendered(whole, render(whole))["attributes"], model, "attributes")


def declaration_file(place: Path) -> Path:
    """Return the file of a component that Dagster loads from `place`: its file, or its folder with a `defs.yaml`."""
    return place / "defs.yaml" if place.is_dir() else place


def load_declaration(path: Path, model: type[Declared]) -> Declared:
    """Read one YAML file as a model. No error has the parser's error as its cause, because that one quotes the file."""
    return _validated(path, _mapping(path), model)


def _check_keys_are_unique(path: Path) -> None:
    """Refuse a key that is given twice: of two equal keys, Dagster keeps the last one without a word."""
    if path.suffix not in (".yaml", ".yml") or not path.is_file():  # a component of a Python file has no such keys
        return
    try:
        check_keys_are_unique(path.read_text("utf-8"))
    except ConfigError as error:
        raise_alone(ConfigError(f"{path}: {error}"))


def _mapping(path: Path) -> dict[Any, Any]:
    try:
        document = parse_document(read_document(path))
    except OSError as error:
        raise ConfigError(f"{path}: {_why_not_read(path, error)}") from error
    except ValueError as error:
        raise_alone(ConfigError(f"{path}: {error}"))
    if not isinstance(document, dict):
        raise ConfigError(f"{path}: must be a mapping of keys, such as `name: flights`")
    return document


def _why_not_read(path: Path, error: OSError) -> str:
    if isinstance(error, IsADirectoryError):
        inside = path / "defs.yaml"
        return f"it is a folder: give {inside if inside.is_file() else 'the YAML file that declares the dataset'}"
    if isinstance(error, FileNotFoundError):
        return "there is no such file: give the YAML file that declares the dataset"
    return f"it cannot be read: {error.strerror}"


def _validated(path: Path, document: dict[Any, Any], model: type[Declared], *beneath: str) -> Declared:
    """Return the model that a document declares; the document stands beneath these keys of the file."""
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise_alone(ConfigError("\n".join(_sentences(path, error, beneath))))


def _sentences(path: Path, error: ValidationError, beneath: tuple[str, ...]) -> Iterable[str]:
    """Return one line for each problem. The line does not quote the value, because it may be a secret."""
    for problem in error.errors(include_input=False, include_url=False):
        key = _dotted((*beneath, *problem["loc"])) or "the document"
        yield f"{path}: {key}: {problem['msg'].removeprefix('Value error, ')}"


def _dotted(key: Iterable[str | int]) -> str:
    return ".".join(str(part) for part in key)
