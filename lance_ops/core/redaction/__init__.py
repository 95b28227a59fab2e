"""Keep secrets out of texts: errors, `repr`, logs, metadata, plans and events.

There are two kinds of secrets. A text reveals some itself: the user and password of a URL, the signature or token in a
URL's query, the password of a connection string. The others are values of options, which only their owner knows.
`secret_values` collects those, and `redact` removes both kinds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.core.redaction.error_links import raise_alone, shows_secret
    from lance_ops.core.redaction.option_values import (
        environment_secrets,
        is_secret_key,
        secret_values,
        secrets_in,
        shown_key,
    )
    from lance_ops.core.redaction.texts import REDACTED, public_uri, redact

__all__ = [
    "REDACTED",
    "environment_secrets",
    "is_secret_key",
    "public_uri",
    "raise_alone",
    "redact",
    "secret_values",
    "secrets_in",
    "shown_key",
    "shows_secret",
]

_MODULES = {
    "REDACTED": "texts",
    "environment_secrets": "option_values",
    "is_secret_key": "option_values",
    "public_uri": "texts",
    "raise_alone": "error_links",
    "redact": "texts",
    "secret_values": "option_values",
    "secrets_in": "option_values",
    "shown_key": "option_values",
    "shows_secret": "error_links",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
