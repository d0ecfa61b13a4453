"""Assignment as a differentiable layer of torch networks, and the losses that go with it (extra `torch`).

The best assignment jumps where scores cross, so that its own derivative is 0 or nothing. Two smooth versions of it are
means of assignments, within the same capacities and masks:

    perturbed     y(h) = E[ argmax_y <h + eps Z, y> ], Z standard normal (Berthet et al., 2020)
    regularised   y(h) = argmax_y <h, y> - eps/2 |y|² over the means of assignments (SparseMAP; Niculae et al., 2018)

Each has a Fenchel-Young loss, never negative and 0 only where y(h) is the target, whose gradient is y(h) - target:
the solver's answers are all that is needed (Blondel et al., 2020).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from muster.assign.problem import ProblemArrays, read_problem
from muster.assign.settings import Effort, Method
from muster.assign.solver import Solver
from muster.data import Floats, Problem
from muster.errors import InputError, UnknownNameError

Variant = Literal["perturbed", "regularised"]
_CLOSE = 1e-9
"""Tolerance of the regularised assignment, relative to the largest score."""
_MOST_VERTICES = 500


class AssignLayer(torch.nn.Module):
    """Scores in, the mean assignment [B, N, M] out; made by `assign_layer`."""

    def __init__(self, variant: Variant, epsilon: float, samples: int, seed: int, solver: Solver) -> None:
        super().__init__()
        self.variant, self.epsilon, self.samples, self.solver = variant, epsilon, samples, solver
        self.rng = np.random.default_rng(seed)

    def forward(self, scores: Tensor, task_scores: Tensor | None = None, **limits: ArrayLike) -> Tensor:
        """Share [B, N, M] of the smoothed assignments in which agent i has task j; also for one instance [N, M].

        `limits` are further fields of `muster.Problem`: contributions, capacities, minimums, agent_alive, allowed, …
        """
        if isinstance(scores, Tensor) and scores.ndim == 2:
            one = {name: _limit(value)[None] for name, value in limits.items()}
            pairs = None if task_scores is None else task_scores[None]
            return self(scores[None], pairs, **one)[0]
        _, solve = self._read(scores, task_scores, limits)
        if self.variant == "regularised":
            return _apply(_Regularised, scores, self.epsilon, solve)
        return _apply(_Perturbed, scores, task_scores, self._draw(scores, task_scores), solve)

    def loss(self, scores: Tensor, target: Tensor, task_scores: Tensor | None = None, **limits: ArrayLike) -> Tensor:
        """[B] the Fenchel-Young loss against a target assignment, or a mean of several: indicators [B, N, M]."""
        arrays, solve = self._read(scores, task_scores, limits)
        _check_target(target, arrays)
        if self.variant == "regularised":
            return _apply(_RegularisedLoss, scores, target, self.epsilon, solve)
        return _apply(_PerturbedLoss, scores, task_scores, target, self._draw(scores, task_scores), solve)

    def _draw(self, scores: Tensor, task_scores: Tensor | None) -> _Noise:
        """Antithetic: every draw and its negative."""
        half = self.samples // 2

        def draw(shape: torch.Size) -> Floats:
            normal = self.rng.standard_normal((half, *shape))
            return self.epsilon * np.concatenate([normal, -normal])

        return _Noise(draw(scores.shape), None if task_scores is None else draw(task_scores.shape), self.epsilon)

    def _read(self, scores: Tensor, task_scores: Tensor | None, limits: dict[str, Any]) -> tuple[ProblemArrays, _Solve]:
        """The problem's arrays, checked, and what solves it for other scores."""
        for name, tensor in {"scores": scores, "task_scores": task_scores}.items():
            dtype = tensor.dtype if isinstance(tensor, Tensor) else type(tensor).__name__
            if tensor is not None and dtype not in (torch.float32, torch.float64):
                raise InputError(f"{name} must be a torch tensor of float32 or float64, got {dtype}")
            if tensor is not None and not tensor.isfinite().all():
                raise InputError(f"{name} must be finite numbers; a pair that must not be is forbidden by `allowed`")
        if scores.ndim != 3:
            raise InputError(f"scores must be [B, N, M], or [N, M] for one instance, got {tuple(scores.shape)}")
        if (task_scores is not None) != (self.solver.method == "quad"):
            has = "got none" if task_scores is None else f"{self.solver.method} does not read them"
            raise InputError(f"task_scores are for method quad, and needed there; {has}")
        for name in limits.keys() - set(Problem.__slots__):
            raise UnknownNameError("limit", name, Problem.__slots__)
        given: dict[str, Any] = {name: _limit(value) for name, value in limits.items()}
        try:
            pairs = None if task_scores is None else _array(task_scores)
            arrays = read_problem(Problem(_array(scores), pairs, **given), pairs is not None)
        except InputError as wrong:
            raise InputError(f"{wrong}; scores are {tuple(scores.shape)}, and limits have the same leading B") from None

        def solve(h: Floats, g: Floats | None) -> Floats:
            """Indicators [..., B, N, M] of the best assignments for scores [..., B, N, M], all in one batch."""
            copies = h.size // scores.numel()

            def repeat(array: NDArray[Any]) -> NDArray[Any]:
                return np.concatenate([array] * copies) if array.ndim and copies > 1 else array

            problem = Problem(
                h.reshape(-1, *h.shape[-2:]),
                None if g is None else g.reshape(-1, *g.shape[-2:]),
                **{name: repeat(value) for name, value in given.items()},  # type: ignore[arg-type]
            )
            chosen = self.solver.run(problem)[0].assignment
            return (chosen[..., None] == np.arange(h.shape[-1])).astype(np.float64).reshape(h.shape)

        return arrays, solve


def assign_layer(
    variant: Variant = "perturbed",
    method: Method = "lp",
    effort: Effort = "fast",
    epsilon: float = 1.0,
    samples: int | None = None,
    assign_all: bool = False,
    seed: int | None = None,
) -> AssignLayer:
    """A layer through which gradients flow to scores (and, with `method="quad"`, task scores).

    `variant` is "perturbed" (the mean of the best assignments under noise) or "regularised" (deterministic; LP only).
    `epsilon`, in units of score, is how smooth it is. Only for perturbed: `samples`, an even number of at least 4 (16),
    are drawn for each instance in each call, in antithetic pairs, and `seed` (0) is of the layer's own generator, so
    that torch.manual_seed has no effect. `effort` is how long QUAD searches, as in `muster.assign`. With `assign_all`
    every agent that fits somewhere has a task in each assignment.

    >>> import torch
    >>> scores = torch.tensor([[[3.0, 2.0], [2.5, 0.7]]], requires_grad=True)
    >>> layer = assign_layer("regularised", epsilon=1.0)
    >>> layer(scores)
    tensor([[[0.3000, 0.7000],
             [0.7000, 0.3000]]], grad_fn=<_RegularisedBackward>)
    """
    if variant not in get_args(Variant):
        raise UnknownNameError("variant", variant, get_args(Variant))
    if method not in ("lp", "quad"):
        raise InputError(f"a layer's method is lp or quad, got {method!r}")
    if variant == "regularised" and method == "quad":
        raise InputError("the regularised layer needs a concave problem, which quad is not: use perturbed, or lp")
    if not epsilon > 0:
        raise InputError(f"epsilon must be positive, got {epsilon}")
    if variant == "regularised" and (samples is not None or seed is not None):
        raise InputError("the regularised layer is deterministic: leave out samples and seed, or use perturbed")
    samples = 16 if samples is None else samples
    if samples < 4 or samples % 2:
        raise InputError(f"samples come in antithetic pairs: an even number of at least 4, got {samples}")
    solver = Solver(method=method, effort=effort, assign_all=assign_all, certify=False)
    return AssignLayer(variant, epsilon, samples, seed or 0, solver)


class _Noise(NamedTuple):
    """K draws of epsilon·Z, for scores and task scores."""

    h: Floats
    g: Floats | None
    epsilon: float


_Solve = Callable[[Floats, Floats | None], Floats]


def _apply(function: type[torch.autograd.Function], *given: Any) -> Tensor:
    found: Tensor = function.apply(*given)  # type: ignore[no-untyped-call]
    return found


def _array(tensor: Tensor) -> Floats:
    found: Floats = tensor.detach().cpu().to(torch.float64).numpy()
    return found


def _limit(value: ArrayLike | Tensor) -> NDArray[Any]:
    return value.detach().cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)


def _check_target(target: Tensor, arrays: ProblemArrays) -> None:
    """Raise InputError where a target cannot be a mean of assignments: its loss would be negative, or no number."""
    if not isinstance(target, Tensor) or target.shape != arrays.scores.shape:
        got = tuple(target.shape) if isinstance(target, Tensor) else type(target).__name__
        raise InputError(f"scores and target of the loss must both be [B, N, M], got {arrays.scores.shape} and {got}")
    y, allowed = _array(target), arrays.agent_alive[:, :, None] & arrays.task_alive[:, None, :]
    allowed = allowed & arrays.allowed if arrays.allowed.size else allowed
    slack = 1e-4  # means may be float32
    loads = (y * arrays.contributions if arrays.contributions.size else y).sum(axis=1)
    for rule, broken in (
        ("numbers from 0 to 1", ~((y >= -slack) & (y <= 1 + slack))),
        ("at most one task for each agent", y.sum(axis=2) > 1 + slack),
        ("no pair that is forbidden", ~allowed & (y > slack)),
        ("no more on a task than its capacity", loads > arrays.capacities * (1 + slack) + slack),
    ):
        if broken.any():
            where = ", ".join(map(str, np.argwhere(broken)[0]))
            raise InputError(f"a target holds assignments, or means of several: {rule}; not so at [{where}]")


def _perturbed(h: Tensor, g: Tensor | None, noise: _Noise, solve: _Solve) -> Floats:
    """[K, B, N, M]"""
    return solve(_array(h) + noise.h, None if g is None or noise.g is None else _array(g) + noise.g)


class _Perturbed(torch.autograd.Function):
    """E[y], whose derivative along v is E[ <v, y> Z ] / eps; the mean of <v, y> over the others is taken off."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, g: Tensor | None, noise: _Noise, solve: _Solve) -> Tensor:
        ctx.answers, ctx.noise = _perturbed(h, g, noise, solve), noise
        return torch.from_numpy(ctx.answers.mean(axis=0)).to(h)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        worth = np.einsum("kbnm,bnm->kb", ctx.answers, _array(slope))
        count = len(worth)
        weight = (worth - worth.mean(axis=0)) / (count - 1) / ctx.noise.epsilon**2
        h = torch.from_numpy(np.einsum("kb,kbnm->bnm", weight, ctx.noise.h)).to(slope)
        if ctx.noise.g is None:
            return h, None, None, None
        return h, torch.from_numpy(np.einsum("kb,kbjl->bjl", weight, ctx.noise.g)).to(slope), None, None


class _PerturbedLoss(torch.autograd.Function):
    """mean of V(y_k; h + eps Z_k, g + eps Z_k) - V(target; …), with V = <h, y> + c'gc and c the agents on each task."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, g: Tensor | None, target: Tensor, noise: _Noise, solve: _Solve) -> Tensor:
        answers, wanted = _perturbed(h, g, noise, solve), _array(target)
        loss = np.einsum("kbnm,kbnm->b", _array(h) + noise.h, answers - wanted) / len(answers)
        ctx.slopes = [answers.mean(axis=0) - wanted]
        if g is not None and noise.g is not None:
            found, asked = answers.sum(axis=2), wanted.sum(axis=1)
            pairs = np.einsum("kbj,kbl->kbjl", found, found) - np.einsum("bj,bl->bjl", asked, asked)
            loss += np.einsum("kbjl,kbjl->b", _array(g) + noise.g, pairs) / len(answers)
            ctx.slopes.append(pairs.mean(axis=0))
        return torch.from_numpy(loss).to(h)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        found = [torch.from_numpy(one).to(slope) * slope[:, None, None] for one in ctx.slopes]
        return found[0], found[1] if len(found) > 1 else None, None, None, None


class _Regularised(torch.autograd.Function):
    """The point of the polytope nearest to h / eps; its derivative projects on the face in which that point lies."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, epsilon: float, solve: _Solve) -> Tensor:
        found, ctx.faces = nearest_points(_array(h) / epsilon, lambda scores: solve(scores, None))
        ctx.epsilon = epsilon
        return torch.from_numpy(found).to(h)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        given = _array(slope)
        projected = [_on_face(face, one.ravel()).reshape(one.shape) for face, one in zip(ctx.faces, given, strict=True)]
        return torch.from_numpy(np.stack(projected) / ctx.epsilon).to(slope), None, None


class _RegularisedLoss(torch.autograd.Function):
    """max over y of <h, y> - eps/2 |y|², less the same of the target."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, target: Tensor, epsilon: float, solve: _Solve) -> Tensor:
        scores, wanted = _array(h), _array(target)
        found, _ = nearest_points(scores / epsilon, lambda given: solve(given, None))
        ctx.slope = found - wanted

        def value(y: Floats) -> Floats:
            worth: Floats = np.einsum("bnm,bnm->b", scores - epsilon / 2 * y, y)
            return worth

        return torch.from_numpy(value(found) - value(wanted)).to(h)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        return torch.from_numpy(ctx.slope).to(slope) * slope[:, None, None], None, None, None


def _on_face(vertices: Floats, along: Floats) -> Floats:
    """The vector [D] projected on the differences of the vertices [K, D]."""
    if len(vertices) == 1:
        return np.zeros_like(along)
    directions = (vertices[1:] - vertices[0]).T
    basis, sizes, _ = np.linalg.svd(directions, full_matrices=False)
    basis = basis[:, sizes > 1e-9 * sizes[0]]
    return np.asarray(basis @ (basis.T @ along))


def nearest_points(points: Floats, solve: Callable[[Floats], Floats]) -> tuple[Floats, list[Floats]]:
    """The mean assignments [B, N, M] nearest to points [B, N, M], and the assignments [K, N·M] that each is made of.

    Wolfe's algorithm: add the assignment that is best for what is still missing, go to the nearest point of the affine
    hull, and drop assignments whose share would become negative. `solve` finds best assignments for a batch of scores.
    """
    flat = points.reshape(len(points), -1)
    vertices = [row[None] for row in solve(points).reshape(flat.shape)]
    shares = [np.ones(1) for _ in flat]
    found: Floats = np.concatenate(vertices)
    close = _CLOSE * np.maximum(1.0, np.abs(flat).max(axis=1, initial=0.0))
    going = np.arange(len(flat))
    for _ in range(_MOST_VERTICES):
        missing = flat - found
        # All are solved, so that the solver meets a batch of the shape that its limits have.
        best = solve(missing.reshape(points.shape)).reshape(flat.shape)
        gain = np.einsum("bd,bd->b", missing, best - found)
        going = going[gain[going] > close[going]]
        if not len(going):
            break
        for b in going:
            vertices[b], shares[b] = _corrected(np.vstack([vertices[b], best[b]]), np.append(shares[b], 0.0), flat[b])
            found[b] = shares[b] @ vertices[b]
    return found.reshape(points.shape), vertices


def _corrected(vertices: Floats, shares: Floats, point: Floats) -> tuple[Floats, Floats]:
    """The assignments, and their shares, of the nearest point in their convex hull."""
    while True:
        wanted = _affine_shares(vertices - point)
        if (wanted > 1e-12).all():
            return vertices, wanted
        falling = wanted <= 1e-12
        # As far as the first share that becomes 0.
        step = np.min(shares[falling] / np.maximum(shares[falling] - wanted[falling], 1e-300), initial=1.0)
        shares = (1 - step) * shares + step * wanted
        kept = shares > 1e-12
        vertices, shares = vertices[kept], shares[kept] / shares[kept].sum()


def _affine_shares(offsets: Floats) -> Floats:
    """Shares that add up to 1 of the point of the affine hull of `offsets` [K, D] nearest to 0."""
    count = len(offsets)
    system = np.ones((count + 1, count + 1))
    system[:count, :count] = offsets @ offsets.T
    system[count, count] = 0.0
    right = np.zeros(count + 1)
    right[count] = 1.0
    return np.asarray(np.linalg.lstsq(system, right, rcond=None)[0][:count])
