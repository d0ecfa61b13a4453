#include "positions.hpp"

#include <algorithm>

#include "../../random.hpp"
#include "../instance.hpp"

namespace muster {

namespace {

// Visits next to which, and agents at whose start, a position for a visit is looked for.
constexpr Index kNeighbours = 12;

// kept: the positions of the smallest keys in increasing order; ties by position.
void keep_smallest(const Array1<double>& keys, const Array1<Index>& kept) {
  Index filled = 0;
  for (Index x = 0; x < keys.size; ++x) {
    if (filled == kept.size && keys[x] >= keys[kept[filled - 1]]) continue;
    Index at = std::min(filled, kept.size - 1);
    for (; at > 0 && keys[kept[at - 1]] > keys[x]; --at) kept[at] = kept[at - 1];
    kept[at] = x;
    filled = std::min(filled + 1, kept.size);
  }
}

// Data of a visit that are the same for all its positions.
struct Candidate {
  const RouteProblem& problem;
  const Routes& routes;
  Index v;
  Index j;
  const double* into;    // cost from each node's source to the task
  const double* follow;  // cost from the task to each other
  const bool* open;      // by agent
  bool fits;             // whether the task takes one more agent where all contribute 1

  Candidate(const RouteProblem& of, const Routes& with, Index visit)
      : problem(of),
        routes(with),
        v(visit),
        j(of.task[visit]),
        into(of.into.row(j).data),
        follow(of.follow.row(j).data),
        open(with.open.row(j).data),
        fits(muster::fits(with.load[j], 1.0, of.capacity[j])) {}

  // Increase of the objective by inserting the visit after node a; infinite where it must not be.
  double gain_after(Index a) const {
    const Index i = routes.owner[a], b = routes.next[a];
    if (!open[i]) return kInfinity;
    if (problem.use.rows > 0) {
      if (!muster::fits(routes.load[j], problem.use(i, j), problem.capacity[j])) return kInfinity;
    } else if (!fits) {
      return kInfinity;
    }
    const double out = b < problem.task.size ? follow[problem.task[b]] : problem.end.rows > 0 ? problem.end(i, j) : 0.0;
    const double before = routes.cost[i];
    const double detour = into[problem.source[a]] + out - routes.leg[a];
    return weigh(before + detour, problem.power) - weigh(before, problem.power);
  }
};

}  // namespace

Neighbours make_neighbours(Arena& arena, const RouteProblem& problem) {
  const Index n = problem.n, m = problem.m, visits = problem.task.size;
  const Neighbours neighbours{
      .visits = arena.make2<Index>(visits, std::min(kNeighbours, visits - 1)),
      .agents = arena.make2<Index>(m, std::min(kNeighbours, n)),
  };
  const Array1<double> distance = arena.make1<double>(std::max(visits, n));
  const Array1<Index> nearest = arena.make1<Index>(neighbours.visits.columns + 1);
  for (Index v = 0; v < visits; ++v) {
    const Index j = problem.task[v];
    // Visits of one task differ only in that none is its own neighbour.
    if (v == 0 || problem.task[v - 1] != j) {
      for (Index w = 0; w < visits; ++w) {
        const Index k = problem.task[w];
        distance[w] = k != j ? std::min(problem.follow(j, k), problem.into(j, k)) : 0.0;
      }
      keep_smallest(distance.first(visits), nearest);
      for (Index i = 0; i < n; ++i) distance[i] = problem.allowed(j, i) ? problem.start(i, j) : kInfinity;
      keep_smallest(distance.first(n), neighbours.agents.row(j));
    }
    Index filled = 0;
    for (const Index w : nearest) {
      if (w != v && filled < neighbours.visits.columns) neighbours.visits(v, filled++) = w;
    }
  }
  return neighbours;
}

Index best_near_position(const RouteProblem& problem, const Routes& routes, const Neighbours& neighbours, Index v,
                         std::uint64_t& rng, double blink) {
  const Candidate candidate(problem, routes, v);
  double best = kInfinity;
  Index where = -1;
  const auto consider = [&](Index a) {
    const double gain = candidate.gain_after(a);
    if (gain < best) best = gain, where = a;
  };
  for (const Index a : neighbours.visits.row(v)) {
    if (routes.owner[a] == kUnserved || (blink > 0.0 && uniform(rng) < blink)) continue;
    consider(a);
    consider(routes.previous[a]);
  }
  for (const Index i : neighbours.agents.row(candidate.j)) {
    if (blink > 0.0 && uniform(rng) < blink) continue;
    consider(problem.task.size + i);
  }
  return where;
}

Index best_position(const RouteProblem& problem, const Routes& routes, Index v, Index begin) {
  const Candidate candidate(problem, routes, v);
  double best = kInfinity;
  Index where = -1;
  for (Index a = begin; a < routes.next.size; ++a) {
    if (routes.owner[a] == kUnserved) continue;
    const double gain = candidate.gain_after(a);
    if (gain < best) best = gain, where = a;
  }
  return where;
}

}  // namespace muster
