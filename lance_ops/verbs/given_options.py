"""Make a verb of options that stand in JSON, in a launch, or on a command line, and tell which it was given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, get_origin

from lance_ops.core.errors import InvalidInput
from lance_ops.verbs.contract import Verb
from lance_ops.verbs.options import DeclaredOption, options_of
from lance_ops.verbs.registry import verb_named

__all__ = ["make_verb", "options_given", "parse_options"]


def make_verb(name: str, options: Mapping[str, Any]) -> Verb:
    """Return the verb of a name with these options; a list stands for a tuple.

    Raises `InvalidInput` that names an option that is unknown, of a wrong type, or lacking.
    """
    kind = verb_named(name)
    declared = _declared(name, options)
    lacking = [option.name for option in declared.values() if option.is_required and option.name not in options]
    if lacking:
        raise InvalidInput(f"{name} needs more options: {', '.join(lacking)}")
    return kind(**{option: tuple(value) if isinstance(value, list) else value for option, value in options.items()})


def options_given(verb: Verb) -> dict[str, Any]:
    """Return the options of a verb that differ from their defaults."""
    options = options_of(type(verb))
    return {name: getattr(verb, name) for name, option in options.items() if getattr(verb, name) != option.default}


def parse_options(name: str, pairs: Mapping[str, list[str]]) -> dict[str, Any]:
    """Return options from words of a command line, each word as the type of its option wants it.

    Raises `InvalidInput` that names an option that is unknown, has several words although it holds one value, or has a
    word that its type does not allow.
    """
    declared = _declared(name, pairs)
    return {option: _parsed(name, declared[option], option, words) for option, words in pairs.items()}


def _declared(name: str, given: Iterable[str]) -> Mapping[str, DeclaredOption]:
    """Return the options of a verb; raise `InvalidInput` if one of the given names is not among them."""
    declared = options_of(verb_named(name))
    for option in given:
        if option not in declared:
            raise InvalidInput(f"{name} has no option {option!r}: it has {', '.join(declared)}")
    return declared


def _parsed(name: str, declared: DeclaredOption, option: str, words: list[str]) -> Any:
    kinds = declared.kinds
    origins = {get_origin(kind) or kind for kind in kinds}
    if tuple in origins:
        of_numbers = tuple[int, ...] in kinds
        return tuple(_number(name, option, word, int) if of_numbers else word for word in words)
    if Mapping in origins:
        return _mapping(name, option, words)
    if len(words) > 1:
        raise InvalidInput(f"{name}: option {option} holds one value, and {len(words)} are given: {', '.join(words)}")
    word = words[0]
    if bool in origins and word.lower() in ("true", "false"):
        return word.lower() == "true"
    kind = next((each for each in (int, float) if each in origins), None)
    return word if kind is None else _number(name, option, word, kind)


def _mapping(name: str, option: str, words: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not key or not equals:
            raise InvalidInput(f"{name}: option {option} holds pairs name=text, and {word!r} is none")
        if key in found:
            raise InvalidInput(f"{name}: option {option} names {key!r} twice: with {found[key]!r} and {value!r}")
        found[key] = value
    return found


def _number(name: str, option: str, word: str, kind: type[int | float]) -> int | float:
    try:
        return kind(word)
    except ValueError:
        raise InvalidInput(f"{name}: option {option} is a number, not {word!r}") from None
