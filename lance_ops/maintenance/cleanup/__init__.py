"""Remove old versions and the files that nothing needs any more: plan, removal, and clean-up by configuration."""
