"""A command that need not be named, for click: `ask "…"` is `ask ask "…"`."""

from __future__ import annotations

import click


class DefaultGroup(click.Group):
    """A group whose default command is to ask: what names no command is a question or an option of asking."""

    default = "ask"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Puts the default command where none is named."""
        at = 0
        while at < len(args) and args[at].partition("=")[0] in ("--collection", "--debug"):
            at += 2 if args[at] == "--collection" else 1
        named = args[at : at + 1] and (args[at] in self.commands or args[at] in ("--help", "-h", "--version"))
        if at < len(args) and not named:
            args = [*args[:at], self.default, *args[at:]]
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options of the default command are shown too, since nobody asks for its help by name."""
        records = [p.get_help_record(ctx) for p in self.commands[self.default].params if isinstance(p, click.Option)]
        with formatter.section("Options of a question"):
            formatter.write_dl([r for r in records if r])
        super().format_commands(ctx, formatter)


class _UnnamedContext(click.Context):
    """The default command's: named in no usage line, since nobody types its name."""

    @property
    def command_path(self) -> str:
        """The group's own path."""
        return self.parent.command_path if self.parent else super().command_path


class DefaultCommand(click.Command):
    """The command that is meant where none is named."""

    context_class = _UnnamedContext
