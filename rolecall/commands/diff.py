"""`rolecall diff`: the change itself, from the hub."""

import sys

import click

from rolecall.commands.options import echo_json, environment_option, json_option, settings_of, task_argument


@click.command("diff")
@task_argument()
@click.option("--rule", metavar="RULE", help="Only this rule's commit.")
@click.option("--stat", is_flag=True, help="Only which files, and how many lines.")
@environment_option
@json_option
def command(task: str | None, rule: str | None, stat: bool, environment: str | None, as_json: bool) -> None:
    """The change of a task from its base to its head, as a diff that `git apply` takes.

    TASK is an id or a part of one that is unique; without it, the newest task.
    """
    from rolecall.client.diffing import commits_of, diff
    from rolecall.client.reading import chosen, opened_hub, opened_journal, read_report

    settings = settings_of(environment)
    with opened_journal(settings) as reader:
        report = read_report(settings, reader, chosen(reader, task))
    with opened_hub(settings) as hub:
        base, head = commits_of(report, rule, hub)
        if as_json:
            files = [one.as_file_change().model_dump(mode="json") for one in hub.changes(base, head)]
            echo_json({"task": report.task, "rule": rule, "base": base, "head": head, "files": files})
        else:
            sys.stdout.buffer.write(diff(hub, base, head, stat=stat, colour=sys.stdout.isatty()))
            sys.stdout.flush()
