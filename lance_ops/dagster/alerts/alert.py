"""What a channel is told, as text and as JSON. Neither contains a secret that a URL or a connection string reveals."""

from __future__ import annotations

import hashlib
from typing import Any

from lance_ops.core.records import dataclass
from lance_ops.core.redaction import redact
from lance_ops.dagster.declaration import AlertEvent

__all__ = ["Alert"]

_MAX_REASON = 3000


@dataclass(frozen=True)
class Alert:
    """A message about one event of a dataset: what happened, why, and what to do.

    `identity` is a text that only this event has. An event may have several messages: a check is red, then it is red
    for another cause, and then it `is_resolved`. `occasion` is a text that only one of them has; the first one needs
    none. `version` is the newest version that Dagster had recorded.
    """

    event: AlertEvent
    dataset: str
    identity: str
    title: str
    reason: str
    remedy: str
    version: int | None = None
    batches: tuple[str, ...] = ()
    run_id: str | None = None
    occasion: str = ""
    is_resolved: bool = False

    @property
    def key(self) -> str:
        """A digest of the event, which is the same in the message that resolves it."""
        return _digest(self.event.value, self.dataset, self.identity)

    @property
    def message_key(self) -> str:
        """A digest of the message. A receiver that gets a message twice recognises it by this key."""
        return _digest(self.key, self.occasion) if self.occasion else self.key

    @property
    def status(self) -> str:
        """Whether the event still needs somebody, in the words of the usual receivers."""
        return "resolved" if self.is_resolved else "firing"

    def link(self, webserver: str) -> str | None:
        """Return the page of the run; None without a run, or if the webserver's URL is not known."""
        return f"{webserver.rstrip('/')}/runs/{self.run_id}" if webserver and self.run_id else None

    def subject(self) -> str:
        """Return one line."""
        return " ".join(f"[{self.dataset}] {redact(self.title)}".split())

    def text(self, webserver: str = "") -> str:
        """Return a message for people."""
        facts = {
            "Dataset": self.dataset,
            "Version": self.version,
            "Batches": ", ".join(self.batches),
            "Reason": self._reason,
            "Remedy": self.remedy,
            "Run": self.link(webserver) or self.run_id,
        }
        return "\n".join([self.subject(), *(f"{name}: {fact}" for name, fact in facts.items() if fact)])

    def as_json(self, webserver: str = "") -> dict[str, Any]:
        """Return the body of a webhook's request."""
        return {
            "key": self.key,
            "status": self.status,
            "event": self.event.value,
            "dataset": self.dataset,
            "title": redact(self.title),
            "reason": self._reason,
            "remedy": self.remedy,
            "version": self.version,
            "batches": list(self.batches),
            "run_id": self.run_id,
            "run_url": self.link(webserver),
        }

    @property
    def _reason(self) -> str:
        reason = redact(self.reason)
        return reason if len(reason) <= _MAX_REASON else reason[:_MAX_REASON] + " …"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
