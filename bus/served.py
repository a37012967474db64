"""What a role process serves: its spec, and its contracts with their schemas compiled once."""

from collections.abc import Mapping
from dataclasses import dataclass

from schemas.contracts import ContractDocument
from schemas.errors import ContractError
from schemas.validation import Checker, checker


@dataclass(frozen=True, slots=True)
class RoleSpec:
    """What a role process is: its pool, the contracts it serves, its engines' versions, and how much it runs at once."""

    role: str
    pool: str
    contracts: tuple[ContractDocument, ...]
    engines: Mapping[str, str]
    slots: int


@dataclass(frozen=True, slots=True)
class Served:
    """One contract, ready to check what goes in and what comes out."""

    contract: ContractDocument
    input: Checker
    output: Checker


def serve_contracts(spec: RoleSpec) -> dict[str, Served]:
    """The spec's contracts by `name@version`. Raises ContractError about a schema that is none, before any work comes."""
    served: dict[str, Served] = {}
    for contract in spec.contracts:
        try:
            served[contract.ref] = Served(contract, checker(contract.input), checker(contract.output))
        except ValueError as error:
            raise ContractError(
                f"{contract.ref}: its input or output is no JSON Schema (2020-12): {error}.",
                suggestion="Mend the contract document.",
            ) from error
    return served
