"""A declared dataset: its YAML, its names, and the environment variables in it."""

from lance_ops.dagster.declaration.attributes import COMPONENT_TYPE, ComponentAttributes
from lance_ops.dagster.declaration.config import DatasetConfig
from lance_ops.dagster.declaration.config_files import (
    ONE_TABLE,
    declaration_file,
    load_attributes,
    load_dataset,
    load_datasets,
    load_declaration,
)
from lance_ops.dagster.declaration.declared_model import DeclaredModel, OptionalSection, Options
from lance_ops.dagster.declaration.environment import expand, expand_all, expand_location
from lance_ops.dagster.declaration.names import DatasetNames, safe_key
from lance_ops.dagster.declaration.patterns import KeyPattern, PathGlob
from lance_ops.dagster.declaration.policies import (
    AlertChannel,
    AlertChannels,
    AlertEvent,
    CleanupPolicy,
    CompactionPolicy,
    Cron,
    EmailChannel,
    SlackChannel,
    TeamsChannel,
    Timezone,
    UpkeepPolicy,
    WebhookChannel,
)
from lance_ops.dagster.declaration.presentation import ColumnNotes, HeadContent, ShownAssets
from lance_ops.dagster.declaration.raw_files import RawFiles
from lance_ops.dagster.declaration.runner_choice import OnSpark, OnThreads, RunnerChoice, SparkSettings
from lance_ops.dagster.declaration.store_location import StoreLocation
from lance_ops.dagster.declaration.templates import with_templates
from lance_ops.dagster.declaration.write_options import WriteOptions

__all__ = [
    "COMPONENT_TYPE",
    "ONE_TABLE",
    "AlertChannel",
    "AlertChannels",
    "AlertEvent",
    "CleanupPolicy",
    "ColumnNotes",
    "CompactionPolicy",
    "ComponentAttributes",
    "Cron",
    "DatasetConfig",
    "DatasetNames",
    "DeclaredModel",
    "EmailChannel",
    "HeadContent",
    "KeyPattern",
    "OnSpark",
    "OnThreads",
    "OptionalSection",
    "Options",
    "PathGlob",
    "RawFiles",
    "RunnerChoice",
    "ShownAssets",
    "SlackChannel",
    "SparkSettings",
    "StoreLocation",
    "TeamsChannel",
    "Timezone",
    "UpkeepPolicy",
    "WebhookChannel",
    "WriteOptions",
    "declaration_file",
    "expand",
    "expand_all",
    "expand_location",
    "load_attributes",
    "load_dataset",
    "load_datasets",
    "load_declaration",
    "safe_key",
    "with_templates",
]
