#include "ruin_recreate.hpp"

#include <algorithm>
#include <cmath>

#include "../../random.hpp"
#include "../simd.hpp"

namespace muster {

namespace {

// The longest string that is taken out of one route, and how many visits an iteration takes out on average.
constexpr Index kString = 10;
constexpr Index kRuined = 8;
// The share of iterations that take out whatever is nearest to the seed, rather than strings of several routes.
constexpr double kRadial = 0.3;
// A position is overlooked with one of these probabilities, chosen at random for each iteration, so that the same
// visits do not always end where they were.
constexpr double kBlink = 0.01;
constexpr double kBlind = 0.2;
// Accepted worsening, as a share of the cost, at the first and at the last iteration.
constexpr double kHot = 0.02;
constexpr double kCold = 1e-4;
// Costs are summed afresh after so many accepted changes.
constexpr Index kRefresh = 1000;

// Sort ruin.order[:count], which holds 0..count-1, by increasing key, then by position.
void sort_by_key(const Ruin& ruin, Index count) {
  const double* const key = ruin.key.data;
  std::sort(ruin.order.data, ruin.order.data + count,
            [key](Index a, Index b) { return key[a] < key[b] || (key[a] == key[b] && a < b); });
}

// Remember what agent i's route cost before this iteration.
void touch(const Routes& routes, Ruin& ruin, Index i, Index stamp) {
  if (ruin.mark[i] >= stamp) return;
  ruin.touched[ruin.agents] = i;
  ruin.cost[ruin.agents] = routes.cost[i];
  ++ruin.agents;
  ruin.mark[i] = stamp;
}

void take_out(const RouteProblem& problem, Routes& routes, Ruin& ruin, Index v, Index stamp) {
  touch(routes, ruin, routes.owner[v], stamp);
  ruin.visit[ruin.visits] = v;
  ruin.behind[ruin.visits] = routes.previous[v];
  ++ruin.visits;
  remove(problem, routes, v);
}

// Take out up to `length` visits in a row, v among them.
void take_string(const RouteProblem& problem, Routes& routes, Ruin& ruin, Index v, Index length, std::uint64_t& rng,
                 Index stamp) {
  const Index visits = problem.task.size, owner = routes.owner[v];
  Index a = v;
  for (Index back = below(rng, length); back > 0 && routes.previous[a] < visits; --back) a = routes.previous[a];
  touch(routes, ruin, owner, stamp);
  ruin.mark[owner] = stamp + 1;
  for (Index k = 0; k < length && a < visits; ++k) {
    const Index following = routes.next[a];
    take_out(problem, routes, ruin, a, stamp);
    a = following;
  }
}

// A visit at random; for the makespan, half of the time one on the longest route.
Index choose_seed(const RouteProblem& problem, const Routes& routes, std::uint64_t& rng) {
  const Index visits = problem.task.size;
  Index seed = below(rng, visits);
  if (problem.power == kTotalPower || !(uniform(rng) < 0.5)) return seed;
  Index longest = 0;
  for (Index i = 0; i < problem.n; ++i) {
    if (routes.cost[i] > routes.cost[longest]) longest = i;
  }
  Index length = 0;
  for (Index a = routes.next[visits + longest]; a < visits; a = routes.next[a]) {
    if (below(rng, ++length) == 0) seed = a;
  }
  return seed;
}

// Take out what is near a seed, visit by visit or in strings.
void take_neighbourhood(const RouteProblem& problem, Routes& routes, const Neighbours& neighbours, Ruin& ruin,
                        std::uint64_t& rng, Index stamp) {
  const Index seed = choose_seed(problem, routes, rng);
  const Index target = 1 + below(rng, std::min(2 * kRuined - 1, problem.task.size));
  const bool radial = uniform(rng) < kRadial;
  if (routes.owner[seed] == kUnserved) {
    ruin.visit[0] = seed;
    ruin.behind[0] = kUnserved;
    ruin.visits = 1;
  } else {
    const Index length = radial ? 1 : 1 + below(rng, std::min(kString, target));
    take_string(problem, routes, ruin, seed, length, rng, stamp);
  }
  for (const Index v : neighbours.visits.row(seed)) {
    if (ruin.visits >= target) return;
    if (routes.owner[v] == kUnserved) continue;
    if (radial) {
      take_out(problem, routes, ruin, v, stamp);
    } else if (ruin.mark[routes.owner[v]] <= stamp) {
      const Index length = 1 + below(rng, std::min(kString, target - ruin.visits));
      take_string(problem, routes, ruin, v, length, rng, stamp);
    }
  }
}

// Insert what was taken out, in one of three orders: at random, the farthest first, the nearest first.
void put_back(const RouteProblem& problem, Routes& routes, const Neighbours& neighbours, Ruin& ruin,
              std::uint64_t& rng, Index stamp) {
  const Index way = below(rng, 3);
  const double blink = uniform(rng) < 0.5 ? kBlink : kBlind;
  for (Index k = 0; k < ruin.visits; ++k) {
    ruin.order[k] = k;
    ruin.key[k] = uniform(rng);
    if (way > 0) {
      const Index j = problem.task[ruin.visit[k]];
      const double nearest = problem.start(neighbours.agents(j, 0), j);
      ruin.key[k] = way == 1 ? -nearest : nearest;
    }
  }
  sort_by_key(ruin, ruin.visits);
  for (Index k = 0; k < ruin.visits; ++k) {
    const Index v = ruin.visit[ruin.order[k]];
    Index a = best_near_position(problem, routes, neighbours, v, rng, blink);
    if (a < 0) a = best_position(problem, routes, v);
    if (a < 0) continue;
    touch(routes, ruin, routes.owner[a], stamp);
    insert(problem, routes, v, a);
  }
}

// Everything as before the iteration, to the last bit of the costs.
void undo(const RouteProblem& problem, Routes& routes, const Ruin& ruin) {
  for (Index k = 0; k < ruin.visits; ++k) {
    if (routes.owner[ruin.visit[k]] != kUnserved) remove(problem, routes, ruin.visit[k]);
  }
  for (Index k = ruin.visits - 1; k >= 0; --k) {
    if (ruin.behind[k] != kUnserved) insert(problem, routes, ruin.visit[k], ruin.behind[k]);
  }
  for (Index k = 0; k < ruin.agents; ++k) routes.cost[ruin.touched[k]] = ruin.cost[k];
}

// By how much the objective differs from before the iteration.
double change_of(const Routes& routes, const Ruin& ruin, Index power) {
  double change = 0.0;
  for (Index k = 0; k < ruin.agents; ++k) {
    change += weigh(routes.cost[ruin.touched[k]], power) - weigh(ruin.cost[k], power);
  }
  return change;
}

// The objective in units of cost.
double size_of(double objective, Index power) {
  return power == kTotalPower ? objective : std::pow(std::max(objective, 0.0), 1.0 / static_cast<double>(power));
}

// The best routes so far with what they are compared by.
struct Incumbent {
  Routes& routes;
  double objective;
  double makespan;

  void replace(const Routes& by, double objective_by) {
    copy_routes(routes, by);
    objective = objective_by;
    makespan = makespan_of(by);
  }

  // Whether others are better: fewer visits unserved; then, for the makespan, a shorter one; then a lower objective.
  bool is_beaten_by(const Routes& others, double objective_of_others, Index power) const {
    if (others.unserved != routes.unserved) return others.unserved < routes.unserved;
    if (power == kTotalPower) return objective_of_others < objective;
    double longest = 0.0;
    for (const double cost : others.cost) {
      if (cost > makespan) return false;
      longest = std::max(longest, cost);
    }
    return longest < makespan || (longest == makespan && objective_of_others < objective);
  }
};

}  // namespace

Ruin make_ruin(Arena& arena, const RouteProblem& problem) {
  const Index visits = problem.task.size, n = problem.n;
  return {
      .visit = arena.make1<Index>(visits),
      .behind = arena.make1<Index>(visits),
      .key = arena.make1<double>(visits),
      .order = arena.make1<Index>(visits),
      .touched = arena.make1<Index>(n),
      .cost = arena.make1<double>(n),
      .mark = arena.make1<Index>(n),
      .visits = 0,
      .agents = 0,
  };
}

void construct(const RouteProblem& problem, Routes& routes, const Neighbours& neighbours, Ruin& ruin, Stop& stop) {
  Index count = 0;
  for (Index v = 0; v < problem.task.size; ++v) {
    if (routes.owner[v] != kUnserved) continue;
    const Index j = problem.task[v];
    double nearest = kInfinity;
    for (const Index i : neighbours.agents.row(j)) nearest = std::min(nearest, problem.start(i, j));
    ruin.visit[count] = v;
    ruin.key[count] = -nearest;
    ruin.order[count] = count;
    ++count;
  }
  sort_by_key(ruin, count);
  std::uint64_t unused = 0;
  for (Index k = 0; k < count; ++k) {
    const Index v = ruin.visit[ruin.order[k]];
    const bool hurry = stop.requested();
    Index a = hurry ? best_near_position(problem, routes, neighbours, v, unused, 0.0) : best_position(problem, routes, v);
    if (a < 0 && hurry) a = best_position(problem, routes, v, problem.task.size);
    if (a >= 0) insert(problem, routes, v, a);
  }
}

Index improve(const RouteProblem& problem, Routes& routes, Routes& best, const Neighbours& neighbours, Ruin& ruin,
              std::uint64_t& rng, Index iterations, double bound, Stop& stop) {
  const Index power = problem.power;
  double objective = objective_of(routes, power), size = size_of(objective, power);
  Incumbent incumbent{best, 0.0, 0.0};
  incumbent.replace(routes, objective);
  bool met = meets_bound(best, power, bound, objective);
  Index accepted = 0;
  std::fill(ruin.mark.begin(), ruin.mark.end(), Index{-1});
  for (Index t = 0; t < iterations; ++t) {
    if (met || stop.requested()) return t;
    const Index stamp = 2 * t, unserved = routes.unserved;
    ruin.visits = 0;
    ruin.agents = 0;
    take_neighbourhood(problem, routes, neighbours, ruin, rng, stamp);
    put_back(problem, routes, neighbours, ruin, rng, stamp);
    const double changed = objective + change_of(routes, ruin, power);
    // Threshold acceptance in units of cost, cooling down evenly on a log scale.
    const double progress = static_cast<double>(t) / static_cast<double>(iterations);
    const double slack = kHot * std::pow(kCold / kHot, progress) * std::abs(size) * -std::log(1.0 - uniform(rng));
    // Routes with a shorter makespan can have a larger sum of powers: they are kept, though the search may go on from
    // others.
    if (incumbent.is_beaten_by(routes, changed, power)) {
      incumbent.replace(routes, changed);
      met = meets_bound(best, power, bound, changed);
    }
    const double changed_size = size_of(changed, power);
    if (routes.unserved > unserved || (routes.unserved == unserved && changed_size > size + slack)) {
      undo(problem, routes, ruin);
      continue;
    }
    objective = changed;
    size = changed_size;
    if (++accepted % kRefresh == 0) {
      measure(routes);
      objective = objective_of(routes, power);
      size = size_of(objective, power);
    }
  }
  return iterations;
}

bool meets_bound(const Routes& routes, Index power, double bound, double objective) {
  if (routes.unserved != 0) return false;
  const double reached = power == kTotalPower ? objective : makespan_of(routes);
  return reached <= bound + 1e-9 * std::abs(bound);
}

}  // namespace muster
