"""Measurements: each beside a rival or a limit in the same run. `make bench` runs them all."""
