"""The command line, the process manager, solo, and what an author of a role imports: the only place where roles meet."""
