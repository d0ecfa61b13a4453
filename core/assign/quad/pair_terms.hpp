// Limits on pair terms: upper bounds on h·b + c'gc that hold for any g.
//
// Two of them. By shares: an agent on task j earns w (w g_jj + sum_k s_jk c_k), where s = (g + g') / 2, c counts the
// others and w is its own weight; the sum is at most what as many others as there are can add, so any prices
// with that as a bonus bound every assignment. By curvature: c_j <= C_j, so c_j² <= C_j c_j; g less a diagonal d, with
// d_j C_j c_j added, is worth no less on assignments, and for d large enough it is concave, where Frank-Wolfe proves.
#pragma once

#include "../plan.hpp"

namespace muster {

// Limits of each task.
struct TaskLimits {
  Array1<Index> agents;    // [M] how many; 0 if none is allowed or fits
  Array1<double> heaviest;  // [M] largest weight of one of them, ...
  Array1<double> lightest;  // [M] ... smallest weight, ...
  Array1<double> mass;     // [M] ... and largest weight of all together (C_j)
  Array1<double> use;      // [M] mean contribution of one of them, ...
  Array1<double> least;    // [M] ... and the smallest
  Array1<double> root;     // [M] of mass
};

TaskLimits make_task_limits(Arena& arena, Index m);

void fill_task_limits(TaskLimits& limits, const Instance& instance);

// Let a task take no more agents than those that use least of it; keys, ties (zeros) and order [N] are scratch.
void count_closely(TaskLimits& limits, const Instance& instance, const Array1<double>& keys, const Array1<double>& ties,
                   const Array1<Index>& order);

// For every task what pair terms can add for an agent on it at most, for each unit that the agent counts for.
// `scratch` [2 M] is overwritten.
void set_share_bonus(const Array1<double>& bonus, const TaskLimits& limits, const Instance& instance,
                     const Array1<double>& scratch);

// Prices for `bonus` from those for `slope`: higher at each task as the bonus is, less the largest of the rises. Any
// prices prove something; these do nearly as well as those of a linear programme of their own.
void shift_prices(const Array1<double>& shifted, const Array1<double>& prices, const Array1<double>& slope,
                  const Array1<double>& bonus, const TaskLimits& limits, const Instance& instance);

// most[r, j]: what r others can add to what an agent on task j earns at most, for each unit that it counts for. The
// others take the best tasks that there are. keys, ties (zeros) and order [M] are scratch.
void list_most(const Array2<double>& most, const TaskLimits& limits, const Instance& instance,
               const Array1<double>& keys, const Array1<double>& ties, const Array1<Index>& order);

// Whether shift·I - A is positive definite, where A_jk = s_jk sqrt(C_j C_k): by Cholesky, in `matrix` [M, M] with a
// `column` [M].
bool is_concave_with(double shift, const TaskLimits& limits, const Instance& instance, const Array2<double>& matrix,
                     const Array1<double>& column);

struct ShiftRange {
  double low;   // slack for rounding errors
  double high;  // makes the matrix positive definite in any case (Gershgorin)
};

// `sums` [M] is scratch.
ShiftRange find_shift_range(const TaskLimits& limits, const Instance& instance, const Array1<double>& sums);

}  // namespace muster
