"""`predrain completion`: the script by which a shell completes commands and options."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

Shell = Literal["bash", "zsh", "fish"]


def print_completion_command(
    shell: Annotated[Shell, Parameter(help="The shell that reads the script.")], /
) -> int:
    """Print the script by which a shell completes predrain's commands, options and words.

    Example: predrain completion bash > ~/.local/share/bash-completion/completions/predrain.bash
    """
    print(write_completion(shell), end="")
    return 0


def write_completion(shell: Shell) -> str:
    """Return the script of a shell."""
    from predrain.service.cli import app, import_all_commands

    import_all_commands()
    return app.generate_completion(shell=shell)
