"""Read declared datasets from YAML files, one dataset in each; every error names the file and the key."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from lance_ops.core.errors import ConfigError
from lance_ops.dagster.declaration.config import DatasetConfig

__all__ = ["load_dataset", "load_datasets"]


def load_datasets(folder: Path) -> tuple[DatasetConfig, ...]:
    """Read every `*.yaml` in `folder`, sorted by file name; raise `ConfigError` if two declare the same name."""
    declared: dict[str, Path] = {}
    configs = []
    for path in sorted(folder.glob("*.yaml")):
        config = load_dataset(path)
        if config.name in declared:
            raise ConfigError(f"{path}: name: {config.name} is already declared in {declared[config.name]}")
        declared[config.name] = path
        configs.append(config)
    return tuple(configs)


def load_dataset(path: Path) -> DatasetConfig:
    """Read one declared dataset."""
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), _StrictLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}: " if mark else ""
        raise ConfigError(f"{path}: {place}{error.problem or error.context}") from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: {error}") from error
    if not isinstance(document, dict):
        raise ConfigError(f"{path}: must be a mapping of keys, such as `name: flights`")
    try:
        return DatasetConfig.model_validate(document)
    except ValidationError as error:
        raise ConfigError("\n".join(_sentences(path, error))) from error


def _sentences(path: Path, error: ValidationError) -> Iterable[str]:
    """Return one line for each problem. The line does not quote the value, because it may be a secret."""
    for problem in error.errors(include_input=False, include_url=False):
        key = ".".join(str(part) for part in problem["loc"]) or "the document"
        yield f"{path}: {key}: {problem['msg'].removeprefix('Value error, ')}"


class _StrictLoader(yaml.SafeLoader):
    """A YAML loader that refuses a key that appears twice; PyYAML keeps the last one silently."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key} is given twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)
