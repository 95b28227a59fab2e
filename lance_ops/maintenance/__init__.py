"""What keeps a dataset healthy: each verb is a plan, tasks that run anywhere, and one commit."""
