// An assignment with its loads, kept up to date by `reassign`.
#pragma once

#include "instance.hpp"

namespace muster {

struct Plan {
  Array1<Index> task;      // [N] -1 for none
  Array1<double> load;     // [M] contributions received
  Array1<double> count;    // [M] agents received
  Array1<double> marginal;  // [M] (g + g') c + diag g, where c is the count, or the load where that counts:
                           // the increase of the quadratic term by one more agent, or unit, on a task
};

// Scratch to rank agents in.
struct Ranking {
  Array1<double> keys;
  Array1<double> ties;
  Array1<Index> order;
};

// A step of an agent: its gain, and the task taken (or the agent swapped with); see the functions for negative ones.
struct Step {
  double gain;
  Index task;
};

Plan make_plan(Arena& arena, Index n, Index m);
Ranking make_ranking(Arena& arena, Index n);

// No agent is assigned.
void clear(Plan& plan, const Instance& instance);

void copy_plan(Plan& target, const Plan& source, Index n, Index m);

// Move agent i to task j, or to none for j = -1.
void reassign(Plan& plan, const Instance& instance, Index i, Index j);

// Change of the objective when agent i, which has no task, takes task j; the value of idling is not subtracted.
inline double join_gain(const Plan& plan, const Instance& instance, Index i, Index j) {
  if (instance.pair_terms == PairTerms::by_load) {
    const double use = instance.use(i, j);
    return instance.score(i, j) + use * (plan.marginal[j] + (use - 1.0) * instance.task_score(j, j));
  }
  return instance.score(i, j) + plan.marginal[j];
}

// sum h·b + c'gc
double value_of(const Plan& plan, const Instance& instance);

// Sort order[:count] by decreasing key, then decreasing tie, then increasing number.
void rank(const Array1<double>& keys, const Array1<double>& ties, const Array1<Index>& order, Index count);

// The task with capacity left that the unassigned agent i gains most by taking; -1 where none pays.
Step best_to_join(const Plan& plan, const Instance& instance, Index i);

// Let unassigned agents join tasks with capacity left, the largest gain first, for as long as it pays.
void complete(Plan& plan, const Instance& instance, Ranking& ranking);

}  // namespace muster
