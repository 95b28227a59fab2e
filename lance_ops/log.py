"""The reference's `lance.log`: where the messages of this library go."""

from lance_ops.core.logs import ENV_NAME_PYLANCE_LOGGING_LEVEL, LOGGER, get_log_level, set_logger

__all__ = ["ENV_NAME_PYLANCE_LOGGING_LEVEL", "LOGGER", "get_log_level", "set_logger"]
