"""The executor role: applies a rule to a snapshot and hands back the changed snapshot."""
