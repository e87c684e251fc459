"""How a module's commands are registered: one registry for all modules before Tentacle, one each from there on."""

from __future__ import annotations

try:
    from mgr_module import CLICommandBase
except ImportError:
    from mgr_module import CLICommand, CLIReadCommand, CLIWriteCommand
else:
    CLICommand = CLICommandBase.make_registry_subtype("PredrainCLICommand")
    CLIReadCommand, CLIWriteCommand = CLICommand.Read, CLICommand.Write

__all__ = ["CLICommand", "CLIReadCommand", "CLIWriteCommand"]
