"""The refactoring engines: bytes of files in, bytes of files out, and the truth about what was left."""
