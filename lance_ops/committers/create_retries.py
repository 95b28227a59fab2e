"""From a create that may have failed to what became of it.

A create that landed can look like a failure: the answer is lost, or the client retried by itself and was told that its
own object exists. So on anything but a clean success somebody looks what is there. Ours: it is our commit. Another's: a
conflict. Nothing: the same create is sent again, never another one, so that a delayed first request can only collide
with itself.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from lance_ops.committers.contract import Abandoned, CommitOutcome, Committed, Unknown
from lance_ops.core.errors import StoreError, UnsafeStore, WriteRefused

__all__ = ["CREATE_RETRIES", "CreateRetries"]


@dataclass(frozen=True, slots=True)
class CreateRetries:
    """How long to try: `attempts` times, `pause_seconds` apart at first and twice as long each time."""

    attempts: int = 5
    pause_seconds: float = 0.1

    def settle(
        self, version: int, create: Callable[[], Committed | Abandoned | None], look: Callable[[], CommitOutcome | None]
    ) -> CommitOutcome:
        """Create a version, and find out what became of it.

        `create` returns None where the version is there already; `look` returns whose it is, None where there is
        nothing. Both may raise `StoreError`. A `WriteRefused` of the first attempt is raised if it can be seen that the
        version is not there, as not even an earlier attempt of the client's own landed then; `UnsafeStore` always is.
        """
        doubt: str | None = None
        for attempt in range(self.attempts):
            if attempt:
                time.sleep(self.pause_seconds * 2 ** (attempt - 1) * random.uniform(0.5, 1.0))
            refusal: WriteRefused | None = None
            answer = "the store said that the version exists, and then that it does not"
            try:
                created = create()
                if created is not None:
                    return created
            except UnsafeStore:
                raise
            except StoreError as error:
                if isinstance(error, WriteRefused) and doubt is None:
                    refusal = error
                answer = str(error)
            try:
                found = look()
                if found is not None:
                    return found
                if refusal is not None:
                    raise refusal
            except StoreError as error:
                if error is refusal:
                    raise
                answer = str(error)
            doubt = answer
        return Unknown(version, doubt or "no attempt was made")


CREATE_RETRIES = CreateRetries()
"""What a commit takes unless told otherwise."""
