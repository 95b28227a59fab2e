"""Spark runs the tasks; the driver commits. Everything that imports pyspark lives here."""
