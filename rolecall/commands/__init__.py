"""The commands of `rolecall`, one module each; `rolecall.command_table` says when one is imported."""
