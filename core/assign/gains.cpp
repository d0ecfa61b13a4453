#include "gains.hpp"

namespace muster {

namespace {

// Whether agents i and k can swap their tasks within the capacities.
bool swap_fits(const Plan& plan, const Instance& instance, Index i, Index k) {
  constexpr double kSlackness = 1.0 + kCapacityTolerance;
  // Whether agent `comes` fits on task j in the place of `leaves`.
  const auto can_replace = [&](Index j, Index leaves, Index comes) {
    return j < 0 || !(instance.use(comes, j) > instance.use(leaves, j)) ||
           !(plan.load[j] - instance.use(leaves, j) + instance.use(comes, j) > instance.capacity[j] * kSlackness);
  };
  return can_replace(plan.task[i], i, k) && can_replace(plan.task[k], k, i);
}

// Change of the objective when agents i and k, which have different tasks, swap theirs.
double swap_gain(const Plan& plan, const Instance& instance, const Array1<double>& own, Index i, Index k) {
  const Index a = plan.task[i], b = plan.task[k];
  double gain = -own[i] - own[k], more_a = 0.0, more_b = 0.0;
  if (a >= 0) {
    more_a = weight(instance, k, a) - weight(instance, i, a);
    gain += instance.score(k, a) + more_a * (plan.marginal[a] + (more_a - 1.0) * instance.task_score(a, a));
  }
  if (b >= 0) {
    more_b = weight(instance, i, b) - weight(instance, k, b);
    gain += instance.score(i, b) + more_b * (plan.marginal[b] + (more_b - 1.0) * instance.task_score(b, b));
  }
  return a >= 0 && b >= 0 ? gain + more_a * more_b * instance.pair_score(a, b) : gain;
}

// The best move where task scores act on loads.
Step best_loaded_move(const Plan& plan, const Instance& instance, Index i, double least) {
  const Index old = plan.task[i];
  Step best{least, -2};
  if (old >= 0 && leave_gain(plan, instance, i) > best.gain) best = {leave_gain(plan, instance, i), -1};
  for (Index k = 0; k < instance.m; ++k) {
    const double gain = move_gain(plan, instance, i, k);
    if (gain > best.gain && k != old && fits(plan.load[k], instance.use(i, k), instance.capacity[k])) best = {gain, k};
  }
  return best;
}

// The best swap where task scores act on loads, which swaps change.
Step best_loaded_swap(const Plan& plan, const Instance& instance, const Array1<double>& own, Index i, double least) {
  Step best{least, -1};
  for (Index k = 0; k < instance.n; ++k) {
    if (plan.task[k] == plan.task[i]) continue;
    const double gain = swap_gain(plan, instance, own, i, k);
    if (gain > best.gain && swap_fits(plan, instance, i, k)) best = {gain, k};
  }
  return best;
}

}  // namespace

Step best_move(const Plan& plan, const Instance& instance, Index i, double least) {
  if (instance.pair_terms == PairTerms::by_load) return best_loaded_move(plan, instance, i, least);
  const double* const marginal = plan.marginal.data;
  const double* const score = instance.score.row(i).data;
  const double* const use = instance.use.row(i).data;
  const Index m = instance.m, old = plan.task[i];
  const auto open = [&](Index k) { return fits(plan.load[k], use[k], instance.capacity[k]); };
  if (old < 0) {
    const double base = -instance.idle;
    Step best{least - base, -2};
    for (Index k = 0; k < m; ++k) {
      const double gain = score[k] + marginal[k];
      if (gain > best.gain && open(k)) best = {gain, k};
    }
    return {best.gain + base, best.task};
  }
  // Without task scores there is no row to look at.
  const bool pairs = instance.pair_terms != PairTerms::none;
  const double* const pair = pairs ? instance.pair_score.row(old).data : nullptr;
  const double base = (pairs ? pair[old] : 0.0) - score[old] - marginal[old];
  Step best{least - base, -2};
  if (instance.idle > best.gain) best = {instance.idle, -1};
  for (Index k = 0; k < m; ++k) {
    const double gain = score[k] + marginal[k] - (pairs ? pair[k] : 0.0);
    if (gain > best.gain && k != old && open(k)) best = {gain, k};
  }
  return {best.gain + base, best.task};
}

Step best_swap(const Plan& plan, const Instance& instance, const Array1<double>& own, Index i, double least) {
  if (instance.pair_terms == PairTerms::by_load) return best_loaded_swap(plan, instance, own, i, least);
  const Index* const task = plan.task.data;
  const double* const score = instance.score.row(i).data;
  const Index n = instance.n, a = task[i];
  const double mine = own[i];
  Step best{least, -1};
  for (Index k = 0; k < n; ++k) {
    const Index b = task[k];
    if (b == a) continue;
    double gain = -mine - own[k];
    if (b >= 0) gain += score[b];
    if (a >= 0) gain += instance.score(k, a);
    if (gain > best.gain && swap_fits(plan, instance, i, k)) best = {gain, k};
  }
  return best;
}

}  // namespace muster
