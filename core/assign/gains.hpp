// Gains of the steps of local search: an agent gives up its task, moves to another, or swaps with another agent.
#pragma once

#include "plan.hpp"

namespace muster {

// Change of the objective when agent i gives up its task (0 for one that has none).
inline double leave_gain(const Plan& plan, const Instance& instance, Index i) {
  const Index j = plan.task[i];
  if (j < 0) return 0.0;
  if (instance.pair_terms == PairTerms::none) return instance.idle - instance.score(i, j);
  if (instance.pair_terms == PairTerms::by_load) {
    const double use = instance.use(i, j);
    return instance.idle - instance.score(i, j) - use * (plan.marginal[j] - (use + 1.0) * instance.task_score(j, j));
  }
  return instance.idle - instance.score(i, j) - plan.marginal[j] + instance.pair_score(j, j);
}

// Change of the objective when agent i moves to task k.
inline double move_gain(const Plan& plan, const Instance& instance, Index i, Index k) {
  const Index j = plan.task[i];
  const double gain = leave_gain(plan, instance, i) + join_gain(plan, instance, i, k) - instance.idle;
  if (j < 0 || instance.pair_terms == PairTerms::none) return gain;
  return gain - weight(instance, i, j) * weight(instance, i, k) * instance.pair_score(j, k);
}

// The best move of agent i worth more than `least`; task -1: give up its task; -2: there is none.
Step best_move(const Plan& plan, const Instance& instance, Index i, double least);

// The best swap of agent i worth more than `least`, with the other agent in `task` (-1: there is none).
//
// Without loads to look at, swaps leave the number of agents on every task unchanged, so only scores count; `own` has
// each agent's present one.
Step best_swap(const Plan& plan, const Instance& instance, const Array1<double>& own, Index i, double least);

}  // namespace muster
