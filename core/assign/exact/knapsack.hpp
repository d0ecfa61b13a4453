// One knapsack for each task: the agents of largest total profit within its capacity, and the loss by a forced choice.
//
// Contributions become integers of a grid. Where they are integral in some unit the grid is exact. Where they are not,
// or there would be too many cells, they are rounded down: sum floor(mu) <= floor(sum mu), so the bounds are a little
// weaker but as valid. Tables have a row for each listed agent and a column for each amount.
//
// Being left out is a choice like the others: task m, whose pairs weigh nothing.
#pragma once

#include "../../arena.hpp"
#include "../../stop.hpp"
#include "../instance.hpp"

namespace muster {

// All knapsacks of an instance. Agents that are fixed have their task and take their part of its size.
struct Knapsacks {
  Index n = 0, m = 0;
  double cells = 0.0;       // computed so far, the measure of work
  Index work = 0;           // since the last look at the clock
  Array2<double> worth;     // [M + 1, N] h, or the value of being left out
  Array2<Index> weight;     // [M + 1, N]
  Array1<Index> size;       // [M + 1] remaining capacity
  Array2<bool> open;        // [M + 1, N] pairs that are still possible
  Array1<Index> fixed;      // [N] the task of an agent that is fixed, or -1
  Array1<double> profit;    // [N] of the knapsack at hand
  Array1<Index> listed;     // [N] agents that it would gain by
  Array2<bool> taken;       // [M + 1, N] the best choice of every knapsack
  Array2<double> ahead;     // [N + 1, columns] value of the best choice among the first listed agents, by amount
  Array2<double> behind;    // [2, columns] the same among the last ones, by size - amount
  Array2<double> join;      // [M + 1, N] what a knapsack's value changes by when it must take the agent, ...
  Array2<double> leave;     // [M + 1, N] ... and when it must not
};

// Workspace for n agents and m tasks, without the tables, whose size depends on the instance.
Knapsacks make_knapsacks(Arena& arena, Index n, Index m);

// Set weights and sizes, the contributions and capacities of every task in cells; returns the columns of the tables.
Index set_grid(const Knapsacks& knapsacks, const Instance& instance);

// Set scores and which pairs are possible, after `set_grid`; `tables` holds (n + 3) `columns` numbers.
void fill_knapsacks(Knapsacks& knapsacks, const Instance& instance, double* tables, Index columns);

// Solve knapsack j at these prices of agents: `taken` has its choice, and `times` [N] counts one more for each agent in
// it. Returns its value.
double solve_knapsack(Knapsacks& knapsacks, Index j, const Array1<double>& price, const Array1<double>& times);

// Fill `join` and `leave` for all open pairs, at these prices of agents; false if stopped before the end.
bool weigh_choices(Knapsacks& knapsacks, const Array1<double>& price, Stop& stop);

// Whether to stop; checks only after enough work.
bool should_stop(Knapsacks& knapsacks, Stop& stop);

}  // namespace muster
