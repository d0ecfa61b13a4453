#include "bound.hpp"

#include <algorithm>

#include "../simd.hpp"

namespace muster {

namespace {

enum State : Index { kNotVisited, kWaiting, kSettled };

bool has_negative(const Array2<double>& costs) {
  Index found = 0;
  for (Index k = 0; k < costs.rows * costs.columns; ++k) found += costs.data[k] < 0.0;
  return found > 0;
}

bool has_negative_cost(const RouteProblem& problem) {
  if (has_negative(problem.start) || has_negative(problem.end)) return true;
  for (Index j = 0; j < problem.m; ++j) {
    for (Index k = 0; k < problem.m; ++k) {
      if (j != k && problem.follow(j, k) < 0.0) return true;
    }
  }
  return false;
}

// distance[j]: the cheapest leg between any agent's start (or end) and task j, for the tasks that are visited.
void set_one_leg(const RouteProblem& problem, const Array2<double>& legs, const Array1<double>& distance,
                 const Array1<Index>& state) {
  std::fill(state.begin(), state.end(), kNotVisited);
  std::fill(distance.begin(), distance.end(), kInfinity);
  for (const Index j : problem.task) state[j] = kWaiting;
  for (Index i = 0; i < problem.n; ++i) {
    for (Index j = 0; j < problem.m; ++j) {
      if (state[j] == kWaiting && problem.allowed(j, i)) distance[j] = std::min(distance[j], legs(i, j));
    }
  }
}

// distance[j]: from one leg to the cheapest path of any number of legs (Dijkstra).
void settle(const RouteProblem& problem, bool backwards, const Array1<double>& distance, const Array1<Index>& state) {
  for (Index round = 0; round < problem.m; ++round) {
    double best = kInfinity;
    Index at = -1;
    for (Index j = 0; j < problem.m; ++j) {
      if (state[j] == kWaiting && distance[j] < best) best = distance[j], at = j;
    }
    if (at < 0) return;
    state[at] = kSettled;
    for (Index j = 0; j < problem.m; ++j) {
      if (state[j] != kWaiting) continue;
      distance[j] = std::min(distance[j], best + (backwards ? problem.follow(j, at) : problem.follow(at, j)));
    }
  }
}

}  // namespace

double lower_bound(Arena& arena, const RouteProblem& problem) {
  if (has_negative_cost(problem)) return kNaN;
  const Index m = problem.m, visits = problem.task.size;
  const Array1<double> reach = arena.make1<double>(m), leave = arena.zeros1<double>(m);
  const Array1<Index> state = arena.make1<Index>(m);
  set_one_leg(problem, problem.start, reach, state);
  double total = 0.0, into = kInfinity;
  for (Index v = 0; v < visits; ++v) {
    const Index j = problem.task[v];
    if (v == 0 || problem.task[v - 1] != j) {
      into = reach[j];
      for (Index k = 0; k < m; ++k) {
        if (k != j && state[k] == kWaiting) into = std::min(into, problem.follow(k, j));
      }
    }
    if (into < kInfinity) total += into;
  }
  if (problem.power == kTotalPower) return total;
  settle(problem, false, reach, state);
  if (problem.end.rows > 0) {
    set_one_leg(problem, problem.end, leave, state);
    settle(problem, true, leave, state);
  }
  double dearest = 0.0;
  for (Index j = 0; j < m; ++j) {
    if (state[j] == kSettled) dearest = std::max(dearest, reach[j] + leave[j]);
  }
  return std::max(total / static_cast<double>(problem.n), dearest);
}

}  // namespace muster
