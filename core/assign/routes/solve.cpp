#include "solve.hpp"

#include <algorithm>
#include <cmath>

#include "../instance.hpp"
#include "bound.hpp"
#include "ruin_recreate.hpp"

namespace muster {

namespace {

// Living agents and tasks of an instance, by the numbers of the input.
struct Living {
  Array1<Index> agents;
  Array1<Index> tasks;
};

Array1<Index> list_living(Arena& arena, const Array1<const bool>& alive) {
  const Array1<Index> list = arena.make1<Index>(alive.size);
  Index count = 0;
  for (Index i = 0; i < alive.size; ++i) {
    if (alive[i]) list[count++] = i;
  }
  return list.first(count);
}

bool is_allowed(const Problem& problem, Index b, Index agent, Index task) {
  return problem.allowed.layers == 0 || problem.allowed(b, agent, task);
}

// The arguments of `solve_routes` beside the Problem, and its settings.
struct RouteBatch {
  Array3<const double> end_scores;
  Array3<const Index> previous;
  Array3<Index> routes;
  Index iterations;
  Index rounds;
  Index power;
};

// Whether every entry that counts is valid.
bool is_valid(const Problem& problem, const RouteBatch& batch, Index b, const Living& living) {
  for (const Index task : living.tasks) {
    const double capacity = problem.capacities(b, task);
    if (!is_valid_amount(capacity) && capacity != kInfinity) return false;
    for (const Index other : living.tasks) {
      if (problem.task_scores.layers > 0 && !(std::abs(problem.task_scores(b, task, other)) <= kLargestNumber)) return false;
    }
  }
  for (const Index agent : living.agents) {
    for (const Index task : living.tasks) {
      if (!is_allowed(problem, b, agent, task)) continue;
      if (batch.end_scores.layers > 0 && !(std::abs(batch.end_scores(b, agent, task)) <= kLargestNumber)) return false;
      const double score = problem.scores(b, agent, task);
      if (!(std::abs(score) <= kLargestNumber) && score != -kInfinity) return false;
      if (problem.contributions.layers > 0 && !is_valid_amount(problem.contributions(b, agent, task))) return false;
    }
  }
  return true;
}

// Largest number of agents on task j, the smallest contributions first. An agent whose contribution alone exceeds
// the capacity does not count.
Index count_visits(const RouteProblem& routing, Index j) {
  const double capacity = routing.capacity[j];
  double smallest = kInfinity;
  Index able = 0;
  for (Index i = 0; i < routing.n; ++i) {
    const double use = use_of(routing, i, j);
    if (!routing.allowed(j, i) || !fits(0.0, use, capacity)) continue;
    ++able;
    smallest = std::min(smallest, use);
  }
  if (able == 0 || !(smallest > 0.0) || !(capacity / smallest < static_cast<double>(able))) return able;
  return std::max(Index{1}, static_cast<Index>(capacity / smallest * (1.0 + kCapacityTolerance)));
}

// The instance as costs, with a visit for every agent that a task takes; `into` and `source` are filled later.
RouteProblem make_problem(Arena& arena, const Problem& problem, const RouteBatch& batch, Index b, const Living& living) {
  const Index n = living.agents.size, m = living.tasks.size;
  const bool with_end = batch.end_scores.layers > 0, with_use = problem.contributions.layers > 0;
  RouteProblem routing{
      .n = n,
      .m = m,
      .power = batch.power,
      .start = arena.make2<double>(n, m),
      .follow = arena.zeros2<double>(m, m),
      .end = arena.make2<double>(with_end ? n : 0, m),
      .into = {},
      .allowed = arena.make2<bool>(m, n),
      .use = arena.make2<double>(with_use ? n : 0, m),
      .capacity = arena.make1<double>(m),
      .task = {},
      .source = {},
  };
  for (Index i = 0; i < n; ++i) {
    const Index agent = living.agents[i];
    for (Index j = 0; j < m; ++j) {
      const Index task = living.tasks[j];
      const double score = problem.scores(b, agent, task);
      const bool may = score > -kInfinity && is_allowed(problem, b, agent, task);
      routing.allowed(j, i) = may;
      routing.start(i, j) = may ? -score : kInfinity;
      if (with_end) routing.end(i, j) = may ? -batch.end_scores(b, agent, task) : kInfinity;
      if (with_use) routing.use(i, j) = problem.contributions(b, agent, task);
    }
  }
  const Array1<Index> most = arena.make1<Index>(m);
  Index visits = 0;
  for (Index j = 0; j < m; ++j) {
    routing.capacity[j] = problem.capacities(b, living.tasks[j]);
    for (Index k = 0; k < m && problem.task_scores.layers > 0; ++k) {
      routing.follow(j, k) = -problem.task_scores(b, living.tasks[j], living.tasks[k]);
    }
    most[j] = count_visits(routing, j);
    visits += most[j];
  }
  routing.task = arena.make1<Index>(visits);
  Index* v = routing.task.data;
  for (Index j = 0; j < m; ++j) v = std::fill_n(v, most[j], j);
  return routing;
}

void divide(const Array2<double>& costs, double scale) {
  for (Index k = 0; k < costs.rows * costs.columns; ++k) costs.data[k] /= scale;
}

// Divide the costs by what a route costs about, so that powers stay in range; returns the divisor.
double normalise(const RouteProblem& routing, double bound) {
  double scale = bound;
  if (!(scale > 0.0)) {
    scale = 0.0;
    for (Index i = 0; i < routing.n; ++i) {
      for (Index j = 0; j < routing.m; ++j) {
        if (routing.allowed(j, i)) scale = std::max(scale, std::abs(routing.start(i, j)));
      }
    }
  }
  if (!(scale > 0.0)) return 1.0;
  divide(routing.start, scale);
  divide(routing.end, scale);
  divide(routing.follow, scale);
  return scale;
}

// Transpose the costs, so that all that is looked up of a visit is in a row or two.
void fill_into(Arena& arena, RouteProblem& routing) {
  const Index n = routing.n, m = routing.m, visits = routing.task.size;
  routing.into = arena.make2<double>(m, m + n);
  for (Index j = 0; j < m; ++j) {
    double* const row = routing.into.row(j).data;
    for (Index k = 0; k < m; ++k) row[k] = routing.follow(k, j);
    for (Index i = 0; i < n; ++i) row[m + i] = routing.start(i, j);
  }
  routing.source = arena.make1<Index>(visits + n);
  std::copy(routing.task.begin(), routing.task.end(), routing.source.data);
  for (Index i = 0; i < n; ++i) routing.source[visits + i] = m + i;
}

// Start from the routes of the last decision, without the tasks that are gone.
void resume(const RouteProblem& routing, Routes& routes, const Array2<const Index>& previous, const Living& living) {
  const Index visits = routing.task.size;
  for (Index i = 0; i < routing.n; ++i) {
    Index a = visits + i;
    for (const Index task : previous.row(living.agents[i])) {
      if (task < 0) break;
      const Index j = std::lower_bound(living.tasks.begin(), living.tasks.end(), task) - living.tasks.begin();
      if (j == routing.m || living.tasks[j] != task || !routes.open(j, i)) continue;
      if (!fits(routes.load[j], use_of(routing, i, j), routing.capacity[j])) continue;
      Index v = std::lower_bound(routing.task.begin(), routing.task.end(), j) - routing.task.begin();
      while (v < visits && routing.task[v] == j && routes.owner[v] != kUnserved) ++v;
      if (v == visits || routing.task[v] != j) continue;
      insert(routing, routes, v, a);
      a = v;
    }
  }
}

// Write the routes, the first stops and the objective in the numbers of the input.
void write(const RouteProblem& routing, const Routes& routes, const Living& living, double scale, const Problem& problem,
           Index b, const Array3<Index>& found, const Output& out) {
  const Index visits = routing.task.size;
  double total = 0.0, longest = 0.0;
  for (Index i = 0; i < routing.n; ++i) {
    const Index agent = living.agents[i];
    total += routes.cost[i] * scale;
    longest = std::max(longest, routes.cost[i] * scale);
    Index k = 0;
    for (Index a = routes.next[visits + i]; a < visits; a = routes.next[a]) {
      const Index task = living.tasks[routing.task[a]];
      found(b, agent, k++) = task;
      if (k > 1) continue;
      out.assignment(b, agent) = task;
      out.reason(b, agent) = kAssigned;
      out.loads(b, task) += problem.contributions.layers > 0 ? problem.contributions(b, agent, task) : 1.0;
    }
  }
  out.objective[b] = routing.power == kTotalPower ? -total : -longest;
  out.relaxed[b] = out.objective[b];
}

void solve_instance(Arena& arena, const Problem& problem, const RouteBatch& batch, Index b, const Living& living,
                    const Output& out, Stop& stop) {
  RouteProblem routing = make_problem(arena, problem, batch, b, living);
  const double bound = lower_bound(arena, routing);
  out.bound[b] = -bound;
  if (routing.task.size == 0) return;
  const double scale = normalise(routing, bound), scaled_bound = bound / scale;
  fill_into(arena, routing);
  Routes routes = make_routes(arena, routing), best = make_routes(arena, routing);
  const Neighbours neighbours = make_neighbours(arena, routing);
  Ruin ruin = make_ruin(arena, routing);
  std::uint64_t rng = 1;
  if (batch.previous.layers > 0) resume(routing, routes, batch.previous.layer(b), living);
  construct(routing, routes, neighbours, ruin, stop);
  measure(routes);
  // Ever longer rounds, each from the best so far, until a stop: one long round would never cool down.
  for (Index round = 0; round <= batch.rounds; ++round) {
    if (round > 0) copy_routes(routes, best);
    const Index iterations = batch.iterations << std::min(round, Index{20});
    if (improve(routing, routes, best, neighbours, ruin, rng, iterations, scaled_bound, stop) < iterations) break;
  }
  measure(best);
  if (!meets_bound(best, batch.power, scaled_bound, objective_of(best, batch.power))) {
    out.status[b] = stop.requested() ? kTimeLimit : kIterationLimit;
  }
  write(routing, best, living, scale, problem, b, batch.routes, out);
}

}  // namespace

void solve_routes(Index begin, Index end, const Problem& problem, const Settings& settings, const Output& out, Stop& stop,
                  const Array3<const double>& end_scores, const Array3<const Index>& previous, const Array3<Index>& routes,
                  Index power) {
  const RouteBatch batch{end_scores, previous, routes, settings.steps, settings.rounds, power};
  for (Index b = begin; b < end; ++b) {
    Arena arena;
    const Living living{list_living(arena, problem.agent_alive.row(b)), list_living(arena, problem.task_alive.row(b))};
    if (!is_valid(problem, batch, b, living)) {
      out.status[b] = kInvalid;
      continue;
    }
    out.duality_gap[b] = kNaN;
    out.frank_wolfe_gap[b] = kNaN;
    out.status[b] = kOptimal;
    for (const Index agent : living.agents) out.reason(b, agent) = kBetterLeftOut;
    if (living.agents.size > 0 && living.tasks.size > 0) solve_instance(arena, problem, batch, b, living, out, stop);
  }
}

}  // namespace muster
