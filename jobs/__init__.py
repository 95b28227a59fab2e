"""The jobs, schedules and sensors of this deployment, and its demo."""
