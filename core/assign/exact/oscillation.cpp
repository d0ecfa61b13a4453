#include "oscillation.hpp"

#include <algorithm>
#include <cmath>

namespace muster {

namespace {

// Penalty of a unit beyond a capacity at first, as a share of its price, and how it changes with every step.
constexpr double kFirstPenalty = 0.5;
constexpr double kGrowth = 1.05, kDecay = 0.95;
// Steps for which a pair that was left is tabu: this many, and up to as many again.
constexpr Index kTenure = 2;
// Pairs compared between two checks of the stop, less than a millisecond.
constexpr Index kPairsBetweenStops = 100'000;

// Mean size of a score per unit of contribution.
double typical_score(const Instance& instance) {
  double worth = 0.0, amount = 0.0;
  for (Index i = 0; i < instance.n; ++i) {
    for (Index j = 0; j < instance.m; ++j) {
      if (instance.score(i, j) > -kInfinity) {
        worth += std::abs(instance.score(i, j));
        amount += instance.use(i, j);
      }
    }
  }
  return amount > 0.0 && worth > 0.0 ? worth / amount : 1.0;
}

// List the choices of agent i of least loss, in order.
void list_choices(const Oscillation& oscillation, Index i, Index m) {
  const Array2<double>& loss = oscillation.loss;
  const Array1<Index> choice = oscillation.choice.row(i);
  Index count = 0;
  for (Index j = 0; j <= m; ++j) {
    const double value = loss(j, i);
    if (value == kInfinity || (count == kChoices && value >= loss(choice[count - 1], i))) continue;
    Index slot = std::min(count, kChoices - 1);
    for (; slot > 0 && loss(choice[slot - 1], i) > value; --slot) choice[slot] = choice[slot - 1];
    choice[slot] = j;
    count = std::min(count + 1, kChoices);
  }
  oscillation.choices[i] = count;
}

// Agent i joins task j.
void join(const Oscillation& oscillation, Index i, Index j) {
  const Index first = oscillation.head[j];
  oscillation.task[i] = j;
  oscillation.load[j] += oscillation.use(j, i);
  oscillation.own_loss[i] = oscillation.loss(j, i);
  oscillation.own_use[i] = oscillation.use(j, i);
  oscillation.next[i] = first;
  oscillation.previous[i] = -1;
  if (first >= 0) oscillation.previous[first] = i;
  oscillation.head[j] = i;
}

// Agent i leaves its task.
void leave(const Oscillation& oscillation, Index i) {
  const Index j = oscillation.task[i], before = oscillation.previous[i], after = oscillation.next[i];
  oscillation.load[j] -= oscillation.use(j, i);
  if (before >= 0) {
    oscillation.next[before] = after;
  } else {
    oscillation.head[j] = after;
    if (after < 0) oscillation.load[j] = 0.0;
  }
  if (after >= 0) oscillation.previous[after] = before;
}

// Make loads and lists agree with `task`; reset penalties and tabu steps.
void reset(Oscillation& oscillation, Index n, Index m) {
  for (Index j = 0; j <= m; ++j) {
    oscillation.load[j] = 0.0;
    oscillation.penalty[j] = oscillation.first_penalty[j];
    oscillation.head[j] = -1;
    std::fill_n(oscillation.tabu.row(j).data, n, 0);
  }
  for (Index i = 0; i < n; ++i) join(oscillation, i, oscillation.task[i]);
  oscillation.steps = 0;
  oscillation.work = kPairsBetweenStops;
}

// Whether to stop; checks only after enough work.
bool should_stop(Oscillation& oscillation, Stop& stop) {
  if (oscillation.work < kPairsBetweenStops) return false;
  if (stop.requested()) return true;
  oscillation.work = 0;
  return false;
}

// Keep the present assignment if it is feasible and better than all before; whether it is.
bool keep_if_better(Oscillation& oscillation, const Instance& instance) {
  const Index n = instance.n, m = instance.m;
  for (Index j = 0; j < m; ++j) {
    if (oscillation.load[j] > oscillation.capacity[j]) return false;
  }
  double value = 0.0;
  for (Index i = 0; i < n; ++i) {
    const Index j = oscillation.task[i];
    value += j < m ? instance.score(i, j) : instance.idle;
  }
  if (oscillation.value > -kInfinity &&
      value <= oscillation.value + kOscillationTolerance * std::abs(oscillation.value)) {
    return false;
  }
  oscillation.value = value;
  std::copy_n(oscillation.task.data, n, oscillation.found.data);
  return true;
}

// A move of an agent to a task, or a swap with an agent that comes back from there (`partner`, or -1).
struct Exchange {
  Index agent = -1;
  Index task = -1;
  Index partner = -1;
};

// The best move or swap that is not tabu; none if stopped before the end.
Exchange best_exchange(Oscillation& oscillation, Index n, Index m, Stop& stop) {
  const double* const load = oscillation.load.data;
  const double* const capacity = oscillation.capacity.data;
  const double* const price = oscillation.price.data;
  const double* const penalty = oscillation.penalty.data;
  const double* const own_loss = oscillation.own_loss.data;
  const double* const own_use = oscillation.own_use.data;
  const Index* const head = oscillation.head.data;
  const Index* const next = oscillation.next.data;
  double* const __restrict cost = oscillation.cost.data;
  const Index stride = oscillation.loss.columns;
  // Cost of a load on a task: capacity that is paid for and not used, or the penalty beyond the capacity.
  const auto cost_of = [&](Index j, double amount) {
    const double left = capacity[j] - amount;
    return left >= 0.0 ? price[j] * left : -penalty[j] * left;
  };
  for (Index j = 0; j <= m; ++j) cost[j] = cost_of(j, load[j]);
  const auto now = static_cast<std::int32_t>(oscillation.steps);
  double best = kInfinity;
  Exchange exchange;
  for (Index i = 0; i < n; ++i) {
    if (should_stop(oscillation, stop)) return {};
    const Index a = oscillation.task[i];
    const double load_a = load[a] - own_use[i], left_a = cost_of(a, load_a);
    const double* const loss_a = oscillation.loss.data + a * stride;
    const double* const use_a = oscillation.use.data + a * stride;
    const std::int32_t* const tabu_a = oscillation.tabu.data + a * stride;
    const Index* const choice = oscillation.choice.data + i * kChoices;
    const Index choices = oscillation.choices[i];
    Index work = choices;
    for (Index c = 0; c < choices; ++c) {
      const Index j = choice[c];
      if (j == a || oscillation.tabu(j, i) > now) continue;
      const double change = oscillation.loss(j, i) - own_loss[i] - cost[a] - cost[j];
      if (change >= best) continue;
      const double load_j = load[j] + oscillation.use(j, i);
      const double moved = change + left_a + cost_of(j, load_j);
      if (moved < best) {
        best = moved;
        exchange = {i, j, -1};
      }
      for (Index k = head[j]; k >= 0; k = next[k]) {
        ++work;
        const double base = change + loss_a[k] - own_loss[k];
        if (base < best && tabu_a[k] <= now) {
          const double swapped = base + cost_of(a, load_a + use_a[k]) + cost_of(j, load_j - own_use[k]);
          if (swapped < best) {
            best = swapped;
            exchange = {i, j, k};
          }
        }
      }
    }
    oscillation.work += work;
  }
  return exchange;
}

// Make the exchange; the pairs left become tabu for some steps.
void take(Oscillation& oscillation, const Exchange& exchange) {
  const auto [i, j, k] = exchange;
  const auto tenure = static_cast<Index>((kTenure + 1) * draw(oscillation));
  const auto until = static_cast<std::int32_t>(oscillation.steps + kTenure + tenure);
  const Index a = oscillation.task[i];
  leave(oscillation, i);
  join(oscillation, i, j);
  oscillation.tabu(a, i) = until;
  if (k >= 0) {
    leave(oscillation, k);
    join(oscillation, k, a);
    oscillation.tabu(j, k) = until;
  }
}

// Let the penalties of exceeded capacities grow, or all shrink if there are none; whether there are none.
bool update_penalties(const Oscillation& oscillation, Index m) {
  bool feasible = true;
  for (Index j = 0; j < m; ++j) {
    if (oscillation.load[j] > oscillation.capacity[j]) {
      oscillation.penalty[j] *= kGrowth;
      feasible = false;
    }
  }
  if (feasible) {
    for (Index j = 0; j < m; ++j) oscillation.penalty[j] *= kDecay;
  }
  return feasible;
}

}  // namespace

Oscillation make_oscillation(Arena& arena, Index n, Index m) {
  Oscillation oscillation;
  oscillation.loss = arena.make2<double>(m + 1, n);
  oscillation.use = arena.make2<double>(m + 1, n);
  oscillation.capacity = arena.make1<double>(m + 1);
  oscillation.price = arena.make1<double>(m + 1);
  oscillation.penalty = arena.make1<double>(m + 1);
  oscillation.first_penalty = arena.make1<double>(m + 1);
  oscillation.cost = arena.make1<double>(m + 1);
  oscillation.choice = arena.make2<Index>(n, kChoices);
  oscillation.choices = arena.make1<Index>(n);
  oscillation.task = arena.make1<Index>(n);
  oscillation.own_loss = arena.make1<double>(n);
  oscillation.own_use = arena.make1<double>(n);
  oscillation.load = arena.make1<double>(m + 1);
  oscillation.head = arena.make1<Index>(m + 1);
  oscillation.next = arena.make1<Index>(n);
  oscillation.previous = arena.make1<Index>(n);
  oscillation.tabu = arena.make2<std::int32_t>(m + 1, n);
  oscillation.found = arena.make1<Index>(n);
  return oscillation;
}

void start_oscillation(Oscillation& oscillation, const Instance& instance, const Array1<double>& prices) {
  const Index n = instance.n, m = instance.m;
  double bound = 0.0, mean = 0.0;
  Index priced = 0;
  for (Index j = 0; j < m; ++j) {
    double total = 0.0;
    for (Index i = 0; i < n; ++i) total += instance.use(i, j);
    oscillation.capacity[j] = std::min(instance.capacity[j], 2.0 * total + 1.0) * (1.0 + kCapacityTolerance);
    oscillation.price[j] = prices[j];
    if (prices[j] > 0.0) {
      bound += prices[j] * instance.capacity[j];
      mean += prices[j];
      ++priced;
    }
  }
  oscillation.capacity[m] = static_cast<double>(n) + 1.0;
  oscillation.price[m] = 0.0;
  for (Index i = 0; i < n; ++i) {
    double best = instance.idle;
    for (Index j = 0; j < m; ++j) {
      const double use = instance.use(i, j), value = instance.score(i, j) - use * prices[j];
      best = std::max(best, value);
      oscillation.use(j, i) = use;
      const bool possible = use <= oscillation.capacity[j] && value > -kInfinity;
      oscillation.loss(j, i) = possible ? value : -kInfinity;
    }
    oscillation.use(m, i) = 0.0;
    oscillation.loss(m, i) = instance.idle;
    for (Index j = 0; j <= m; ++j) oscillation.loss(j, i) = best - oscillation.loss(j, i);
    bound += best;
    list_choices(oscillation, i, m);
  }
  // A capacity without a price is exceeded at the others' mean.
  mean = priced > 0 ? mean / static_cast<double>(priced) : typical_score(instance);
  for (Index j = 0; j <= m; ++j) {
    oscillation.first_penalty[j] = kFirstPenalty * (oscillation.price[j] > 0.0 ? oscillation.price[j] : mean);
  }
  oscillation.bound = oscillation.goal = bound;
  oscillation.value = -kInfinity;
  oscillation.steps = 0;
  oscillation.random = 1;
}

void oscillate(Oscillation& oscillation, const Instance& instance, Index steps, Index patience, Stop& stop) {
  const Index n = instance.n, m = instance.m;
  reset(oscillation, n, m);
  keep_if_better(oscillation, instance);
  const double least = kOscillationTolerance * std::max(std::abs(oscillation.bound), std::abs(oscillation.goal));
  Index last = 0;
  while (oscillation.steps < steps && oscillation.steps - last <= patience &&
         oscillation.value < oscillation.goal - least && !should_stop(oscillation, stop)) {
    ++oscillation.steps;
    const Exchange exchange = best_exchange(oscillation, n, m, stop);
    if (exchange.agent < 0) continue;
    take(oscillation, exchange);
    if (update_penalties(oscillation, m) && keep_if_better(oscillation, instance)) last = oscillation.steps;
  }
}

}  // namespace muster
