"""`rolecall recipes`: the refactors that come with Rolecall."""

import click

from rolecall.commands.options import echo_json, environment_option, json_option, settings_of


@click.command("recipes")
@click.argument("name", required=False)
@environment_option
@json_option
def command(name: str | None, environment: str | None, as_json: bool) -> None:
    """The recipes that are shipped; with NAME, the text of one (or of a file), checked."""
    from rolecall.client.reading import known_contracts
    from rolecall.client.recipes import load_checked, recipe_text, shipped_recipes

    contracts = known_contracts(settings_of(environment))
    if name is not None:
        recipe = load_checked(name, contracts)
        if as_json:
            echo_json(recipe)
        else:
            click.echo(recipe_text(name)[0].decode("utf-8", "replace"), nl=False)
        return
    recipes = [(one, load_checked(one, contracts)) for one in shipped_recipes()]
    if as_json:
        echo_json([recipe for _, recipe in recipes])
        return
    width = max((len(one) for one, _ in recipes), default=0)
    for one, recipe in recipes:
        click.echo(f"{one:<{width}}  {recipe.description or ', '.join(rule.id for rule in recipe.rules)}")
    click.echo("\n`rolecall recipes NAME` shows one; `rolecall run --recipe NAME` runs it.")
