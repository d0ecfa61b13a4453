#include "branch_and_bound.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "../answer.hpp"
#include "../lp/integrality.hpp"
#include "lagrangian.hpp"

namespace muster {

namespace {

// Subgradient steps at the root and at the other nodes, the first steps' lengths, and their patience.
constexpr Index kRootSteps = 300, kNodeSteps = 20;
constexpr double kRootLength = 1.0, kNodeLength = 0.3;
constexpr Index kRootPatience = 10, kNodePatience = 5;
// Times that a node is bounded again after agents were fixed.
constexpr int kTurns = 10;
// Values nearer than this share count as equal.
constexpr double kValueTolerance = 1e-9;
// Steps aim no further below the bound than this share of what the agents' choices differ by.
constexpr double kReach = 0.02;

// The path from the root to the present node, and the decisions on it.
struct Path {
  Index depth = 0;          // of the present node
  Index closings = 0;       // length of `closed` ...
  Index fixings = 0;        // ... and of `placed`
  double value = 0.0;       // of the best assignment
  double unit = 0.0;        // values are multiples of it, or 0
  double reach = 0.0;       // how far below the bound to aim
  double root_bound = 0.0;
  Array1<Index> agent;      // [N + 1] branched on at each depth
  Array2<Index> choice;     // [N + 1, M + 1] its choices, the best bound first, ...
  Array2<double> bound;     // [N + 1, M + 1] ... their bounds, ...
  Array1<Index> choices;    // [N + 1] ... how many, ...
  Array1<Index> next;       // [N + 1] ... and the next to be tried
  Array2<double> price;     // [N + 1, N] prices at each depth
  Array1<Index> closed;     // [N (M + 1)] pairs that were closed, in order, ...
  Array1<Index> closed_before;  // [N + 1] ... and how many when each depth began to branch
  Array1<Index> placed;     // [N] agents that were fixed, likewise
  Array1<Index> placed_before;  // [N + 1]
  Array1<Index> best;       // [N] the best assignment; m for left out
  Array1<Index> trial;      // [N]
  Array1<double> load;      // [M]
};

Path make_path(Arena& arena, Index n, Index m) {
  Path path;
  path.agent = arena.make1<Index>(n + 1);
  path.choice = arena.make2<Index>(n + 1, m + 1);
  path.bound = arena.make2<double>(n + 1, m + 1);
  path.choices = arena.make1<Index>(n + 1);
  path.next = arena.make1<Index>(n + 1);
  path.price = arena.make2<double>(n + 1, n);
  path.closed = arena.make1<Index>(n * (m + 1));
  path.closed_before = arena.make1<Index>(n + 1);
  path.placed = arena.make1<Index>(n);
  path.placed_before = arena.make1<Index>(n + 1);
  path.best = arena.make1<Index>(n);
  path.trial = arena.make1<Index>(n);
  path.load = arena.make1<double>(m);
  return path;
}

// A bound this low leaves nothing better than the best assignment.
double enough(const Path& path) {
  if (path.unit > 0.0) return path.value + path.unit * (1.0 - 1e-5);
  return path.value + kValueTolerance * std::abs(path.value);
}

// Fix agent i to task j; whether it fits.
bool fix(const Knapsacks& knapsacks, Path& path, Index i, Index j) {
  knapsacks.fixed[i] = j;
  knapsacks.size[j] -= knapsacks.weight(j, i);
  path.placed[path.fixings] = i;
  ++path.fixings;
  return knapsacks.size[j] >= 0;
}

// Undo what was decided below `depth`.
void undo(const Knapsacks& knapsacks, Path& path, Index depth) {
  const Index width = knapsacks.m + 1;
  while (path.closings > path.closed_before[depth]) {
    --path.closings;
    const Index pair = path.closed[path.closings];
    knapsacks.open(pair % width, pair / width) = true;
  }
  while (path.fixings > path.placed_before[depth]) {
    --path.fixings;
    const Index i = path.placed[path.fixings], j = knapsacks.fixed[i];
    knapsacks.size[j] += knapsacks.weight(j, i);
    knapsacks.fixed[i] = -1;
  }
}

// Close pairs that cannot beat the best assignment and fix agents with one choice left. Returns how many were fixed, or
// -1 if an agent has no choice left.
Index close_pairs(const Knapsacks& knapsacks, Path& path, double bound) {
  const Index n = knapsacks.n, m = knapsacks.m;
  const double least = enough(path);
  Index fixed = 0;
  for (Index i = 0; i < n; ++i) {
    if (knapsacks.fixed[i] >= 0) continue;
    const double others = sum_leave(knapsacks, i);
    Index count = 0, only = -1;
    for (Index j = 0; j <= m; ++j) {
      if (!knapsacks.open(j, i)) continue;
      if (pair_bound(knapsacks, i, j, bound, others) <= least) {
        knapsacks.open(j, i) = false;
        path.closed[path.closings] = i * (m + 1) + j;
        ++path.closings;
      } else {
        ++count;
        only = j;
      }
    }
    if (count == 0) return -1;
    if (count == 1) {
      ++fixed;
      if (!fix(knapsacks, path, i, only)) return -1;
    }
  }
  return fixed;
}

// Keep the assignment of the knapsacks and the fixed agents if it is better; whether it is feasible. `by_knapsacks` is
// false where all agents are fixed.
bool accept(const Knapsacks& knapsacks, Path& path, const Instance& instance, bool by_knapsacks) {
  const Index n = instance.n, m = instance.m;
  std::fill_n(path.load.data, m, 0.0);
  double value = 0.0;
  for (Index i = 0; i < n; ++i) {
    Index task = knapsacks.fixed[i];
    if (by_knapsacks && task < 0) {
      for (Index j = 0; j <= m; ++j) {
        if (knapsacks.taken(j, i)) task = j;
      }
    }
    value += knapsacks.worth(task, i);
    if (task < m) {
      if (!fits(path.load[task], instance.use(i, task), instance.capacity[task])) return false;
      path.load[task] += instance.use(i, task);
    }
    path.trial[i] = task;
  }
  if (value > path.value + kValueTolerance * std::abs(path.value)) {
    path.value = value;
    std::copy_n(path.trial.data, n, path.best.data);
  }
  return true;
}

struct Node {
  double bound;
  bool open;  // there is something to branch on
};

// Bound the present node and close what can be closed.
Node bound_node(Knapsacks& knapsacks, const AgentPrices& prices, Path& path, const Instance& instance, Stop& stop) {
  const bool root = path.depth == 0;
  double bound = kInfinity;
  for (int turn = 0; turn < kTurns; ++turn) {
    const bool first = root && turn == 0;
    const StepRule rule{first ? kRootSteps : kNodeSteps, first ? kRootLength : kNodeLength,
                        root ? kRootPatience : kNodePatience, path.value, path.reach};
    const double least = enough(path);
    const Lowered lowered = lower_bound(knapsacks, prices, rule, least, stop);
    bound = lowered.bound;
    if (root) path.root_bound = std::min(path.root_bound, bound);
    if (lowered.outcome == Outcome::beaten || bound <= least) return {bound, false};
    if (lowered.outcome == Outcome::reached && accept(knapsacks, path, instance, true)) return {bound, false};
    if (stop.requested() || !weigh_choices(knapsacks, prices.price, stop)) break;
    const Index fixed = close_pairs(knapsacks, path, bound);
    if (fixed < 0) return {bound, false};
    if (fixed == 0) break;
  }
  if (std::any_of(knapsacks.fixed.data, knapsacks.fixed.data + instance.n, [](Index task) { return task < 0; })) {
    return {bound, true};
  }
  accept(knapsacks, path, instance, false);
  return {bound, false};
}

// The agent to branch on. Where good assignments are wanted soon, the one with the fewest choices, then the least hope.
// Where a proof is, the one whose best choice has the lowest bound: the bound of the whole falls soonest.
Index choose_agent(const Knapsacks& knapsacks, double least, double bound, bool prove) {
  const Index m = knapsacks.m;
  Index fewest = m + 2, chosen = -1;
  double lowest = kInfinity;
  for (Index i = 0; i < knapsacks.n; ++i) {
    if (knapsacks.fixed[i] >= 0) continue;
    const double others = sum_leave(knapsacks, i);
    Index count = 0;
    double hope = 0.0, high = -kInfinity;
    for (Index j = 0; j <= m; ++j) {
      if (!knapsacks.open(j, i)) continue;
      const double own = pair_bound(knapsacks, i, j, bound, others);
      ++count;
      hope += own - least;
      high = std::max(high, own);
    }
    if (prove ? high < lowest || (high == lowest && count < fewest)
              : count < fewest || (count == fewest && hope < lowest)) {
      fewest = count;
      lowest = prove ? high : hope;
      chosen = i;
    }
  }
  return chosen;
}

// Choose an agent and list its choices, the best bound first.
void branch(const Knapsacks& knapsacks, const AgentPrices& prices, Path& path, double bound, bool prove) {
  const Index depth = path.depth;
  const Index chosen = choose_agent(knapsacks, enough(path), bound, prove);
  const Array1<double> bounds = path.bound.row(depth);
  const Array1<Index> choice = path.choice.row(depth);
  const double others = sum_leave(knapsacks, chosen);
  Index count = 0;
  for (Index j = 0; j <= knapsacks.m; ++j) {
    if (!knapsacks.open(j, chosen)) continue;
    const double own = pair_bound(knapsacks, chosen, j, bound, others);
    Index slot = count;
    for (; slot > 0 && bounds[slot - 1] < own; --slot) {
      bounds[slot] = bounds[slot - 1];
      choice[slot] = choice[slot - 1];
    }
    bounds[slot] = own;
    choice[slot] = j;
    ++count;
  }
  path.agent[depth] = chosen;
  path.choices[depth] = count;
  path.next[depth] = 0;
  path.closed_before[depth] = path.closings;
  path.placed_before[depth] = path.fixings;
  std::copy_n(prices.price.data, knapsacks.n, path.price.row(depth).data);
}

// Go on to the next choice that may be better, here or further up; false if no choice is left.
bool step_down(const Knapsacks& knapsacks, const AgentPrices& prices, Path& path) {
  for (; path.depth >= 0; --path.depth) {
    const Index depth = path.depth;
    undo(knapsacks, path, depth);
    std::copy_n(path.price.row(depth).data, knapsacks.n, prices.price.data);
    while (path.next[depth] < path.choices[depth]) {
      const Index turn = path.next[depth];
      ++path.next[depth];
      if (path.bound(depth, turn) > enough(path) && fix(knapsacks, path, path.agent[depth], path.choice(depth, turn))) {
        ++path.depth;
        return true;
      }
      undo(knapsacks, path, depth);
    }
  }
  return false;
}

// Upper bound when the search is cut short: the best bound of a choice that is still open.
double open_bound(const Path& path) {
  double limit = path.depth == 0 ? path.root_bound : path.value;
  for (Index depth = 0; depth < path.depth; ++depth) {
    for (Index turn = std::max(Index{0}, path.next[depth] - 1); turn < path.choices[depth]; ++turn) {
      limit = std::max(limit, path.bound(depth, turn));
    }
  }
  return std::min(limit, path.root_bound);
}

// Search until the tree is exhausted, `cells` cells are computed, or stopped; returns an upper bound.
double search(Knapsacks& knapsacks, const AgentPrices& prices, Path& path, const Instance& instance, bool prove,
              double cells, Stop& stop) {
  path.depth = path.closings = path.fixings = 0;
  while (true) {
    const Node node = bound_node(knapsacks, prices, path, instance, stop);
    if (path.depth == 0 && !node.open) return path.value;
    if (stop.requested() || knapsacks.cells >= cells) return open_bound(path);
    if (node.open) {
      branch(knapsacks, prices, path, node.bound, prove);
    } else {
      --path.depth;
    }
    if (!step_down(knapsacks, prices, path)) return path.value;
  }
}

// Begin at the prices of the linear programme, which its prices of tasks imply: y_i = max_j h_ij - mu_ij pi_j.
void start_search(const AgentPrices& prices, Path& path, const Instance& instance, const Array1<double>& task_prices) {
  const Index n = instance.n, m = instance.m;
  double limit = 0.0, spread = 0.0;
  for (Index j = 0; j < m; ++j) {
    if (task_prices[j] > 0.0) limit += task_prices[j] * instance.capacity[j];
  }
  for (Index i = 0; i < n; ++i) {
    double best = instance.idle, low = kInfinity, high = -kInfinity;
    for (Index j = 0; j < m; ++j) {
      const double score = instance.score(i, j);
      if (score > -kInfinity) {
        best = std::max(best, score - instance.use(i, j) * task_prices[j]);
        low = std::min(low, score);
        high = std::max(high, score);
      }
    }
    prices.price[i] = best;
    limit += best;
    spread += high > -kInfinity ? std::max(high - low, 0.1 * std::abs(high)) : 0.0;
  }
  path.root_bound = limit;
  path.reach = kReach * spread;
  path.unit = integrality_of(instance);
}

}  // namespace

void prove_batch(Index begin, Index end, const Problem& problem, const Settings& settings, const Output& out, Stop& stop,
                 const Array1<const Index>& rows, double cells) {
  const Index n = problem.scores.rows, m = problem.scores.columns;
  Arena arena, table_memory;
  Array1<double> tables;
  Instance instance = make_instance(arena, n, m, false);
  Knapsacks knapsacks = make_knapsacks(arena, n, m);
  Path path = make_path(arena, n, m);
  const AgentPrices prices = make_agent_prices(arena, n);
  Plan plan = make_plan(arena, n, m);
  Ranking ranking = make_ranking(arena, n);
  const Array1<Index> position = arena.make1<Index>(m);
  const Array1<double> task_prices = arena.make1<double>(m);
  for (Index row = begin; row < end; ++row) {
    const Index b = rows[row];
    fill_instance(instance, problem, b, settings.assign_all);
    for (Index j = 0; j < instance.m; ++j) task_prices[j] = out.prices(b, instance.tasks[j]);
    const Index columns = set_grid(knapsacks, instance);
    if ((instance.n + 3) * columns > tables.size) {
      table_memory = Arena();
      tables = table_memory.make1<double>((instance.n + 3) * columns);
    }
    fill_knapsacks(knapsacks, instance, tables.data, columns);
    start_search(prices, path, instance, task_prices);
    path.value = read_answer(path.best, instance, out, b, position);
    double limit = search(knapsacks, prices, path, instance, settings.prove, cells, stop);
    limit = std::max(path.value, integral_limit(instance, limit, path.unit));
    write_improved(path.best, limit, instance, settings, out, b, plan, task_prices, ranking, stop);
  }
}

}  // namespace muster
