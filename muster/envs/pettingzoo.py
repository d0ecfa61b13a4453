"""Where pettingzoo's adapter is imported from: `muster.envs.pettingzoo.parallel_env("rescue:3x6")`."""

from muster.envs.adapters.pettingzoo import parallel_env

__all__ = ["parallel_env"]
