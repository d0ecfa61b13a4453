#include "routes.hpp"

#include <algorithm>

namespace muster {

Routes make_routes(Arena& arena, const RouteProblem& problem) {
  const Index visits = problem.task.size, nodes = visits + problem.n;
  Routes routes{
      .next = arena.make1<Index>(nodes),
      .previous = arena.make1<Index>(nodes),
      .owner = arena.make1<Index>(nodes),
      .leg = arena.zeros1<double>(nodes),
      .cost = arena.zeros1<double>(problem.n),
      .load = arena.zeros1<double>(problem.m),
      .open = arena.make2<bool>(problem.m, problem.n),
      .unserved = visits,
  };
  for (Index a = 0; a < nodes; ++a) {
    routes.next[a] = a;
    routes.previous[a] = a;
    routes.owner[a] = a < visits ? kUnserved : a - visits;
  }
  std::copy_n(problem.allowed.data, problem.m * problem.n, routes.open.data);
  return routes;
}

void copy_routes(Routes& target, const Routes& source) {
  std::copy(source.next.begin(), source.next.end(), target.next.data);
  std::copy(source.previous.begin(), source.previous.end(), target.previous.data);
  std::copy(source.owner.begin(), source.owner.end(), target.owner.data);
  std::copy(source.leg.begin(), source.leg.end(), target.leg.data);
  std::copy(source.cost.begin(), source.cost.end(), target.cost.data);
  std::copy(source.load.begin(), source.load.end(), target.load.data);
  std::copy_n(source.open.data, source.open.rows * source.open.columns, target.open.data);
  target.unserved = source.unserved;
}

void measure(Routes& routes) {
  const Index n = routes.cost.size, visits = routes.next.size - n;
  for (Index i = 0; i < n; ++i) {
    double total = 0.0;
    Index a = visits + i;
    do {
      total += routes.leg[a];
      a = routes.next[a];
    } while (a < visits);
    routes.cost[i] = total;
  }
}

double objective_of(const Routes& routes, Index power) {
  double total = 0.0;
  for (const double cost : routes.cost) total += weigh(cost, power);
  return total;
}

double makespan_of(const Routes& routes) {
  double longest = 0.0;
  for (const double cost : routes.cost) longest = std::max(longest, cost);
  return longest;
}

}  // namespace muster
