"""`LanceFragment` and fragments written apart, under the reference's names."""
