"""MAPPO and IPPO of BenchMARL for `marl_run.py`: an environment of muster as a batched one of TorchRL."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from benchmarl.algorithms import IppoConfig, MappoConfig
from benchmarl.environments.common import TaskClass
from benchmarl.experiment import Callback, Experiment, ExperimentConfig
from benchmarl.models.mlp import MlpConfig
from marl_run import DISCOUNT, ENVS, EPOCHS, HIDDEN, MINIBATCH, REWARD_SCALE, ROLLOUT, Clock, Episodes, Network
from tensordict import TensorDict
from torchrl.data import Categorical, Composite, Unbounded
from torchrl.envs import EnvBase
from torchrl.envs.utils import ExplorationType, set_exploration_type

GROUP = "agents"


class AssignmentEnv(EnvBase):  # type: ignore[misc, unused-ignore]  # typed only where the peer is installed
    """The episodes as TorchRL wants them: one group of agents, the team's reward for each."""

    def __init__(self, episodes: Episodes) -> None:
        super().__init__(batch_size=[ENVS])
        self.episodes = episodes
        episodes.reset(np.arange(ENVS))
        _, own, mask = episodes.see()
        n, options = mask.shape[1:]
        self.full_observation_spec_unbatched = Composite(
            {
                GROUP: Composite(
                    {
                        "observation": Unbounded((n, own.shape[2])),
                        "action_mask": Categorical(2, (n, options), dtype=torch.bool),
                    },
                    shape=(n,),
                )
            }
        )
        self.full_action_spec_unbatched = Composite(
            {GROUP: Composite({"action": Categorical(options, (n,))}, shape=(n,))}
        )
        self.full_reward_spec_unbatched = Composite({GROUP: Composite({"reward": Unbounded((n, 1))}, shape=(n,))})
        flag = {name: Categorical(2, (1,), dtype=torch.bool) for name in ("done", "terminated", "truncated")}
        self.full_done_spec_unbatched = Composite(flag)

    def _see(self) -> dict[str, Any]:
        _, own, self.mask = self.episodes.see()
        return {"observation": torch.from_numpy(own), "action_mask": torch.from_numpy(self.mask)}

    def _reset(self, tensordict: Any = None, **more: Any) -> Any:
        slots = np.arange(ENVS)
        if tensordict is not None and "_reset" in tensordict.keys():  # noqa: SIM118
            slots = np.flatnonzero(tensordict["_reset"].numpy().reshape(-1))
        self.episodes.reset(slots)
        none = {name: torch.zeros(ENVS, 1, dtype=torch.bool) for name in ("done", "terminated", "truncated")}
        return self._dict(none, self._see())

    def _step(self, tensordict: Any) -> Any:
        result = self.episodes.step(tensordict[GROUP, "action"].numpy(), self.mask)
        ends = {"terminated": result.terminated, "truncated": result.truncated & ~result.terminated}
        ends["done"] = result.terminated | result.truncated
        seen = self._see()
        reward = torch.from_numpy((result.reward * REWARD_SCALE).astype(np.float32))
        seen["reward"] = reward[:, None, None].expand(ENVS, self.mask.shape[1], 1).clone()
        return self._dict({name: torch.from_numpy(one)[:, None].clone() for name, one in ends.items()}, seen)

    def _dict(self, ends: dict[str, Any], group: dict[str, Any]) -> Any:
        inner = TensorDict(group, batch_size=[ENVS, self.mask.shape[1]])
        return TensorDict({**ends, GROUP: inner}, batch_size=[ENVS])

    def _set_seed(self, seed: int | None) -> None:
        pass


class AssignmentTask(TaskClass):  # type: ignore[misc, unused-ignore]
    """The environment as a task of BenchMARL."""

    def __init__(self, episodes: Episodes) -> None:
        super().__init__(name="assignment", config={})
        self.episodes = episodes

    def __getstate__(self) -> dict[str, Any]:
        """BenchMARL pickles tasks and callbacks beside its logs; nothing of that is needed."""
        return {}

    def get_env_fun(self, num_envs: int, continuous_actions: bool, seed: int | None, device: Any) -> Callable[[], Any]:
        return lambda: AssignmentEnv(self.episodes)

    def supports_continuous_actions(self) -> bool:
        return False

    def supports_discrete_actions(self) -> bool:
        return True

    def has_render(self, env: Any) -> bool:
        return False

    def max_steps(self, env: Any) -> int:
        return self.episodes.env.max_steps

    def group_map(self, env: Any) -> dict[str, list[str]]:
        return {GROUP: [f"agent_{i}" for i in range(self.episodes.vectors.n)]}

    def state_spec(self, env: Any) -> None:
        return None

    def action_mask_spec(self, env: Any) -> Any:
        spec = env.full_observation_spec_unbatched.clone()
        del spec[GROUP, "observation"]
        return spec

    def observation_spec(self, env: Any) -> Any:
        spec = env.full_observation_spec_unbatched.clone()
        del spec[GROUP, "action_mask"]
        return spec

    def info_spec(self, env: Any) -> None:
        return None

    def action_spec(self, env: Any) -> Any:
        return env.full_action_spec_unbatched

    @staticmethod
    def env_name() -> str:
        return "muster"


class OutOfTimeError(Exception):
    """The clock has run out."""


class Watch(Callback):  # type: ignore[misc, unused-ignore]
    """Evaluates on the way, and stops."""

    def __init__(self, clock: Clock, policy: Network) -> None:
        super().__init__()
        self.clock, self.policy = clock, policy

    def __getstate__(self) -> dict[str, Any]:
        """As that of the task."""
        return {}

    def on_train_end(self, training_td: Any, group: str) -> None:
        if not self.clock.goes_on(self.experiment.total_frames, self.policy):
            raise OutOfTimeError


def learn(name: str, episodes: Episodes, clock: Clock, seed: int, rate: float) -> tuple[dict[str, Network], int]:
    """MAPPO or IPPO; its policies, greedy and sampled, and the decisions made."""
    config = ExperimentConfig.get_from_yaml()
    config.prefer_continuous_actions = False
    config.gamma, config.lr = DISCOUNT, rate
    config.max_n_frames, config.evaluation, config.loggers, config.create_json = 10**9, False, [], False
    config.evaluation_episodes = config.on_policy_n_envs_per_worker = ENVS
    config.on_policy_collected_frames_per_batch, config.on_policy_minibatch_size = ENVS * ROLLOUT, MINIBATCH
    config.on_policy_n_minibatch_iters = EPOCHS
    config.save_folder = tempfile.mkdtemp()
    algorithm = {"mappo": MappoConfig, "ippo": IppoConfig}[name].get_from_yaml()
    model = MlpConfig(num_cells=HIDDEN, layer_class=torch.nn.Linear, activation_class=torch.nn.Tanh)

    def choose(own: Any, mask: Any, way: ExplorationType) -> Any:
        seen = {"observation": torch.from_numpy(own), "action_mask": torch.from_numpy(mask)}
        batch = TensorDict({GROUP: TensorDict(seen, batch_size=mask.shape[:2])}, batch_size=mask.shape[:1])
        with torch.no_grad(), set_exploration_type(way):
            return experiment.policy(batch)[GROUP, "action"].numpy()

    ways = {"greedy": ExplorationType.DETERMINISTIC, "sampled": ExplorationType.RANDOM}
    policies = {
        way: Network(f"{name}-{way}", episodes.vectors, lambda _, own, mask, kind=kind: choose(own, mask, kind))
        for way, kind in ways.items()
    }
    experiment = Experiment(
        task=AssignmentTask(episodes),
        algorithm_config=algorithm,
        model_config=model,
        seed=seed,
        config=config,
        callbacks=[Watch(clock, policies["sampled"])],
    )
    with contextlib.suppress(OutOfTimeError):
        experiment._collection_loop()
    return policies, experiment.total_frames
