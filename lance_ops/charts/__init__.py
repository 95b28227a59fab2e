"""Draw numbers as SVG for people: measures as they grow, and versions in their order. It reads nothing."""

from lance_ops.charts.card import escaped, image_address
from lance_ops.charts.marked_versions import Mark, version_chart
from lance_ops.charts.trends import Panel, trend_chart
from lance_ops.charts.units import size_text

__all__ = ["Mark", "Panel", "escaped", "image_address", "size_text", "trend_chart", "version_chart"]
