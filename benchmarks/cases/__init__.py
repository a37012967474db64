"""Real refactors from public history, done again by Rolecall and compared with what people committed."""
