"""Change rows, columns and metadata of a table; each verb is a plan, tasks and one commit."""
