"""The languages that ast-grep parses: their names, file endings, and where a piece of code may stand.

ast-grep ends the whole process's patience with a BaseException for a language that it does not know, so names are
looked up here first.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from schemas.errors import ContractError
from schemas.suggest import nearest

# A pattern is a piece of code; these are surroundings in which pieces of code stand. The first that fits gives the
# meaning, the others add readings of another kind (in Python an annotation is parsed differently from a call).
_BARE = ("{}",)
_STATEMENT_IN_C = ("void f() {{ {}; }}", "void f() {{ {} }}", "{}")
_MEMBER_IN_JAVA = (
    "class A {{ void f() {{ {}; }} }}",
    "class A {{ void f() {{ {} }} }}",
    "class A {{ {} }}",
    "{}",
)


@dataclass(frozen=True, slots=True)
class Language:
    """One language. `places` are templates in which a pattern is tried to be read, most likely first."""

    name: str
    endings: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    places: tuple[str, ...] = _BARE
    has_dollar_names: bool = False
    """True if `$NAME` is code of the language itself, so that a stray one in a replacement is no mistake."""
    parens: bool = True
    """True if an expression may be put in parentheses without a change of meaning."""


_ALL = (
    Language("bash", ("sh", "bash", "bats", "ksh", "zsh"), ("sh",), has_dollar_names=True, parens=False),
    Language("c", ("c", "h"), places=_STATEMENT_IN_C),
    Language(
        "cpp", ("cc", "cpp", "c++", "cxx", "hh", "hpp", "hxx", "cu", "ino"), ("c++", "cc"), _STATEMENT_IN_C
    ),
    Language("csharp", ("cs",), ("cs", "c#"), _MEMBER_IN_JAVA),
    Language("css", ("css",), parens=False),
    Language("dart", ("dart",), places=_STATEMENT_IN_C),
    Language("elixir", ("ex", "exs"), ("ex",)),
    Language(
        "go",
        ("go",),
        ("golang",),
        (
            "package p\nfunc _() {{\n{}\n}}\n",
            "package p\n{}\n",
            "package p\nvar _ {}\n",
            "package p\nimport (\n{}\n)\n",
        ),
    ),
    Language("haskell", ("hs",), ("hs",)),
    Language("hcl", ("hcl", "tf", "tfvars", "nomad"), ("terraform", "tf"), parens=False),
    Language("html", ("html", "htm", "xhtml"), parens=False),
    Language("java", ("java",), places=_MEMBER_IN_JAVA),
    Language("javascript", ("js", "cjs", "mjs", "jsx"), ("js", "jsx")),
    Language("json", ("json",), parens=False),
    Language("kotlin", ("kt", "kts", "ktm"), ("kt",)),
    Language("lua", ("lua",)),
    Language("markdown", ("md", "markdown"), ("md",), parens=False),
    Language("nix", ("nix",)),
    Language("php", ("php",), places=("<?php\n{};", "<?php\n{}", "{}"), has_dollar_names=True),
    Language(
        "python",
        ("py", "pyi", "pyw"),
        ("py", "python3"),
        ("{}", "_: {}", "{}\ndef _(): pass", "try: pass\n{}"),
    ),
    Language("ruby", ("rb", "rbw", "gemspec", "rake"), ("rb",), has_dollar_names=True),
    Language("rust", ("rs",), ("rs",), ("fn f() {{ {}; }}", "fn f() {{ {} }}", "{}", "type A = {};")),
    Language("scala", ("scala", "sc", "sbt")),
    Language(
        "solidity",
        ("sol",),
        ("sol",),
        ("contract A {{ function f() {{ {}; }} }}", "contract A {{ {} }}", "{}"),
    ),
    Language("swift", ("swift",)),
    Language("tsx", ("tsx",), places=("{}", "let _: {};")),
    Language("typescript", ("ts", "cts", "mts"), ("ts",), ("{}", "let _: {};")),
    Language("yaml", ("yaml", "yml"), ("yml",), parens=False),
)


def language(name: str) -> Language:
    """The language of that name or alias. Raises ContractError with the nearest one."""
    found = _by_name().get(name.strip().lower())
    if found is None:
        hint = nearest(name, _by_name())
        raise ContractError(
            f"{name!r} is not a language that ast-grep parses; those are {', '.join(one.name for one in _ALL)}.",
            suggestion=f"Did you mean {_by_name()[hint].name!r}?" if hint else "",
        )
    return found


def language_of(path: str) -> Language | None:
    """The language of a file by its ending, or None."""
    return _by_ending().get(ending_of(path))


def ending_of(path: str) -> str:
    """A path's last extension in lower case, without the dot."""
    name = path[path.rfind("/") + 1 :]
    dot = name.rfind(".")
    return name[dot + 1 :].lower() if dot > 0 else ""


def languages() -> tuple[Language, ...]:
    """All of them, by name."""
    return _ALL


@cache
def _by_name() -> Mapping[str, Language]:
    return {name: one for one in _ALL for name in (one.name, *one.aliases)}


@cache
def _by_ending() -> Mapping[str, Language]:
    return {ending: one for one in _ALL for ending in one.endings}
