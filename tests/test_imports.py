"""The direction of imports, stated whole, and that light things stay light."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import muster
from muster.cli import COMMANDS, main

PACKAGE = Path(muster.__file__).parent
HEAVY = (
    "torch",
    "numba",
    "numpy",
    "scipy",
    "gymnasium",
    "pettingzoo",
    "matplotlib",
    "PIL",
    "highspy",
    "ortools",
    "optuna",
)

# The sentence that the tree stands for: a module imports only what lies before it, in a room above or higher up in
# its own room. Imports inside functions count; those for type checking alone do not. A folder's own name is its
# `__init__`, which collects what the folder holds and therefore comes last there. A new module is entered here.
STATED = """
errors
data
kernel_cache
quick_typing
quick_compile
compile
rng
parallel
storage
checkout
settings

inference.settings
inference.outcomes
inference.statuses
inference.workspace
inference.extremes
inference.given
inference.instance
inference.switching
inference.entries
inference.transport
inference.generalised
inference.oracle
inference.rounding
inference.frank_wolfe
inference.gains
inference.local_search
inference.wandering
inference.certificate
inference.batch
inference.amax
inference.linear
inference.pair_terms
inference.pair_proof
inference.bounding
inference.quadratic
inference.bettering
inference.grain
inference.gap_search
inference.whole
inference.knapsack
inference.lagrangian
inference.branch_and_bound
inference.routes
inference.route_positions
inference.route_search
inference.plan
inference.staying
inference.bending
inference.solver
inference.sparse_market
inference.sparse_search
inference.sparse
inference.naming
inference.tables
inference.reading
inference.rows
inference.single
inference.probing
inference.explanation
inference.revision
inference.answer
inference.assigning
inference.checking
inference.route_memory
inference.as_json
inference

envs.features
envs.scene
envs.base
envs.kernel_env
envs.naming
envs.single
envs.padding
envs.identity
envs.history
envs.rules
envs.singles
envs.registry
envs.probing
envs.state_laws
envs.laws
envs.advice
envs.checker
envs.rescue.settings
envs.rescue.distance
envs.rescue.kernels
envs.rescue.mud
envs.rescue.routing
envs.rescue.picture
envs.rescue.baselines
envs.rescue.env
envs.rescue
envs.battle.layout
envs.battle.settings
envs.battle.catalogue
envs.battle.geometry
envs.battle.status
envs.battle.movement
envs.battle.paths
envs.battle.obstruction
envs.battle.orders
envs.battle.opponents
envs.battle.combat
envs.battle.collision
envs.battle.dynamics
envs.battle.spawn
envs.battle.world
envs.battle.heuristics
envs.battle.observe
envs.battle.planes
envs.battle.render
envs.battle.staging
envs.battle.description
envs.battle.env
envs.battle
envs.pursuit.settings
envs.pursuit.kernels
envs.pursuit.observe
envs.pursuit.picture
envs.pursuit.baselines
envs.pursuit.env
envs.pursuit
envs.fleet.settings
envs.fleet.city
envs.fleet.trips
envs.fleet.kernels
envs.fleet.worth
envs.fleet.observe
envs.fleet.picture
envs.fleet.baselines
envs.fleet.hindsight
envs.fleet.env
envs.fleet
envs.log.lines
envs.log.env
envs.log
envs.adapters.registration
envs.adapters.gymnasium
envs.adapters.pettingzoo
envs.adapters
envs.pettingzoo
envs

scoring.kinds
scoring.spec
scoring.heads
scoring.vectors
scoring.tiles
scoring.reach
scoring.context
scoring.relations
scoring.pairs
scoring.direct
scoring.tokens
scoring.likelihood
scoring.gradient
scoring.values
scoring.attention
scoring.networks
scoring

policy.settings
policy.limits
policy.noise
policy.decision
policy.learned
policy.critics
policy.candidates
policy.lookahead
policy.files
policy.names
policy.features
policy

evaluation.statistics
evaluation.metrics
evaluation.changes
evaluation.rollout
evaluation.text
evaluation.evaluate
evaluation.compare
evaluation.scale
evaluation.replay
evaluation.film
evaluation.packing
evaluation.viewer
evaluation.writers
evaluation

learning.learner_settings
learning.settings
learning.parts
learning.returns
learning.optimiser
learning.memory
learning.episodes
learning.tally
learning.rollouts
learning.player
learning.crew
learning.processes
learning.cluster
learning.choices
learning.fenchel_young
learning.pairs
learning.proximal
learning.critic
learning.torch_critic
learning.trials
learning.collapse
learning.transfer
learning.board
learning.run
learning.form
learning.worlds
learning.base
learning.students
learning.torch_student
learning.lessons
learning.imitation
learning.candidates
learning.blocks
learning.evolution
learning.actor_critic
learning.structured
learning.learners
learning.hiring
learning.train
learning

search.space
search.settings
search.results
search.drawing
search.journal
search.study
search.playing
search

reproduction.places
reproduction.record_file
reproduction.run_names
reproduction.heuristics
reproduction.rescue
reproduction.pursuit
reproduction.routes
reproduction.best_settings
reproduction.battle
reproduction.battle_rerun
reproduction.fleet
reproduction.figures
reproduction.card
reproduction

service.settings
service.replies
service.refusals
service.reading
service.decimals
service.scanning
service.crowd
service.metrics
service.gate
service.pool
service.served
service.state
service.door
service.shortcut
service.connections
service.bodies
service.solving
service.acting
service.forms
service.addresses
service.runs
service.worlds
service.theatre
service.understanding
service.sandbox
service.watch
service.app
service.board
service.processes
service.server
service.run
service

benchmarks.instances
benchmarks.envs
benchmarks.env_peers
benchmarks.inference_peers
benchmarks.inference_report
benchmarks.inference_process
benchmarks.inference_promises
benchmarks.inference
benchmarks.training_peer
benchmarks.training
benchmarks.route_sets
benchmarks.route_peer
benchmarks.route_report
benchmarks.routes
benchmarks.public_sets
benchmarks.public_peers
benchmarks.public_report
benchmarks.public
benchmarks

commands.parsing
commands.sheets
commands.problem_files
commands.manner
commands.compilers
commands.picture
commands.progress
commands.bench
commands.card
commands.check
commands.compare
commands.envs
commands.evaluate
commands.starter
commands.new
commands.play
commands.search_results
commands.plot
commands.policies
commands.scale
commands.serve
commands.solve
commands.check_plan
commands.tables_battle
commands.tables_fleet
commands.tables_heuristics
commands.tables_rescue
commands.tables_pursuit
commands.tables_routes
commands.tables_settings
commands.tables
commands.train
commands.search
commands.warmup
commands.demo
commands

cli
__main__
"""
ORDER = STATED.split()
PLACE = {name: place for place, name in enumerate(ORDER)}


def module_of(path: Path) -> str:
    """ "envs.battle.env" for muster/envs/battle/env.py."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_of(path): path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"}


@cache
def imports_of(path: Path) -> set[str]:
    """Every dotted name that a module imports anywhere in it, but for type checking."""
    return imported(ast.parse(path.read_text(encoding="utf-8")))


def imported(tree: ast.AST) -> set[str]:
    """The same of a part of it."""
    if isinstance(tree, ast.If) and "TYPE_CHECKING" in ast.dump(tree.test):
        return set().union(*map(imported, tree.orelse))
    if isinstance(tree, ast.Import):
        return {alias.name for alias in tree.names}
    if isinstance(tree, ast.ImportFrom):
        assert tree.level == 0, "imports are absolute here"
        return {f"{tree.module}.{alias.name}" for alias in tree.names}
    return set().union(*map(imported, ast.iter_child_nodes(tree)))


def edges() -> set[tuple[str, str]]:
    """(module, what it imports of muster), everywhere in the package."""
    found = set()
    for module, path in MODULES.items():
        for name in imports_of(path):
            first, _, rest = name.partition(".")
            # `from muster.rng import Seeds` names a module and something in it; `import muster` itself is no edge.
            target = rest if rest in MODULES else rest.rpartition(".")[0]
            if first == "muster" and target in MODULES and target != module:
                found.add((module, target))
    return found


def third_parties(*rooms: str) -> set[tuple[str, str]]:
    """(module, outside package that it imports) in some rooms."""
    return {
        (module, name.partition(".")[0])
        for module, path in MODULES.items()
        if module.partition(".")[0] in rooms
        for name in imports_of(path)
    }


def loaded_by(code: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after `code`."""
    script = f"import sys\ntry:\n    {code}\nexcept SystemExit: pass\nprint('\\n'.join(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_every_module_has_its_place_in_the_order():
    assert len(PLACE) == len(ORDER)
    missing = sorted(set(MODULES) - set(PLACE))
    assert missing == [], f"say in ORDER, before what imports them, where these belong: {', '.join(missing)}"


def test_a_module_imports_only_what_lies_before_it():
    against = {(one, other) for one, other in edges() if PLACE.get(other, 0) > PLACE.get(one, len(ORDER))}
    assert sorted(f"{one} imports {other}" for one, other in against) == []


def test_inference_and_worlds_know_no_torch():
    """Nor does inference know gymnasium."""
    assert {edge for edge in third_parties("inference", "envs") if edge[1] == "torch"} == set()
    assert {edge for edge in third_parties("inference") if edge[1] == "gymnasium"} == set()


def test_inference_loads_neither_torch_nor_a_world():
    loaded = loaded_by("import muster.inference")
    assert "torch" not in loaded
    assert not any(name.startswith(("muster.envs", "muster.learning", "gymnasium")) for name in loaded)


@pytest.mark.parametrize("code", ["import muster", "from muster.cli import main; main(['--help'])"])
def test_import_and_help_load_nothing_heavy(code):
    """What keeps both well below half a second."""
    assert loaded_by(code) & set(HEAVY) == set()


def test_all_is_what_can_be_imported():
    assert len(set(muster.__all__)) == len(muster.__all__)
    for name in muster.__all__:
        assert getattr(muster, name) is not None
    assert dir(muster) == sorted(muster.__all__)
    with pytest.raises(AttributeError, match="no attribute 'asign'"):
        _ = muster.asign


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command, capsys):
    with pytest.raises(SystemExit) as left:
        main([command, "--help"])
    assert left.value.code == 0
    assert f"muster {command}" in capsys.readouterr().out
