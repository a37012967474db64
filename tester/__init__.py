"""The tester role: runs a repository's own tests on a commit, in the sandbox, and gives a verdict per test."""
