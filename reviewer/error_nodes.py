"""How many places of a text do not parse, in any language that ast-grep knows."""

from ast_grep_py import SgRoot


def count_error_nodes(text: str, language: str) -> int:
    """The number of ERROR and MISSING nodes. `language` is one of `engines.languages`."""
    # What tree-sitter could not place, and what it had to make up: a token of no characters. Named nodes of no
    # characters are legal: an empty module is one.
    found = SgRoot(text, language).root().find_all(any=[{"kind": "ERROR"}, {"regex": "^$"}])
    return sum(node.kind() == "ERROR" or not node.is_named() for node in found)
