"""What runs on the datasets of this deployment, and when."""
