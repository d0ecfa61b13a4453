#include "concave_bound.hpp"

#include <cmath>

#include "../previous.hpp"
#include "bound.hpp"

namespace muster {

namespace {

// Halvings of the range in which the least shift lies.
constexpr Index kHalvings = 8;

// A shift that makes the instance concave, near the least.
double find_shift(Bounds& bounds, const Instance& instance) {
  auto [low, high] = find_shift_range(bounds.limits, instance, bounds.scratch);
  high += low;
  if (low == 0.0 || is_concave_with(low, bounds.limits, instance, bounds.matrix, bounds.scratch)) return low;
  for (Index halving = 0; halving < kHalvings; ++halving) {
    const double middle = high > 100.0 * low ? std::sqrt(low * high) : 0.5 * (low + high);
    (is_concave_with(middle, bounds.limits, instance, bounds.matrix, bounds.scratch) ? high : low) = middle;
  }
  return high;
}

// Make the instance concave and worth no less at any assignment: d_j = shift / C_j.
void make_concave(Instance& instance, const TaskLimits& limits, double shift) {
  for (Index j = 0; j < instance.m; ++j) {
    if (limits.mass[j] > 0.0) {
      instance.task_score(j, j) -= shift / limits.mass[j];
      instance.pair_score(j, j) -= 2.0 * shift / limits.mass[j];
    }
  }
  for (Index i = 0; i < instance.n; ++i) {
    for (Index j = 0; j < instance.m; ++j) {
      const double bonus = shift * weight(instance, i, j);
      instance.score(i, j) += bonus;
      if (instance.restricted) instance.arc_score(i, j) += bonus;
    }
  }
}

// Upper bound from a concave instance whose assignments are worth no less; it replaces `instance`.
double bound_by_curvature(Bounds& bounds, Relaxation& relaxation, FrankWolfe& walk, Instance& instance, Index steps,
                          Stop& stop) {
  make_concave(instance, bounds.limits, find_shift(bounds, instance));
  std::fill_n(bounds.bonus.data, bounds.bonus.size, 0.0);
  run_frank_wolfe(walk, relaxation, instance, bounds.bonus, steps, score_scale(instance), stop);
  read_vertex(relaxation, instance);
  const double dual = set_prices(relaxation, instance, walk.slope, bounds.prices);
  return walk.result.value + walk.result.gap + dual - primal_value(relaxation, instance, walk.slope);
}

// Let the bound of row b be no higher than what follows from `limit`, and the answer optimal if it reaches that.
void tighten(const Output& out, Index b, const Plan& plan, const Instance& instance, double limit) {
  Certificate certificate;
  certificate.bound = kNaN;
  if (settle_bound(certificate, plan, instance, total_value(plan, instance), limit)) {
    out.status[b] = kOptimal;
    out.bound[b] = out.objective[b];
  } else if (certificate.bound < out.bound[b] || std::isnan(out.bound[b])) {
    out.bound[b] = certificate.bound;
  }
}

}  // namespace

void tighten_bounds(Index begin, Index end, const Problem& problem, const Settings& settings, const Output& out,
                    Stop& stop, const Array1<const Index>& rows) {
  const Index n = problem.scores.rows, m = problem.scores.columns;
  Arena arena;
  Instance instance = make_instance(arena, n, m, true);
  Plan plan = make_plan(arena, n, m);
  Bounds bounds = make_bounds(arena, n, m);
  Relaxation relaxation = make_relaxation(arena, n, m);
  FrankWolfe walk = make_frank_wolfe(arena, n, m, settings.steps);
  const Array1<Index> position = arena.zeros1<Index>(m);
  Ranking ranking = make_ranking(arena, n);
  std::fill_n(ranking.ties.data, n, 0.0);
  for (Index row = begin; row < end; ++row) {
    const Index b = rows[row];
    fill_instance(instance, problem, b, settings.assign_all);
    fill_task_limits(bounds.limits, instance);
    count_closely(bounds.limits, instance, ranking.keys, ranking.ties, ranking.order);
    const double limit = bound_by_curvature(bounds, relaxation, walk, instance, settings.steps, stop);
    fill_instance(instance, problem, b, settings.assign_all);
    for (Index j = 0; j < instance.m; ++j) position[instance.tasks[j]] = j;
    const Array1<Index> assignment = out.assignment.row(b);
    load_plan(plan, instance, {assignment.data, assignment.size}, position);
    tighten(out, b, plan, instance, limit);
  }
}

}  // namespace muster
