// Routes: every agent visits a sequence of tasks; an agent's assignment is its first stop.
//
// A route of agent i through tasks j, k, ..., z costs -(h_ij + g_jk + ... + e_iz): scores are worth, costs are their
// negative. Routes are doubly linked lists of visits with a sentinel for each agent. A task is visited as often as its
// capacity takes contributions, by different agents. The objective is the sum over routes of cost to a power: 1 gives
// the total, a high power approaches the makespan (the longest route).
#pragma once

#include "../../arena.hpp"
#include "../../array.hpp"

namespace muster {

// The power whose sum is the total of all routes, and the one that stands for the makespan: of routes that differ by a
// tenth, the longer counts double.
constexpr Index kTotalPower = 1;
constexpr Index kMakespanPower = 8;

constexpr Index kUnserved = -1;

// Costs and restrictions of one instance; V visits.
struct RouteProblem {
  Index n;
  Index m;
  Index power;
  Array2<double> start;        // [N, M] from where an agent is to a task; infinite where it may not go
  Array2<double> follow;       // [M, M] from a task to the next
  Array2<double> end;          // [N, M] from an agent's last task to its end; no rows for none
  Array2<double> into;         // [M, M + N] transposed: into a task from each task, then from each agent's start
  Array2<bool> allowed;        // [M, N]
  Array2<double> use;          // [N, M] contributions; no rows for 1
  Array1<double> capacity;     // [M]
  Array1<Index> task;          // [V] the task of each visit, in increasing order
  Array1<Index> source;        // [V + N] column of `into` that belongs to a node
};

// Node V + i is the sentinel of agent i, before its first and after its last visit.
struct Routes {
  Array1<Index> next;      // [V + N]
  Array1<Index> previous;  // [V + N]
  Array1<Index> owner;     // [V + N] the agent that a node belongs to, kUnserved for a visit that is not on any route
  Array1<double> leg;      // [V + N] cost from a node to the next
  Array1<double> cost;     // [N]
  Array1<double> load;     // [M] contributions that each task receives
  Array2<bool> open;       // [M, N] whether an agent may visit a task and does not yet
  Index unserved;          // visits that are not on any route
};

Routes make_routes(Arena& arena, const RouteProblem& problem);
void copy_routes(Routes& target, const Routes& source);

// Sum the routes' costs afresh, so that rounding errors do not build up.
void measure(Routes& routes);

// The sum over routes of cost to the power.
double objective_of(const Routes& routes, Index power);

// Cost of the longest route, 0 at least.
double makespan_of(const Routes& routes);

// Cost to the power; with a power, a route cannot cost less than nothing.
inline double weigh(double cost, Index power) {
  if (power == kTotalPower) return cost;
  double square = cost > 0.0 ? cost * cost : 0.0;
  square *= square;
  return square * square;
}

inline double use_of(const RouteProblem& problem, Index i, Index j) {
  return problem.use.rows > 0 ? problem.use(i, j) : 1.0;
}

// Cost from visit v to node b of agent i's route.
inline double leg_from(const RouteProblem& problem, Index i, Index v, Index b) {
  const Index j = problem.task[v];
  if (b < problem.task.size) return problem.follow(j, problem.task[b]);
  return problem.end.rows > 0 ? problem.end(i, j) : 0.0;
}

// Cost from node a to visit v.
inline double leg_into(const RouteProblem& problem, Index a, Index v) {
  return problem.into(problem.task[v], problem.source[a]);
}

// Insert visit v after node a.
inline void insert(const RouteProblem& problem, Routes& routes, Index v, Index a) {
  const Index i = routes.owner[a], j = problem.task[v], b = routes.next[a];
  const double in = leg_into(problem, a, v), out = leg_from(problem, i, v, b);
  routes.cost[i] += in + out - routes.leg[a];
  routes.leg[a] = in;
  routes.leg[v] = out;
  routes.next[a] = v;
  routes.previous[v] = a;
  routes.next[v] = b;
  routes.previous[b] = v;
  routes.owner[v] = i;
  routes.load[j] += use_of(problem, i, j);
  routes.open(j, i) = false;
  --routes.unserved;
}

// Take visit v out of its route.
inline void remove(const RouteProblem& problem, Routes& routes, Index v) {
  const Index i = routes.owner[v], j = problem.task[v], a = routes.previous[v], b = routes.next[v];
  const double in = routes.leg[a], out = routes.leg[v];
  const double direct = a < problem.task.size ? leg_from(problem, i, a, b)
                        : b < problem.task.size ? leg_into(problem, a, b)
                                                : 0.0;
  routes.next[a] = b;
  routes.previous[b] = a;
  routes.leg[a] = direct;
  routes.cost[i] -= in + out - direct;
  routes.owner[v] = kUnserved;
  routes.load[j] -= use_of(problem, i, j);
  routes.open(j, i) = true;
  ++routes.unserved;
}

}  // namespace muster
