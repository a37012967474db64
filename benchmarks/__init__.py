"""Measurements, each beside its rival in the same run (`make bench`)."""
