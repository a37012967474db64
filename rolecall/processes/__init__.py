"""Processes that Rolecall starts and stops on this machine."""
