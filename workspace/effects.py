"""Effects that a task must have been granted at submission: which change of a path is which effect.

The words are those of `TaskRequest.allow`. A change of a path shows most of them; `line-ends` and `encodings` are seen
in the bytes of a file, by the reviewer.
"""

import re
from enum import StrEnum

from workspace.entries import LINK_MODE, SUBMODULE_MODE
from workspace.path_rules import is_control_file
from workspace.tree_walk import Leaf, canonical_mode


class Effect(StrEnum):
    """What a change may do beyond editing files."""

    DELETIONS = "deletions"
    LOCK_FILES = "lock-files"
    BUILD_FILES = "build-files"
    CI_FILES = "ci-files"
    LINKS = "links"
    MODES = "modes"
    GIT_FILES = "git-files"  # .gitmodules, .gitattributes: what git does with other files
    SUBMODULES = "submodules"
    LINE_ENDS = "line-ends"
    ENCODINGS = "encodings"


_LOCK_FILES = re.compile(
    rb"(.*\.lock|.*\.lockb|.*\.lockfile|package-lock\.json|npm-shrinkwrap\.json|packages\.lock\.json|pnpm-lock\.yaml"
    rb"|go\.sum|package\.resolved|conda-lock\.ya?ml|pylock(\..*)?\.toml|requirements.*\.hashes)"
)
_BUILD_FILES = re.compile(
    rb"(pyproject\.toml|setup\.(py|cfg)|(.*[-_.])?requirements.*\.(txt|in)|constraints.*\.txt|pipfile|tox\.ini|noxfile\.py"
    rb"|manifest\.in|environment\.ya?ml|(gnu)?makefile|.*\.mk|cmakelists\.txt|.*\.cmake|meson\.build|meson_options\.txt"
    rb"|configure(\.ac|\.in)?|sconstruct|justfile|build(\.bazel)?|workspace(\.bazel)?|module\.bazel|.*\.bzl"
    rb"|package\.json|pnpm-workspace\.yaml|\.npmrc|\.yarnrc(\.yml)?|deno\.jsonc?|cargo\.toml|build\.rs|go\.(mod|work)"
    rb"|pom\.xml|.*\.gradle(\.kts)?|gradle\.properties|build\.sbt|.*\.(cs|fs|vb)proj|.*\.sln|directory\.build\.props"
    rb"|gemfile|rakefile|.*\.gemspec|composer\.json|mix\.exs|package\.swift|podfile|pubspec\.yaml|flake\.nix"
    rb"|(.*\.)?dockerfile(\..*)?|containerfile|(docker-)?compose(\..*)?\.ya?ml)"
)
_CI_FILES = re.compile(
    rb"(\.github/(workflows|actions)/.*|(.*/)?\.gitlab-ci(\..*)?\.ya?ml|\.gitlab/.*|\.circleci/.*|\.buildkite/.*|\.ci/.*"
    rb"|(.*/)?azure-pipelines.*\.ya?ml|\.azure-pipelines/.*|(.*/)?jenkinsfile.*|\.travis\.ya?ml|\.drone\.ya?ml"
    rb"|\.woodpecker(/.*|\.ya?ml)|bitbucket-pipelines\.ya?ml|\.?appveyor\.ya?ml|\.cirrus\.ya?ml|cloudbuild\.ya?ml"
    rb"|\.pre-commit-config\.ya?ml|\.forgejo/workflows/.*|\.gitea/workflows/.*|\.readthedocs\.ya?ml|codecov\.ya?ml)"
)


def effects_of(path: bytes, old: Leaf | None, new: Leaf | None) -> frozenset[Effect]:
    """The effects that this change of a path has."""
    found = set(_of_kind(old, new))
    folded = path.lower()
    name = folded.rsplit(b"/", 1)[-1]
    if _LOCK_FILES.fullmatch(name):
        found.add(Effect.LOCK_FILES)
    if _BUILD_FILES.fullmatch(name):
        found.add(Effect.BUILD_FILES)
    if _CI_FILES.fullmatch(folded):
        found.add(Effect.CI_FILES)
    if is_control_file(path):
        found.add(Effect.GIT_FILES)
    return frozenset(found)


def _of_kind(old: Leaf | None, new: Leaf | None) -> list[Effect]:
    modes = [canonical_mode(leaf.mode) if leaf else None for leaf in (old, new)]
    found = []
    if new is None:
        found.append(Effect.DELETIONS)
    if LINK_MODE in modes:
        found.append(Effect.LINKS)
    if SUBMODULE_MODE in modes:
        found.append(Effect.SUBMODULES)
    if old is not None and new is not None and modes[0] != modes[1]:
        found.append(Effect.MODES)
    return found
