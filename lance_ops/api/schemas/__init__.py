"""`LanceSchema`, and Arrow schemas as JSON, under the reference's names."""
