#include "bound.hpp"

#include <algorithm>
#include <cmath>

namespace muster {

namespace {

// Instances with no more assignments than this are solved with a proof at each effort; best tries in others with no
// more pairs than kProvablePairs, and looks at kProofPairs in all.
constexpr double kProvable[] = {0.0, 4096.0, 100'000.0};
// The same for fast without certificates: policies decide as they did when they were trained and recorded.
constexpr double kProvableUncertified = 32.0;
constexpr Index kProvablePairs = 200;
constexpr double kProofPairs = 2e6;

// Nodes that a proof may expand.
double count_proof_nodes(const Instance& instance, const Settings& settings) {
  const Index pairs = instance.n * instance.m;
  if (instance.n == 0) return 0.0;
  if (settings.prove || is_small(instance, settings)) return kInfinity;
  return settings.effort == kBest && pairs <= kProvablePairs ? kProofPairs / static_cast<double>(pairs) : 0.0;
}

// Whether c'gc is seen at a glance to be concave: no off-diagonal sum outweighs its diagonal entry of g + g'.
bool is_diagonally_dominant(const Instance& instance) {
  for (Index j = 0; j < instance.m; ++j) {
    double total = instance.pair_score(j, j);
    for (Index k = 0; k < instance.m; ++k) {
      if (k != j) total += std::abs(instance.pair_score(j, k));
    }
    if (total > 0.0) return false;
  }
  return true;
}

// The value of the tangent where the last walk stopped, if c'gc is concave; infinity if that is not seen.
//
// The paper's procedure looks at a glance only.
double bound_by_tangent(Bounds& bounds, const FrankWolfe& walk, const Instance& instance, Index effort) {
  const TaskLimits& limits = bounds.limits;
  double limit = 0.0;
  if (!is_diagonally_dominant(instance)) {
    if (effort == kPaper || bounds.matrix.rows == 0) return kInfinity;
    for (Index j = 0; j < instance.m; ++j) {
      if (instance.task_score(j, j) > 0.0 && limits.mass[j] > 0.0) return kInfinity;
    }
    const double slack = find_shift_range(limits, instance, bounds.scratch).low;
    if (!is_concave_with(slack, limits, instance, bounds.matrix, bounds.scratch)) return kInfinity;
    // Add back the slack by which it may be convex.
    for (Index j = 0; j < instance.m; ++j) limit += slack * limits.mass[j];
  }
  return limit + walk.result.value + walk.result.gap;
}

}  // namespace

Bounds make_bounds(Arena& arena, Index n, Index m) {
  const Index size = m <= kCurvatureTasks ? m : 0;
  Bounds bounds;
  bounds.bonus = arena.make1<double>(m);
  bounds.prices = arena.make1<double>(m);
  bounds.scratch = arena.make1<double>(2 * m);
  bounds.limits = make_task_limits(arena, m);
  // For any proof: of many agents and tasks few may be alive.
  bounds.proof = make_proof(arena, n, m);
  bounds.matrix = arena.make2<double>(size, size);
  return bounds;
}

bool is_small(const Instance& instance, const Settings& settings) {
  if (instance.n == 0 || instance.n * instance.m > kProvablePairs) return false;
  const double most =
      settings.effort == kFast && !settings.certify ? kProvableUncertified : kProvable[settings.effort];
  double assignments = 1.0;
  for (Index i = 0; i < instance.n && assignments <= most; ++i) assignments *= static_cast<double>(instance.m) + 1.0;
  return assignments <= most;
}

void solve_for_bonus(Relaxation& relaxation, const Instance& instance, const Array1<double>& bonus, bool warm,
                     Stop& stop) {
  maximise(relaxation, instance, set_profits(relaxation, instance, bonus), warm, stop);
}

double bound_answer(Bounds& bounds, Plan& plan, Plan& trial, Relaxation& relaxation, const FrankWolfe& walk,
                    Search& search, const Instance& instance, const Settings& settings, const Array1<double>& prices,
                    Certificate& certificate, Stop& stop) {
  const double nodes = count_proof_nodes(instance, settings);
  const Index effort = settings.effort;
  double limit = kInfinity;
  certificate.duality_gap = kNaN;
  if (effort == kBest || (effort == kFast && (settings.certify || nodes > 0.0))) {
    fill_task_limits(bounds.limits, instance);
    if (effort == kBest) count_closely(bounds.limits, instance, search.gain, search.zeros, search.order);
    set_share_bonus(bounds.bonus, bounds.limits, instance, bounds.scratch);
  }
  if (settings.certify) {
    // The last linear programme's profits are the gradient where the last walk stopped.
    const double gap =
        set_prices(relaxation, instance, walk.slope, prices) - primal_value(relaxation, instance, walk.slope);
    certificate.duality_gap = gap;
    limit = gap + bound_by_tangent(bounds, walk, instance, effort);
    if (effort == kFast) {
      shift_prices(bounds.prices, prices, walk.slope, bounds.bonus, bounds.limits, instance);
      limit = std::min(limit, price_bound(instance, bounds.bonus, bounds.prices));
    }
  }
  if (effort == kBest || (nodes > 0.0 && !settings.certify)) {
    solve_for_bonus(relaxation, instance, bounds.bonus, effort == kBest, stop);
    limit = std::min(limit, set_prices(relaxation, instance, bounds.bonus, bounds.prices));
  }
  if (nodes > 0.0) {
    list_most(bounds.proof.most, bounds.limits, instance, search.kick_gain, search.kick_zeros, search.kick_order);
    limit = std::min(
        limit, prove(plan, trial, instance, bounds.proof, bounds.prices, nodes, score_scale(instance), stop));
  }
  return limit;
}

}  // namespace muster
