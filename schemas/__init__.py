"""Contracts and messages: pydantic models and JSON Schema documents. Imports nothing else of ours."""
