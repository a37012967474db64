"""`rolecall contracts`: what a rule can be."""

import click

from rolecall.commands.options import echo_json, environment_option, json_option, settings_of


@click.command("contracts")
@click.argument("name", required=False)
@environment_option
@json_option
def command(name: str | None, environment: str | None, as_json: bool) -> None:
    """The contracts that rules can name, those of running roles of your own too; with NAME, all of one."""
    from rolecall.client.contract_text import listing, page
    from rolecall.client.reading import known_contracts
    from rolecall.client.terminal import console, show

    registry = known_contracts(settings_of(environment))
    if name is None:
        documents = sorted(registry, key=lambda one: one.ref)
        if as_json:
            echo_json(documents)
        else:
            show(console(), listing([one for one in documents if one.changes == "tree"]))
        return
    document = registry.get(name)
    if as_json:
        echo_json(document)
    else:
        show(console(), page(document))
