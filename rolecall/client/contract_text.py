"""A contract as a page that an author of rules reads."""

from collections.abc import Sequence
from typing import Any

from rich.console import Group as Stack
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rolecall.client.phrases import duration, printable
from schemas.contracts import ContractDocument
from schemas.recipe_file import author_schema


def listing(documents: Sequence[ContractDocument]) -> RenderableType:
    """Name and title of each."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("contract", "what it does", "cut by", "risk"):
        table.add_column(name, overflow="fold")
    for one in documents:
        table.add_row(
            Text(one.ref, style="bold"),
            Text(printable(one.title)),
            Text(str(one.shardable)),
            Text(str(one.risk)),
        )
    return Stack(table, Text("\n`rolecall contracts NAME` shows the keys and an example.", style="dim"))


def page(document: ContractDocument) -> RenderableType:
    """Everything about one contract."""
    blocks: list[RenderableType] = [
        Text.assemble((document.ref, "bold"), f"  {printable(document.title)}"),
        Padding(Text(printable(document.description)), (1, 0, 1, 2)),
        Text("Keys", style="bold"),
        Padding(_keys(author_schema(document)), (0, 0, 1, 2)),
        Text("Promises", style="bold"),
        Padding(_promises(document), (0, 0, 1, 2)),
    ]
    if document.examples:
        blocks += [Text("Example", style="bold"), Padding(_example(document), (0, 0, 0, 2))]
    return Stack(*blocks)


def _keys(schema: dict[str, Any], prefix: str = "") -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    for _ in range(3):
        table.add_column(overflow="fold")
    _add_keys(table, schema, prefix)
    return table


def _add_keys(table: Table, schema: dict[str, Any], prefix: str) -> None:
    required = schema.get("required", ())
    for name, one in schema.get("properties", {}).items():
        need = Text(
            "needed" if name in required else _default(one), style="bold" if name in required else "dim"
        )
        told = Text(printable(str(one.get("description", ""))))
        table.add_row(
            Text(f"{prefix}{name}", style="cyan"),
            Text(_kind(one), style="dim").append(" ").append(need),
            told,
        )
        if "properties" in one:
            _add_keys(table, one, f"{prefix}{name}.")


def _kind(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " | ".join(str(one) for one in schema["enum"])
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return " | ".join(kind) if isinstance(kind, list) else str(kind)


def _default(schema: dict[str, Any]) -> str:
    default = schema.get("default")
    return "" if default in (None, [], {}) or isinstance(default, dict) else f"(default {default!r})"


def _promises(document: ContractDocument) -> Text:
    lines = [
        f"serves: pool {document.pool}; risk {document.risk}; cut by {document.shardable}; "
        f"{'pure: same input, same commit' if document.pure else 'not pure: runs once'}",
        f"time limit: {duration(document.time_limit_s.default)}, at most {duration(document.time_limit_s.longest)}",
        f"side effects: {document.side_effects}",
        *(f"must not {one}" for one in document.must_not),
    ]
    return Text(printable("\n".join(lines)))


def _example(document: ContractDocument) -> Text:
    example = document.examples[0]
    lines = ["- " + document.name + ":", *_yaml(example.input, "    ")]
    text = Text(printable("\n".join(lines)) + "\n", style="cyan")
    for line in example.before.splitlines():
        text.append(f"- {printable(line)}\n", style="red")
    for line in example.after.splitlines():
        text.append(f"+ {printable(line)}\n", style="green")
    return text


def _yaml(value: dict[str, Any], indent: str) -> list[str]:
    lines: list[str] = []
    for key, one in value.items():
        if isinstance(one, dict):
            lines += [f"{indent}{key}:", *_yaml(one, indent + "  ")]
        else:
            lines.append(f"{indent}{key}: {_scalar(one)}")
    return lines


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(_scalar(one) for one in value)}]"
    return str(value)
