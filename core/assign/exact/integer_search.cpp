#include "integer_search.hpp"

#include <algorithm>
#include <cmath>

#include "../answer.hpp"
#include "../lp/integrality.hpp"
#include "oscillation.hpp"

namespace muster {

namespace {

// Steps of the first oscillation, those without success after which it ends, and pairs of agents that it looks at.
constexpr Index kSteps = 500, kPatience = 300;
constexpr double kPairs = 3e6;
// Steps of each further oscillation, and how many assignments are kept to start them from.
constexpr Index kFurtherSteps = 125, kKept = 8;
// Instances with no more assignments than this are enumerated, where a proof is to be reported.
constexpr double kEnumerable = 4096.0;
// Each agent's chance of another choice while there are few assignments to start from.
constexpr double kScatter = 0.15;

// The best assignments found so far.
struct Pool {
  Index count = 0;
  Array2<Index> task;    // [kKept, N]
  Array1<double> value;  // [kKept]
};

// Enter the best assignment of an oscillation unless it is known or worse than all.
void enter(Pool& pool, const Oscillation& oscillation, Index n) {
  const double value = oscillation.value;
  const Index* const found = oscillation.found.data;
  Index worst = 0;
  for (Index p = 0; p < pool.count; ++p) {
    if (pool.value[p] == value && std::equal(found, found + n, pool.task.row(p).data)) return;
    if (pool.value[p] < pool.value[worst]) worst = p;
  }
  if (pool.count < kKept) {
    worst = pool.count++;
  } else if (value <= pool.value[worst]) {
    return;
  }
  pool.value[worst] = value;
  std::copy_n(found, n, pool.task.row(worst).data);
}

// Set the next start: a crossover of two of the pool, or while there are few, near one of them.
void cross(const Pool& pool, Oscillation& oscillation, Index n) {
  const Index count = pool.count;
  const auto pick = [&](Index choices) {
    return std::min(choices - 1, static_cast<Index>(static_cast<double>(choices) * draw(oscillation)));
  };
  const Index first = pick(count);
  const Index second = count > 1 ? (first + 1 + pick(count - 1)) % count : first;
  for (Index i = 0; i < n; ++i) {
    oscillation.task[i] = pool.task(draw(oscillation) < 0.5 ? first : second, i);
    if (count < kKept && draw(oscillation) < kScatter) {
      const auto choices = static_cast<double>(std::min(Index{3}, oscillation.choices[i]));
      oscillation.task[i] = oscillation.choice(i, static_cast<Index>(choices * draw(oscillation)));
    }
  }
}

// Oscillate from one crossover to the next, `rounds` times; leaves the best assignment of all in `found`.
void relink(Oscillation& oscillation, const Instance& instance, Pool& pool, Index rounds, const Array1<Index>& best,
            Stop& stop) {
  const Index n = instance.n;
  double value = oscillation.value;
  std::copy_n(oscillation.found.data, n, best.data);
  pool.count = 0;
  enter(pool, oscillation, n);
  for (Index round = 0; round < rounds && !stop.requested() && value < oscillation.goal; ++round) {
    cross(pool, oscillation, n);
    oscillation.value = -kInfinity;
    oscillate(oscillation, instance, kFurtherSteps, kFurtherSteps, stop);
    if (oscillation.value == -kInfinity) continue;
    enter(pool, oscillation, n);
    if (oscillation.value > value) {
      value = oscillation.value;
      std::copy_n(oscillation.found.data, n, best.data);
    }
  }
  oscillation.value = value;
  std::copy_n(best.data, n, oscillation.found.data);
}

// Scratch to enumerate in.
struct Enumeration {
  Array1<Index> task;     // [N] tried now
  Array1<double> before;  // [N] load of that task without the agent
  Array1<double> worth;   // [N] of the agents before
  Array1<double> hope;    // [N + 1] most that the agent and those after it can be worth
  Array1<double> load;    // [M]
};

// Look at all assignments, agent by agent, that may be better than `found`; leaves the best of all there.
void enumerate(Oscillation& oscillation, const Instance& instance, const Enumeration& tried) {
  const Index n = instance.n, m = instance.m;
  const double idle = instance.idle;
  tried.hope[n] = 0.0;
  for (Index i = n - 1; i >= 0; --i) {
    double most = idle;
    for (Index j = 0; j < m; ++j) most = std::max(most, instance.score(i, j));
    tried.hope[i] = tried.hope[i + 1] + most;
  }
  std::fill_n(tried.load.data, m, 0.0);
  Index i = 0;
  tried.task[0] = -1;
  tried.worth[0] = 0.0;
  while (i >= 0) {
    // Not a difference: no rounding error stays behind.
    if (tried.task[i] >= 0 && tried.task[i] < m) tried.load[tried.task[i]] = tried.before[i];
    const Index j = ++tried.task[i];
    if (j > m) {
      --i;
      continue;
    }
    const double value = tried.worth[i] + (j < m ? instance.score(i, j) : idle);
    if (j < m) tried.before[i] = tried.load[j];
    if (value + tried.hope[i + 1] <= oscillation.value + kOscillationTolerance * std::abs(oscillation.value)) continue;
    if (j < m && !fits(tried.load[j], instance.use(i, j), instance.capacity[j])) continue;
    if (i == n - 1) {
      oscillation.value = value;
      std::copy_n(tried.task.data, n, oscillation.found.data);
      continue;
    }
    if (j < m) tried.load[j] += instance.use(i, j);
    ++i;
    tried.task[i] = -1;
    tried.worth[i] = value;
  }
}

Index first_steps(Index n, Index m) {
  if (n * m == 0) return 0;
  const double pairs = static_cast<double>(n * std::min(m, kChoices)) * (1.0 + static_cast<double>(n) / static_cast<double>(m));
  return std::min(kSteps, static_cast<Index>(kPairs / pairs));
}

bool is_enumerable(Index n, Index m) { return n > 0 && std::pow(static_cast<double>(m) + 1.0, static_cast<double>(n)) <= kEnumerable; }

}  // namespace

void improve_batch(Index begin, Index end, const Problem& problem, const Settings& settings, const Output& out,
                   Stop& stop, const Array1<const Index>& rows) {
  const Index n = problem.scores.rows, m = problem.scores.columns;
  Arena arena;
  Instance instance = make_instance(arena, n, m, false);
  Oscillation oscillation = make_oscillation(arena, n, m);
  Pool pool{0, arena.make2<Index>(kKept, n), arena.make1<double>(kKept)};
  Plan plan = make_plan(arena, n, m);
  Ranking ranking = make_ranking(arena, n);
  const Array1<Index> position = arena.make1<Index>(m), best = arena.make1<Index>(n);
  const Array1<double> prices = arena.make1<double>(m);
  const Enumeration tried{best, ranking.keys, ranking.ties, arena.make1<double>(n + 1), plan.load};
  for (Index row = begin; row < end; ++row) {
    const Index b = rows[row];
    fill_instance(instance, problem, b, settings.assign_all);
    for (Index j = 0; j < instance.m; ++j) prices[j] = out.prices(b, instance.tasks[j]);
    start_oscillation(oscillation, instance, prices);
    oscillation.value = read_answer(oscillation.found, instance, out, b, position);
    for (Index i = 0; i < instance.n; ++i) {
      // An agent without a task begins at its choice of least loss, even beyond the capacity.
      const Index j = oscillation.found[i];
      oscillation.task[i] = j < instance.m ? j : oscillation.choice(i, 0);
    }
    oscillation.goal = integral_limit(instance, oscillation.bound, integrality_of(instance));
    oscillate(oscillation, instance, first_steps(instance.n, instance.m), kPatience, stop);
    if (settings.rounds > 0) relink(oscillation, instance, pool, settings.rounds, best, stop);
    double limit = oscillation.goal;
    if (settings.report_proof && is_enumerable(instance.n, instance.m)) {
      enumerate(oscillation, instance, tried);
      limit = oscillation.value;
    }
    write_improved(oscillation.found, limit, instance, settings, out, b, plan, prices, ranking, stop);
  }
}

}  // namespace muster
