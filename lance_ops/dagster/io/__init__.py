"""Store what assets return as Lance datasets, and load it as the type that a downstream asset asks for."""

from lance_ops.dagster.io.dataset_resource import LanceDatasetResource
from lance_ops.dagster.io.declared_resources import RESOURCES_COMPONENT_TYPE, ResourcesConfig, build_resources
from lance_ops.dagster.io.io_manager import LanceIOManager

__all__ = [
    "RESOURCES_COMPONENT_TYPE",
    "LanceDatasetResource",
    "LanceIOManager",
    "ResourcesConfig",
    "build_resources",
]
