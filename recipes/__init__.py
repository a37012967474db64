"""Refactors that are shipped as data: one YAML file each, tried on its own examples by a test."""
