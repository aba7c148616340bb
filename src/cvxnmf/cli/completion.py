"""``cvxnmf completion``: a script that lets a shell complete commands, options and their choices."""

from __future__ import annotations

import argparse
from typing import Any

from cvxnmf.cli import options as arguments
from cvxnmf.cli.exit_codes import CERTIFIED

SHELLS = ("bash", "zsh", "fish")
HOW = """\
bash:  eval "$(cvxnmf completion bash)"     in ~/.bashrc
zsh:   eval "$(cvxnmf completion zsh)"      in ~/.zshrc, after compinit
fish:  cvxnmf completion fish > ~/.config/fish/completions/cvxnmf.fish

exit codes: 0 done, 2 usage"""
BASH = """\
_cvxnmf() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
  if [ "$COMP_CWORD" -eq 1 ]; then COMPREPLY=($(compgen -W "{commands} --help --version" -- "$word")); return; fi
  case "${{COMP_WORDS[1]}} $before" in
{choices}
  esac
  case "$word" in -*)
    case "${{COMP_WORDS[1]}}" in
{options}
    esac; return;;
  esac
  COMPREPLY=($(compgen -f -- "$word"))
}}
complete -o filenames -F _cvxnmf cvxnmf"""


def add(commands: Any) -> None:
    """Register the command ``cvxnmf completion``."""
    shown = "print a script that lets your shell complete commands and options"
    parser = arguments.add_command(commands, "completion", run, help=shown, description=f"{shown.capitalize()}.", epilog=HOW)
    parser.add_argument("shell", choices=SHELLS)
    parser.set_defaults(commands=commands)


def run(options: argparse.Namespace) -> int:
    """Print the shell's completion script."""
    commands = options.commands.choices
    print(_fish(commands) if options.shell == "fish" else _bash(commands, options.shell))
    return CERTIFIED


def _command_options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """The options of a command that the shell completes, without its files."""
    return [action for action in parser._actions if action.option_strings]


def _bash(commands: dict[str, argparse.ArgumentParser], shell: str) -> str:
    """The completion script for bash, which zsh runs too."""
    choices, every = [], []
    for name, parser in commands.items():
        words = [word for action in _command_options(parser) for word in action.option_strings]
        every.append(f'      {name}) COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$word"));;')
        for action in parser._actions:
            if action.choices:
                places = "|".join(f'"{name} {word}"' for word in action.option_strings or [name])
                listed = " ".join(map(str, action.choices))
                choices.append(f'    {places}) COMPREPLY=($(compgen -W "{listed}" -- "$word")); return;;')
    script = BASH.format(commands=" ".join(commands), choices="\n".join(choices), options="\n".join(every))
    return f"autoload -U +X bashcompinit && bashcompinit\n{script}" if shell == "zsh" else script


def _fish(commands: dict[str, argparse.ArgumentParser]) -> str:
    """The completion script for fish: a line for each command and option."""
    lines = []
    for name, parser in commands.items():
        lines.append(f"complete -c cvxnmf -n __fish_use_subcommand -f -a {name}")
        for action in _command_options(parser):
            words = " ".join(f"-l {word[2:]}" if word.startswith("--") else f"-s {word[1:]}" for word in action.option_strings)
            listed = f" -x -a '{' '.join(map(str, action.choices))}'" if action.choices else "" if action.nargs == 0 else " -r"
            lines.append(f"complete -c cvxnmf -n '__fish_seen_subcommand_from {name}' {words}{listed}")
    return "\n".join(lines)
