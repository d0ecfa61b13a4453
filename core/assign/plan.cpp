#include "plan.hpp"

namespace muster {

Plan make_plan(Arena& arena, Index n, Index m) {
  Plan plan{arena.make1<Index>(n), arena.zeros1<double>(m), arena.zeros1<double>(m), arena.zeros1<double>(m)};
  std::fill_n(plan.task.data, n, -1);
  return plan;
}

Ranking make_ranking(Arena& arena, Index n) {
  return {arena.zeros1<double>(n), arena.zeros1<double>(n), arena.zeros1<Index>(n)};
}

void clear(Plan& plan, const Instance& instance) {
  const Index m = instance.m;
  std::fill_n(plan.task.data, instance.n, -1);
  std::fill_n(plan.load.data, m, 0.0);
  std::fill_n(plan.count.data, m, 0.0);
  for (Index j = 0; j < m; ++j) {
    plan.marginal[j] = instance.pair_terms != PairTerms::none ? instance.task_score(j, j) : 0.0;
  }
}

void copy_plan(Plan& target, const Plan& source, Index n, Index m) {
  std::copy_n(source.task.data, n, target.task.data);
  std::copy_n(source.load.data, m, target.load.data);
  std::copy_n(source.count.data, m, target.count.data);
  std::copy_n(source.marginal.data, m, target.marginal.data);
}

void reassign(Plan& plan, const Instance& instance, Index i, Index j) {
  const Index old = plan.task[i];
  if (old >= 0) {
    plan.load[old] -= instance.use(i, old);
    plan.count[old] -= 1.0;
    // No rounding error outlives the last agent.
    if (plan.count[old] == 0.0) plan.load[old] = 0.0;
  }
  if (j >= 0) {
    plan.load[j] += instance.use(i, j);
    plan.count[j] += 1.0;
  }
  plan.task[i] = j;
  if (instance.pair_terms == PairTerms::none) return;
  const Index m = instance.m;
  const bool by_load = instance.pair_terms == PairTerms::by_load;
  double* const __restrict marginal = plan.marginal.data;
  if (old >= 0) {
    const double* const __restrict pairs = instance.pair_score.row(old).data;
    const double amount = by_load ? instance.use(i, old) : 1.0;
    for (Index k = 0; k < m; ++k) marginal[k] -= amount * pairs[k];
  }
  if (j >= 0) {
    const double* const __restrict pairs = instance.pair_score.row(j).data;
    const double amount = by_load ? instance.use(i, j) : 1.0;
    for (Index k = 0; k < m; ++k) marginal[k] += amount * pairs[k];
  }
}

double value_of(const Plan& plan, const Instance& instance) {
  double total = 0.0;
  for (Index i = 0; i < instance.n; ++i) {
    if (plan.task[i] >= 0) total += instance.score(i, plan.task[i]);
  }
  if (instance.pair_terms == PairTerms::none) return total;
  const Array1<double>& amount = instance.pair_terms == PairTerms::by_load ? plan.load : plan.count;
  for (Index j = 0; j < instance.m; ++j) {
    if (amount[j] == 0.0) continue;
    const double* const scores = instance.task_score.row(j).data;
    double row = 0.0;
    for (Index k = 0; k < instance.m; ++k) row += scores[k] * amount[k];
    total += amount[j] * row;
  }
  return total;
}

void rank(const Array1<double>& keys, const Array1<double>& ties, const Array1<Index>& order, Index count) {
  // Shell's sort: in place, quick for the few agents that there mostly are.
  Index gap = 1;
  while (gap < count / 3) gap = 3 * gap + 1;
  for (; gap > 0; gap /= 3) {
    for (Index a = gap; a < count; ++a) {
      const Index x = order[a];
      Index b = a - gap;
      for (; b >= 0; b -= gap) {
        const Index y = order[b];
        const bool behind = keys[y] != keys[x] ? keys[y] < keys[x] : ties[y] != ties[x] ? ties[y] < ties[x] : y > x;
        if (!behind) break;
        order[b + gap] = y;
      }
      order[b + gap] = x;
    }
  }
}

Step best_to_join(const Plan& plan, const Instance& instance, Index i) {
  double best = instance.idle;
  Index where = -1;
  for (Index j = 0; j < instance.m; ++j) {
    const double gain = join_gain(plan, instance, i, j);
    if (gain > best && fits(plan.load[j], instance.use(i, j), instance.capacity[j])) {
      best = gain;
      where = j;
    }
  }
  return {best - instance.idle, where};
}

void complete(Plan& plan, const Instance& instance, Ranking& ranking) {
  while (true) {
    Index count = 0;
    for (Index i = 0; i < instance.n; ++i) {
      if (plan.task[i] >= 0) continue;
      const auto [gain, where] = best_to_join(plan, instance, i);
      if (where < 0) continue;
      ranking.keys[i] = gain;
      ranking.ties[i] = instance.score(i, where);
      ranking.order[count++] = i;
    }
    if (count == 0) return;
    rank(ranking.keys, ranking.ties, ranking.order, count);
    for (Index a = 0; a < count; ++a) {
      const Index where = best_to_join(plan, instance, ranking.order[a]).task;
      if (where >= 0) reassign(plan, instance, ranking.order[a], where);
    }
  }
}

}  // namespace muster
