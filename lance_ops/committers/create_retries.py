"""Repeat a create whose answer was lost, until its outcome is known or the attempts are used up.

A create that succeeded can look like a failure: the answer is lost, or the client retried by itself and was told that
its own object exists. So after anything but a clean success the committer reads the version. Our bytes mean that we
have committed; other bytes mean a conflict. If there is nothing, the committer sends the same create again, never
another one, so a delayed first request can only collide with itself.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from lance_ops.committers.contract import Abandoned, CommitOutcome, Committed, Unknown
from lance_ops.core.errors import StoreError, UnsafeStore, WriteRefused
from lance_ops.core.records import dataclass

__all__ = ["CREATE_RETRIES", "CreateRetries"]


@dataclass(frozen=True, slots=True)
class CreateRetries:
    """How often to try: `attempts` times, `pause_seconds` apart at first, and each pause twice as long as the last."""

    attempts: int = 5
    pause_seconds: float = 0.1

    def settle(
        self, version: int, create: Callable[[], Committed | Abandoned | None], look: Callable[[], CommitOutcome | None]
    ) -> CommitOutcome:
        """Create a version and return the outcome.

        `create` returns None if the version exists already. `look` returns the outcome that the existing version means
        for us, None if it does not exist. Both may raise `StoreError`.

        Raises `UnsafeStore` always. Raises the `WriteRefused` of a first attempt if `look` then finds no version: so no
        retry inside the client has created it.
        """
        doubt: str | None = None
        for attempt in range(self.attempts):
            if attempt:
                time.sleep(self.pause_seconds * 2 ** (attempt - 1) * random.uniform(0.5, 1.0))
            refusal: WriteRefused | None = None
            answer = "the store answered that the version exists, and then that it does not"
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
"""The default of committers."""
