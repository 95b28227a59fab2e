"""Maintain all tables beneath a root every night: one declaration becomes an asset, a job and a schedule."""

from __future__ import annotations

from lance_ops.dagster.fleet.declared_fleet import FleetConfig, load_fleets
from lance_ops.dagster.fleet.definitions import build_fleet_definitions
from lance_ops.dagster.fleet.fleet_component import LanceFleetComponent

__all__ = ["FleetConfig", "LanceFleetComponent", "build_fleet_definitions", "load_fleets"]
