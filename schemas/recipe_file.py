"""Reads a recipe from YAML: says for every fault the file, the line, what was meant, and how to see the contract.

A rule is a mapping with optional `id`, `description`, `scope` and `examples`, and exactly one contract as a key. Its
input is coerced and checked by that contract's schema; which contracts exist is passed in.
"""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from schemas.contracts import ContractDocument, ContractRegistry
from schemas.errors import RecipeError
from schemas.recipe import MAX_RULES, NAME_PATTERN, Recipe, RecipeTest, Rule, RuleExample, is_ref_safe
from schemas.scope import Scope
from schemas.suggest import nearest
from schemas.validation import checker, coerce, find_fault
from schemas.yaml_lines import Fields, Items, Located, Scalar, line_at, plain, read_yaml

RECIPE_KEYS = ("recipe", "description", "scope", "rules", "test")
RULE_KEYS = ("id", "description", "scope", "examples")
_Model = TypeVar("_Model", bound=BaseModel)
_CONTRACT_KEY = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+(@[0-9]+)?")


def load_recipe(path: Path, contracts: ContractRegistry) -> Recipe:
    """The recipe in a file. Raises RecipeError with file and line."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RecipeError(
            f"{path}: cannot be read: {error.strerror}.",
            suggestion="`rolecall recipes` lists the recipes that are shipped.",
        ) from error
    return parse_recipe(data, origin=str(path), contracts=contracts)


def parse_recipe(data: bytes, *, origin: str, contracts: ContractRegistry) -> Recipe:
    """The recipe in these bytes; `origin` names them in errors, and a recipe without a name is called after it."""
    document = read_yaml(data, origin)
    return _Parser(origin, contracts).recipe(document)


def line_in_recipe(data: bytes, rule: int, place: Sequence[str | int]) -> int:
    """The line of what is at this place (keys of the contract's input, or of the rule) of a rule of a valid recipe."""
    document = read_yaml(data, "")
    rules = document.fields["rules"] if isinstance(document, Fields) else document
    one = rules.items[rule] if isinstance(rules, Items) else rules
    if not isinstance(one, Fields) or (place and place[0] in RULE_KEYS):
        return line_at(one, place)
    contract = next(key for key in one.fields if key not in RULE_KEYS)
    return line_at(one, (contract, *place))


def author_schema(contract: ContractDocument) -> dict[str, Any]:
    """What an author may write for a contract: its input schema without the fields that the runtime fills in."""
    schema = dict(contract.input)
    properties = {
        name: one for name, one in schema.get("properties", {}).items() if name not in contract.injected
    }
    schema["properties"] = properties
    schema["required"] = [name for name in schema.get("required", ()) if name in properties]
    return schema


def rule_contracts(contracts: ContractRegistry) -> tuple[str, ...]:
    """The names of the contracts that can be a rule: those that change files."""
    return tuple(sorted({document.name for document in contracts if document.changes == "tree"}))


class _Parser:
    def __init__(self, origin: str, contracts: ContractRegistry) -> None:
        self._origin = origin
        self._contracts = contracts
        self._names = rule_contracts(contracts)

    def recipe(self, document: Located) -> Recipe:
        fields = self._fields(document, "a recipe", RECIPE_KEYS)
        name = self._name(fields) if "recipe" in fields.fields else _name_of_file(self._origin)
        rules = fields.fields.get("rules")
        if rules is None:
            raise self._fault(fields.line, "a recipe needs `rules`: a list with at least one rule")
        if not isinstance(rules, Items) or not rules.items:
            raise self._fault(fields.key_lines["rules"], "`rules` must be a list with at least one rule")
        if len(rules.items) > MAX_RULES:
            raise self._fault(rules.line, f"more than {MAX_RULES} rules")
        test = fields.fields.get("test")
        return Recipe(
            recipe=name,
            description=self._text(fields, "description"),
            scope=self._scope(fields),
            rules=self._rules(rules.items),
            test=None if test is None else self._test(test),
        )

    def _rules(self, located: Sequence[Located]) -> tuple[Rule, ...]:
        rules: list[Rule] = []
        lines: dict[str, int] = {}
        for number, one in enumerate(located, 1):
            rule = self._rule(one, number)
            if rule.id in lines:
                raise self._fault(
                    one.line,
                    f"rule {number} has the id {rule.id!r}, as the rule in line {lines[rule.id]}",
                    "Ids must differ.",
                )
            lines[rule.id] = one.line
            rules.append(rule)
        return tuple(rules)

    def _rule(self, located: Located, number: int) -> Rule:
        fields = self._fields(located, f"rule {number}", None)
        keys = [key for key in fields.fields if key not in RULE_KEYS]
        strange = [key for key in keys if key not in self._contracts]
        if not keys or (len(keys) > 1 and not strange):
            found = f"has {' and '.join(repr(key) for key in keys)}" if keys else "has none"
            raise self._fault(
                located.line,
                f"rule {number} must have exactly one contract as a key, and {found}",
                self._known(),
            )
        keys = strange or keys
        key = keys[0]
        line = fields.key_lines[key]
        contract = self._contract(key, line, number)
        return Rule(
            id=self._id(fields, contract, number),
            contract=contract.ref,
            input=self._input(contract, fields.fields[key], line),
            description=self._text(fields, "description"),
            scope=self._scope(fields),
            examples=self._examples(fields),
        )

    def _contract(self, key: str, line: int, number: int) -> ContractDocument:
        if key in self._contracts:
            contract = self._contracts.get(key)
            if contract.changes != "tree":
                raise self._fault(
                    line, f"{key} changes no files, so rule {number} cannot be one", self._known()
                )
            return contract
        hint = nearest(key, [*RULE_KEYS, *self._names])
        if hint in self._names:
            meant = f"Did you mean {hint!r}? `rolecall contracts {hint}` shows it."
        elif hint:
            meant = f"Did you mean {hint!r}?"
        else:
            meant = self._known()
        if _CONTRACT_KEY.fullmatch(key) and not hint:
            raise self._fault(
                line,
                f"rule {number}: there is no contract {key!r}: it is not built in, and no live role announced it",
                f"{meant} If a role of your own serves it, start that role first.",
            )
        raise self._fault(line, f"rule {number}: {key!r} is neither a key of a rule nor a contract", meant)

    def _input(self, contract: ContractDocument, located: Located, line: int) -> dict[str, Any]:
        shown = f"`rolecall contracts {contract.name}` shows its keys."
        if isinstance(located, Scalar) and located.value is None:
            located = Fields({}, {}, line)
        if not isinstance(located, Fields):
            raise self._fault(line, f"{contract.name} needs a mapping of its keys", shown)
        for name in contract.injected:
            if name in located.fields:
                raise self._fault(
                    located.key_lines[name],
                    f"{contract.name}: {name!r} is filled in by Rolecall and cannot be written",
                    shown,
                )
        schema = author_schema(contract)
        value = coerce(plain(located, schema), schema)
        if not checker(schema).accepts(value):
            fault = find_fault(schema, value)
            where, text = (fault.path, fault.text) if fault else ((), "does not fit its schema.")
            at = line_at(located, where) if where else line
            place = ": ".join(
                [contract.name, ".".join(str(part) for part in where)] if where else [contract.name]
            )
            raise RecipeError(f"{self._origin}:{at}: {place} {text}", suggestion=shown)
        return dict(value)

    def _examples(self, fields: Fields) -> tuple[RuleExample, ...]:
        located = fields.fields.get("examples")
        if located is None:
            return ()
        if not isinstance(located, Items):
            raise self._fault(
                fields.key_lines["examples"], "`examples` must be a list of `before` and `after`"
            )
        return tuple(self._model(RuleExample, one, "an example") for one in located.items)

    def _scope(self, fields: Fields) -> Scope:
        located = fields.fields.get("scope")
        if located is None:
            return Scope()
        if not isinstance(located, Fields):  # a glob or a list of globs is plainly what shall be included
            located = Fields({"include": located}, {"include": located.line}, located.line)
        scope = self._model(Scope, located, "a scope")
        if not scope.include:
            raise self._fault(located.line, "`include` is empty, so nothing is in scope")
        return scope

    def _test(self, located: Located) -> RecipeTest:
        fields = self._fields(located, "`test`", tuple(RecipeTest.model_fields))
        command = fields.fields.get("command")
        if isinstance(command, Scalar) and len(words := _words(command.text)) > 1:
            raise self._fault(
                command.line,
                "`test.command` must be a list of words",
                f"Write [{', '.join(words)}]; no shell reads it.",
            )
        return self._model(RecipeTest, located, "`test`")

    def _model(self, model: type[_Model], located: Located, what: str) -> _Model:
        schema = model.model_json_schema()
        self._fields(located, what, tuple(schema["properties"]))
        try:
            return model.model_validate(coerce(plain(located, schema), schema))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            raise self._fault(
                line_at(located, first["loc"]), f"{what}: {place}: {first['msg'].lower()}"
            ) from error

    def _id(self, fields: Fields, contract: ContractDocument, number: int) -> str:
        given = self._text(fields, "id")
        if not given:
            return f"{contract.name}-{number}"
        self._check_name(given, fields.key_lines["id"], "an id")
        return given

    def _name(self, fields: Fields) -> str:
        name = self._text(fields, "recipe")
        self._check_name(name, fields.key_lines["recipe"], "a recipe's name")
        return name

    def _check_name(self, name: str, line: int, what: str) -> None:
        if not re.fullmatch(NAME_PATTERN, name) or not is_ref_safe(name):
            raise self._fault(
                line,
                f"{name!r} cannot be {what}: at most 60 of a-z, 0-9, `-`, `_` and `.`, with a letter or digit at both ends",
                f"{slug(name)!r} would do." if slug(name) else "",
            )

    def _text(self, fields: Fields, key: str) -> str:
        located = fields.fields.get(key)
        if located is None:
            return ""
        if not isinstance(located, Scalar):
            raise self._fault(fields.key_lines[key], f"`{key}` must be text")
        return located.text.strip()

    def _fields(self, located: Located, what: str, known: Sequence[str] | None) -> Fields:
        if not isinstance(located, Fields):
            raise self._fault(located.line, f"{what} must be a mapping of keys", _keys(known))
        unknown = [key for key in located.fields if known is not None and key not in known]
        if unknown:
            hint = nearest(unknown[0], known or ())
            raise self._fault(
                located.key_lines[unknown[0]],
                f"{what} has no key {unknown[0]!r}",
                f"Did you mean {hint!r}?" if hint else _keys(known),
            )
        return located

    def _known(self) -> str:
        return f"Known are {', '.join(self._names)}; `rolecall contracts` shows them."

    def _fault(self, line: int, problem: str, suggestion: str = "") -> RecipeError:
        return RecipeError(f"{self._origin}:{line}: {problem}.", suggestion=suggestion)


def slug(text: str) -> str:
    """The nearest allowed name to a text; empty if nothing of it can be kept."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60].strip("-")


def _name_of_file(origin: str) -> str:
    return slug(Path(origin).stem) or "recipe"


def _keys(known: Sequence[str] | None) -> str:
    return f"Its keys are {', '.join(known)}." if known else ""


def _words(text: str) -> Sequence[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()
