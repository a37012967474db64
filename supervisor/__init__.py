"""The supervisor: owns tasks, decides with pure functions, dispatches, verifies, composes, moves the head."""
