"""Maintain all tables beneath a root every night: one declaration becomes an asset, a job and a schedule."""

from __future__ import annotations

from lance_ops.dagster.fleet.declared_fleet import FLEET_COMPONENT_TYPE, FleetConfig, load_fleets
from lance_ops.dagster.fleet.definitions import build_fleet_definitions

__all__ = ["FLEET_COMPONENT_TYPE", "FleetConfig", "build_fleet_definitions", "load_fleets"]
