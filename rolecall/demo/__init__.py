"""The demonstration: a released package that we did not write, refactored from start to end."""
