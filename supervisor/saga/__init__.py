"""The saga: the whole life of a task as pure functions over frozen data. No clock, no I/O, no randomness."""
