"""The reviewer role: judges the result of a step by gates that need no model."""
