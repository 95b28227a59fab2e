"""What a scan may be asked for, and the scanner that answers it, under the reference's names."""
