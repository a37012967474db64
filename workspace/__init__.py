"""The one place that knows git, sandboxes and child processes."""
