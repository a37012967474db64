"""The journal: the ordered record of what the supervisor received, decided and sent."""
