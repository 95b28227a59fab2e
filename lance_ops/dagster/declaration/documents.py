"""Parse the YAML of a declaration in bounded time and memory; errors name the line, and the key if it is known.

PyYAML recurses over nested values, and lets an alias stand for any number of values. It keeps the last of two equal
keys, and raises errors of other classes for some values. The text is therefore checked as a tree of nodes first.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from lance_ops.core.errors import ConfigError
from lance_ops.core.redaction import raise_alone

__all__ = ["MAX_BYTES", "MAX_DEPTH", "MAX_NODES", "check_keys_are_unique", "parse_document", "read_document"]

MAX_BYTES = 1024**2
MAX_DEPTH = 20
MAX_NODES = 10_000
"""How many values a document may hold, with each alias counted as all that it stands for."""


def read_document(path: Path) -> str:
    """Return a file's text; raise `ConfigError` if it is larger than `MAX_BYTES` or not UTF-8."""
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ConfigError(f"a declaration may have at most {MAX_BYTES:,} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"not UTF-8: byte {error.start}: {error.reason}") from error


def parse_document(text: str) -> Any:
    """Return the document's values; raise `ConfigError` with the line, and the key if it is known."""
    try:
        _check_events(text)
        node = yaml.compose(text, yaml.SafeLoader)
        return None if node is None else _construct(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}: " if mark else ""
        raise_alone(ConfigError(f"{place}{error.problem or error.context}"))  # the parser's error quotes the line
    except yaml.YAMLError as error:
        raise_alone(ConfigError(str(error)))


@lru_cache(maxsize=16)
def check_keys_are_unique(text: str) -> None:
    """Raise `ConfigError` with the line and the key if a mapping of any document in `text` has a key twice.

    A key that is no text, an alias within its own value, and more than `MAX_NODES` values are refused, too. Each
    component of a file checks the whole file, so the texts that were found good are remembered.
    """
    for node in yaml.compose_all(text, yaml.SafeLoader):
        _check_nodes(node, "", {})


def _check_events(text: str) -> None:
    """Bound the depth and the number of values while PyYAML parses: parsing does not recurse, the later steps do."""
    depth = num_values = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        num_values += isinstance(event, yaml.NodeEvent)
        if num_values > MAX_NODES:
            raise ConfigError(f"{_line(event)}: more than {MAX_NODES:,} values")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise ConfigError(f"{_line(event)}: values may be nested at most {MAX_DEPTH} deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _construct(root: yaml.Node) -> Any:
    _check_nodes(root, "", {})
    loader = yaml.SafeLoader("")
    try:
        return loader.construct_document(root)
    except yaml.YAMLError:
        raise
    except (ValueError, TypeError, OverflowError, AttributeError) as error:
        # PyYAML's constructors raise these for a date such as 2024-99-99 or a number that Python does not take.
        raise ConfigError(_first_bad_value(root) or f"a value cannot be read: {error}") from error
    finally:
        loader.dispose()


def _check_nodes(node: yaml.Node, key: str, counted: dict[int, int | None]) -> int:
    """Return how many nodes `node` stands for; refuse cycles, doubled keys, and keys that are lists or mappings.

    `counted` holds a node's number of nodes, or None while it is being counted.
    """
    if id(node) in counted:
        known = counted[id(node)]
        if known is None:
            raise ConfigError(f"{_line(node)}: {_named(key)}an alias stands within its own value")
        return known
    counted[id(node)] = None
    num_nodes = 1
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            num_nodes = _bounded(num_nodes + _check_nodes(item, _below(key, index), counted), node, key)
    elif isinstance(node, yaml.MappingNode):
        seen: set[tuple[str, str]] = set()
        for key_node, value in node.value:
            name = _key_of(key_node, key)
            if (key_node.tag, name) in seen:
                raise ConfigError(f"{_line(key_node)}: key {_below(key, name)} is given twice")
            seen.add((key_node.tag, name))
            num_nodes = _bounded(num_nodes + 1 + _check_nodes(value, _below(key, name), counted), node, key)
    counted[id(node)] = num_nodes
    return num_nodes


def _key_of(node: yaml.Node, parent: str) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise ConfigError(f"{_line(node)}: {_named(parent)}a key must be a text, not a list or a mapping")
    return str(node.value)


def _bounded(num_nodes: int, node: yaml.Node, key: str) -> int:
    if num_nodes > MAX_NODES:
        raise ConfigError(f"{_line(node)}: {_named(key)}more than {MAX_NODES:,} values, aliases included")
    return num_nodes


def _first_bad_value(node: yaml.Node, key: str = "") -> str | None:
    """Return a sentence on the first scalar that PyYAML cannot read. It never quotes a value, which may be secret."""
    if isinstance(node, yaml.ScalarNode):
        loader = yaml.SafeLoader("")
        try:
            loader.construct_document(node)
        except (ValueError, TypeError, OverflowError, AttributeError):
            kind = node.tag.rpartition(":")[2]
            return f"{_line(node)}: {_named(key)}cannot be read as a value of type {kind}; quote it to make it a text"
        finally:
            loader.dispose()
        return None
    children = (
        [(_below(key, index), item) for index, item in enumerate(node.value)]
        if isinstance(node, yaml.SequenceNode)
        else [child for name, value in node.value for child in ((key, name), (_below(key, name.value), value))]
    )
    return next((found for place, child in children if (found := _first_bad_value(child, place))), None)


def _below(key: str, name: object) -> str:
    return f"{key}.{name}" if key else str(name)


def _named(key: str) -> str:
    return f"{key}: " if key else ""


def _line(place: yaml.Node | yaml.Event) -> str:
    mark = place.start_mark
    return f"line {mark.line + 1}" if mark else "the document"
