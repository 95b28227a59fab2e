"""Keep secrets out of texts: errors, `repr`, logs, metadata, plans and events.

There are two kinds of secrets. A text reveals some itself: the user and password of a URL, the signature or token in a
URL's query, the password of a connection string. The others are values of options, which only their owner knows.
`secret_values` collects those, and `redact` removes both kinds.
"""

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
