"""Our `dataclass` makes the classes that the standard one makes, and compiles no `__init__` before it is used."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, FrozenInstanceError, asdict, field, fields, replace
from typing import Any, ClassVar

import pytest

from lance_ops.core.records import dataclass, late_init


class _Shape(ABC):
    @abstractmethod
    def area(self) -> int: ...


def _classes(dataclass: Callable[..., Any]) -> dict[str, Any]:
    """Return classes of all kinds that this library has, made by a decorator."""

    @dataclass(frozen=True)
    class Plain:
        """A name with items."""

        name: str
        items: list[int] = field(default_factory=list, compare=False, repr=False)
        count: ClassVar[int] = 3
        _: KW_ONLY
        size: int = 7

        def __post_init__(self) -> None:
            if self.size < 0:
                raise ValueError(self.size)

    @dataclass(frozen=True)
    class Derived(Plain):
        last: tuple[int, ...] = ()

    @dataclass(frozen=True, slots=True)
    class Slots:
        first: int
        second: str = "b"

    @dataclass
    class Mutable(_Shape):
        side: int

        def area(self) -> int:
            return self.side**2

    @dataclass(frozen=True, eq=False, repr=False)
    class Identity:
        value: int

    @dataclass(frozen=True)
    class OwnMethods:  # noqa: PLW1641 # the decorator writes its hash
        value: int
        other: int = field(init=False, default=5)

        def __eq__(self, other: object) -> bool:
            return isinstance(other, OwnMethods)

        def __repr__(self) -> str:
            return "own"

    @dataclass(frozen=True)
    class OwnHash:
        value: int

        def __hash__(self) -> int:
            return 5

    @dataclass(slots=True)
    class MutableSlots:
        value: int
        other: int = field(init=False, default=5)

    class Subclass(Plain):
        pass

    made = (Plain, Derived, Slots, Mutable, Identity, OwnMethods, OwnHash, MutableSlots, Subclass)
    return {each.__name__: each for each in made}


@dataclass(frozen=True, slots=True)
class _Pickled:
    number: int
    items: tuple[str, ...] = ()


OURS, STANDARD = _classes(dataclass), _classes(dataclasses.dataclass)


def _outcome(call: Callable[[], object]) -> object:
    try:
        return call()
    except (TypeError, ValueError, AttributeError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("name", OURS)
def test_a_class_is_as_the_standard_decorator_makes_it(name: str) -> None:
    def described(cls: Any) -> list[object]:
        one, same, other = cls(1), cls(1), cls(2)
        return [
            str(inspect.signature(cls)),
            cls.__match_args__,
            [(each.name, each.type, each.kw_only) for each in fields(cls)],
            asdict(one),
            repr(one).partition(" object at ")[0],
            [one == same, one == other, one != same, one == 1],
            _outcome(lambda: hash(one) == hash(same)),
            _outcome(lambda: hash(other) == hash(2) or hash(other) == hash((2,)) or hash(other) == 5),
            _outcome(lambda: replace(one, **{fields(cls)[0].name: 9}) == cls(9)),
            asdict(copy.copy(one)),
            asdict(copy.deepcopy(one)),
            hasattr(one, "__dict__"),
            _outcome(cls),
            _outcome(lambda: cls(1, unknown=2)),
            _outcome(lambda: cls(1, size=-1)),
            _outcome(lambda: setattr(one, fields(cls)[0].name, 3)),
            _outcome(lambda: delattr(one, fields(cls)[0].name)),
            hasattr(one, "__dict__") and _outcome(lambda: setattr(one, "another", 3)),
        ]

    assert described(OURS[name]) == described(STANDARD[name])


def test_frozen_fields_raise_frozen_instance_error() -> None:
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'name'"):
        OURS["Plain"]("a").name = "b"
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'last'"):
        del OURS["Derived"]("a").last
    free = OURS["Subclass"]("a")
    free.more = 1  # a subclass that is no dataclass may have attributes besides the fields
    with pytest.raises(FrozenInstanceError):
        free.size = 1


def test_hashes_are_those_of_the_fields() -> None:
    assert hash(OURS["Slots"](1)) == hash(STANDARD["Slots"](1))
    assert hash(OURS["Plain"]("a", [1])) == hash(STANDARD["Plain"]("a", [2]))
    assert OURS["Plain"]("a") != OURS["Derived"]("a")


def test_frozen_slots_are_pickled() -> None:
    value = _Pickled(3, ("a",))
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(value, protocol)) == value


def test_a_class_without_its_abstract_methods_is_refused() -> None:
    @dataclass
    class Incomplete(_Shape):
        side: int

    with pytest.raises(TypeError, match="abstract"):
        Incomplete(1)  # type: ignore[abstract]  # which is refused


def test_init_is_compiled_when_the_first_value_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[type] = []
    write = late_init._written_init

    def counted(cls: type, frozen: bool, slots: bool) -> Callable[..., None]:
        written.append(cls)
        return write(cls, frozen, slots)

    monkeypatch.setattr(late_init, "_written_init", counted)

    @dataclass(frozen=True)
    class Late:
        value: int

    assert written == []
    assert [Late(1), Late(2)] == [Late(1), Late(2)]
    assert written == [Late]
    assert inspect.isfunction(vars(Late)["__init__"])  # a call no longer passes through the placeholder
