"""The planner: recipe and snapshot in, a plan or a revision out."""
