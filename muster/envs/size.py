"""Sizes of environments from their strings alone: agents, tasks and memory, before anything is allocated."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from muster.envs.grid import GridSettings
from muster.errors import InputError

MEMORY_SHARE = 0.5
"""Share of the machine's memory that one batch of environments may take."""


class Size(NamedTuple):
    """The size of an environment, from its settings."""

    agents: int
    tasks: int
    cells: int
    """Cells of the grid; 0 without one."""
    steps: int
    """The step limit; 0 where it is not a setting."""

    def memory(self, num_envs: int) -> int:
        """Bytes of a batch, roughly: planes of the cells and features of the pairs."""
        pairs = (self.agents + self.tasks) * self.tasks
        return num_envs * (16 * self.cells + 64 * pairs)


def size_of(family: str, text: str) -> Size | None:
    """The size of a built-in environment from the text after "FAMILY:"; None if the settings do not determine it."""
    if family in ("rescue", "pursuit"):
        grid = grid_settings(family).from_text(text)
        return Size(grid.agents, grid.tasks, grid.cells, grid.step_limit)
    if family == "fleet":
        from muster.envs.fleet.settings import FleetSettings

        fleet = FleetSettings.from_text(text)
        return Size(fleet.vehicles, fleet.limit or fleet.vehicles, 0, fleet.minutes)
    counts = re.match(r"[a-z]+(\d{1,9})v(\d{1,9})", text) if family == "battle" else None
    return Size(int(counts[1]), int(counts[2]), 0, 0) if counts else None


def grid_settings(family: str) -> type[GridSettings]:
    """The settings class of rescue or pursuit."""
    from muster.envs.pursuit.settings import PursuitSettings
    from muster.envs.rescue.settings import RescueSettings

    return RescueSettings if family == "rescue" else PursuitSettings


def check_memory(name: str, needed: int, num_envs: int) -> None:
    """Raise InputError if a batch that needs so many bytes takes more than `MEMORY_SHARE` of this machine's memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > MEMORY_SHARE * memory:
        raise InputError(
            f"{num_envs} x {name[:80]} would take about {needed / 2**30:.3g} GB, and this machine has "
            f"{memory / 2**30:.3g} GB; choose fewer agents and tasks, a smaller grid, or fewer environments"
        )


def resized(env: str, n: int, m: int) -> str:
    """The string of the same environment with n agents and m tasks."""
    if min(n, m) < 1:
        raise InputError(f"an environment needs at least one agent and one task, got {n} and {m}")
    family, _, rest = env.partition(":")
    first, *options = rest.split(",")
    if family == "pursuit" and not any(option.strip().startswith("grid=") for option in options):
        # By default the grid grows with the numbers; here it keeps its size.
        options.append(f"grid={grid_settings(family).from_text(rest).shape[0]}")
    if family in ("rescue", "pursuit"):
        return ",".join([f"{family}:{n}x{m}", *options])
    if family == "battle":
        units = re.sub(r"\d+v\d+$", "", first)
        # zh scenarios have as many zerglings as hydralisks.
        per = 2 if units == "zh" else 1
        if n % per or m % per:
            raise InputError(f"{units} battles have as many of both kinds of unit: even numbers, got {n} and {m}")
        return ",".join([f"battle:{units}{n // per}v{m // per}", *options])
    kept = [option for option in options if option.partition("=")[0] not in ("limit", "n_agents", "n_tasks")]
    if family == "fleet":
        return ",".join([f"fleet:{n}", *kept, f"limit={m}"])
    return ",".join([f"{family}:{first}", *kept, f"n_agents={n}", f"n_tasks={m}"])
