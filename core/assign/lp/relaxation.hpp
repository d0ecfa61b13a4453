// The linear programme of an instance under any profits; LP solves it once, Frank-Wolfe at every step.
#pragma once

#include "../instance.hpp"
#include "generalised.hpp"
#include "transport.hpp"

namespace muster {

// A sparse relaxed assignment: agent i puts value[k] on task[k] for first[i] <= k < first[i + 1].
struct Point {
  Array1<Index> first;
  Array1<Index> task;
  Array1<double> value;
};

// State of the simplex between calls: the basis of the last solve is where the next one starts.
struct Relaxation {
  Tree tree;
  Top top;
  Array2<double> profit;  // [N, M] c_ij = w_ij / a_i, -infinity where the pair takes no capacity or the task has none
  Array1<double> slack;   // [N] value of leaving the agent out, or of its best free task, per unit of supply
  Array1<Index> free;     // [N] that task, or -1
  Array2<Index> lists;    // [N, k] short lists; k = 0 for small instances
  Array1<double> kept;    // [k] reduced profits of the list being made
  Point vertex;
  Array1<Index> scratch;
};

Point make_point(Arena& arena, Index n, Index size);
Relaxation make_relaxation(Arena& arena, Index n, Index m);

// Bonus of agent i on task j: the task's bonus, times the agent's contribution where task scores act on loads.
inline double bonus_of(const Instance& instance, Index i, Index j, const Array1<double>& bonus, bool by_load) {
  return by_load ? instance.use(i, j) * bonus[j] : bonus[j];
}

// Set the profits w_ij = h_ij + bonus_j (or mu_ij bonus_j); returns the largest absolute profit.
double set_profits(const Relaxation& relaxation, const Instance& instance, const Array1<double>& bonus);

// Solve to optimality from a greedy basis, or from the last one if `warm`; kOptimal or kTimeLimit.
Status maximise(const Relaxation& relaxation, const Instance& instance, double scale, bool warm, Stop& stop);

// Write the basic solution to relaxation.vertex: by agent, then by task.
void read_vertex(const Relaxation& relaxation, const Instance& instance);

}  // namespace muster
