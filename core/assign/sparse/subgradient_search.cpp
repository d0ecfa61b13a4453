#include "subgradient_search.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "../instance.hpp"

namespace muster {

namespace {

constexpr Index kSteps = 200;
// Steps without a better bound before they are made shorter, and by how much.
constexpr Index kPatience = 8;
constexpr double kShorter = 0.6;
constexpr Index kSweeps = 50;
// Gains below this share of the largest score count as 0.
constexpr double kGainTolerance = 1e-10;
// Below this size quicksort leaves the rest to insertion.
constexpr Index kInsertionSort = 15;
// Agents between two checks of the stop.
constexpr Index kAgentsBetweenStops = 16;

// An assignment with the contributions that each task gets.
struct Loaded {
  Matching matching;
  Array1<double> load;  // [M]
};

struct Option {
  double value;
  Index pair;
};

// The dual bound of the prices; `load` [M] gets the loads if every agent takes its best task.
double bound_of(const Pairs& pairs, const Array1<double>& price, const Array1<double>& load) {
  std::fill(load.begin(), load.end(), 0.0);
  double total = 0.0;
  for (Index j = 0; j < pairs.m(); ++j) {
    if (price[j] > 0.0) total += pairs.capacity[j] * price[j];
  }
  for (Index i = 0; i < pairs.n(); ++i) {
    Option best{pairs.idle, kNone};
    for (Index pair = pairs.first[i]; pair < pairs.first[i + 1]; ++pair) {
      const double net = pairs.score[pair] - pairs.use[pair] * price[pairs.task[pair]];
      if (net > best.value) best = {net, pair};
    }
    total += best.value;
    if (best.pair != kNone) load[pairs.task[best.pair]] += pairs.use[best.pair];
  }
  return total;
}

// Prices with a small bound, left in `best` [M]: subgradient steps towards the value `target`.
void lower_prices(Arena& arena, const Pairs& pairs, const Array1<double>& best, double target, Stop& stop) {
  const Index m = pairs.m();
  const Array1<double> price = arena.zeros1<double>(m), load = arena.make1<double>(m);
  double least = kInfinity, share = 1.0;
  Index stuck = 0;
  for (Index step = 0; step < kSteps; ++step) {
    double value = bound_of(pairs, price, load);
    if (value < least) {
      if (value < least - 1e-6 * std::abs(least)) stuck = 0;
      least = value;
      std::copy(price.begin(), price.end(), best.data);
    }
    if (++stuck > kPatience) {
      stuck = 0;
      share *= kShorter;
      std::copy(best.begin(), best.end(), price.data);
      value = bound_of(pairs, price, load);
    }
    double size = 0.0;
    for (Index j = 0; j < m; ++j) {
      // A task that is not full at price 0 has no subgradient.
      const double over = price[j] > 0.0 || load[j] > pairs.capacity[j] ? load[j] - pairs.capacity[j] : 0.0;
      load[j] = over;
      size += over * over;
    }
    if (size == 0.0 || stop.requested()) break;
    const double length = share * std::max(value - target, 1e-9 * std::abs(value)) / size;
    for (Index j = 0; j < m; ++j) price[j] = std::max(0.0, price[j] + length * load[j]);
  }
}

double value_of(const Loaded& plan, const Pairs& pairs, Index i) {
  const Index pair = plan.matching.pair[i];
  return pair != kNone ? pairs.score[pair] : pairs.idle;
}

double total_value(const Loaded& plan, const Pairs& pairs) {
  double total = 0.0;
  for (Index i = 0; i < pairs.n(); ++i) total += value_of(plan, pairs, i);
  return total;
}

// Move agent i to a pair, or to none.
void move_to(const Loaded& plan, const Pairs& pairs, Index i, Index pair) {
  const Index old = plan.matching.pair[i];
  if (old != kNone) {
    const Index j = pairs.task[old];
    leave(plan.matching, pairs, i);
    plan.load[j] -= pairs.use[old];
    // So that rounding errors do not build up.
    if (plan.matching.count[j] == 0) plan.load[j] = 0.0;
  }
  if (pair != kNone) {
    join(plan.matching, pairs, i, pair);
    plan.load[pairs.task[pair]] += pairs.use[pair];
  }
}

// The best pair of agent i that fits, at these prices; null for no prices.
Option best_pair(const Loaded& plan, const Pairs& pairs, const double* price, Index i) {
  Option best{pairs.idle, kNone};
  for (Index pair = pairs.first[i]; pair < pairs.first[i + 1]; ++pair) {
    const Index j = pairs.task[pair];
    const double net = price != nullptr ? pairs.score[pair] - pairs.use[pair] * price[j] : pairs.score[pair];
    if (net > best.value && fits(plan.load[j], pairs.use[pair], pairs.capacity[j])) best = {net, pair};
  }
  return best;
}

// The best pair that fits for agent k, which leaves task `but`, while `freed` becomes free on task `left`.
Option best_other_pair(const Loaded& plan, const Pairs& pairs, Index k, Index but, Index left, double freed) {
  Option best{pairs.idle, kNone};
  for (Index pair = pairs.first[k]; pair < pairs.first[k + 1]; ++pair) {
    const Index j = pairs.task[pair];
    if (!(pairs.score[pair] > best.value) || j == but) continue;
    const double load = plan.load[j] - (j == left ? freed : 0.0);
    if (fits(load, pairs.use[pair], pairs.capacity[j])) best = {pairs.score[pair], pair};
  }
  return best;
}

// Let agent i take the slot of another, which goes elsewhere, if that is worth more; whether it did. `best_value` [N] is
// what each agent is worth at the most.
bool eject(const Loaded& plan, const Pairs& pairs, const Array1<double>& best_value, Index i, double least) {
  const Matching& matching = plan.matching;
  const Index own = matching.pair[i];
  const double value = value_of(plan, pairs, i);
  const Index left = own != kNone ? pairs.task[own] : kNone;
  const double freed = own != kNone ? pairs.use[own] : 0.0;
  double best = least;
  Index into = kNone, ejected = kNone, target = kNone;
  for (Index pair = pairs.first[i]; pair < pairs.first[i + 1]; ++pair) {
    const Index j = pairs.task[pair];
    const double gain = pairs.score[pair] - value;
    // The ejected agent loses something, but for ties.
    if (j == left || gain <= best) continue;
    for (Index k = matching.head[j]; k != kNone; k = matching.next[k]) {
      const Index theirs = matching.pair[k];
      if (!(gain + best_value[k] - pairs.score[theirs] > best)) continue;
      if (!(plan.load[j] - pairs.use[theirs] + pairs.use[pair] <= pairs.capacity[j] * (1.0 + kCapacityTolerance))) continue;
      const Option other = best_other_pair(plan, pairs, k, j, left, freed);
      const double change = gain + other.value - pairs.score[theirs];
      if (change > best) best = change, into = pair, ejected = k, target = other.pair;
    }
  }
  if (into == kNone) return false;
  move_to(plan, pairs, ejected, kNone);
  move_to(plan, pairs, i, into);
  move_to(plan, pairs, ejected, target);
  return true;
}

// Moves and ejections until neither helps.
void improve(const Loaded& plan, const Pairs& pairs, const Array1<double>& best_value, double least, Stop& stop) {
  for (Index sweep = 0; sweep < kSweeps; ++sweep) {
    bool moved = false;
    for (Index i = 0; i < pairs.n(); ++i) {
      if (i % kAgentsBetweenStops == 0 && stop.requested()) return;
      const Option found = best_pair(plan, pairs, nullptr, i);
      if (found.value > value_of(plan, pairs, i) + least) {
        move_to(plan, pairs, i, found.pair);
        moved = true;
      } else if (eject(plan, pairs, best_value, i, least)) {
        moved = true;
      }
    }
    if (!moved) return;
  }
}

// Minus each agent's regret at these prices: the loss if it did not get its best task.
void fill_regrets(const Pairs& pairs, const Array1<double>& price, const Array1<double>& regret) {
  for (Index i = 0; i < pairs.n(); ++i) {
    double first = pairs.idle, second = pairs.idle;
    for (Index pair = pairs.first[i]; pair < pairs.first[i + 1]; ++pair) {
      const double net = pairs.score[pair] - pairs.use[pair] * price[pairs.task[pair]];
      if (net > first) {
        second = first;
        first = net;
      } else if (net > second) {
        second = net;
      }
    }
    regret[i] = second - first;
  }
}

// Partition order[low..high] around the median of three keys; returns where that is then.
Index partition(const double* key, Index* order, Index low, Index high) {
  const auto sort_two = [&](Index a, Index b) {
    if (key[order[b]] < key[order[a]]) std::swap(order[a], order[b]);
  };
  const Index middle = (low + high) / 2;
  sort_two(low, middle);
  sort_two(middle, high);
  sort_two(low, middle);
  const double pivot = key[order[middle]];
  std::swap(order[high], order[middle]);
  Index i = low, j = high - 1;
  while (true) {
    while (i < high && key[order[i]] < pivot) ++i;
    while (j >= low && pivot < key[order[j]]) --j;
    if (i >= j) break;
    std::swap(order[i++], order[j--]);
  }
  std::swap(order[i], order[high]);
  return i;
}

// Sort 0..n-1 by increasing key into `order`. Quicksort written out: which of equal keys comes first is part of the
// answer, and no library promises it.
void sort_by_key(const double* key, const Array1<Index>& order) {
  for (Index k = 0; k < order.size; ++k) order[k] = k;
  std::vector<std::pair<Index, Index>> parts{{0, order.size - 1}};
  while (!parts.empty()) {
    auto [low, high] = parts.back();
    parts.pop_back();
    while (high - low >= kInsertionSort) {
      const Index i = partition(key, order.data, low, high);
      // The larger part later, so that few are waiting.
      if (high - i > i - low) {
        parts.emplace_back(i + 1, high);
        high = i - 1;
      } else {
        parts.emplace_back(low, i - 1);
        low = i + 1;
      }
    }
    for (Index i = low + 1; i <= high; ++i) {
      const Index moving = order[i];
      Index j = i;
      for (; j > low && key[moving] < key[order[j - 1]]; --j) order[j] = order[j - 1];
      order[j] = moving;
    }
  }
}

}  // namespace

void search_assignment(const Pairs& pairs, const Array1<const Index>& start, const Array1<Index>& chosen,
                       const Array1<double>& price, Stop& stop) {
  const Index n = pairs.n(), m = pairs.m();
  Arena arena;
  const Loaded rounded{make_matching(arena, pairs), arena.zeros1<double>(m)};
  const Loaded searched{make_matching(arena, pairs), arena.zeros1<double>(m)};
  const Array1<double> regret = arena.make1<double>(n), best_value = arena.make1<double>(n);
  double scale = 0.0;
  for (Index i = 0; i < n; ++i) {
    best_value[i] = pairs.idle;
    for (Index pair = pairs.first[i]; pair < pairs.first[i + 1]; ++pair) {
      best_value[i] = std::max(best_value[i], pairs.score[pair]);
      scale = std::max(scale, std::abs(pairs.score[pair]));
    }
  }
  const double least = kGainTolerance * scale;
  for (Index i = 0; i < n; ++i) move_to(searched, pairs, i, start[i]);
  improve(searched, pairs, best_value, least, stop);
  const double searched_value = total_value(searched, pairs);
  lower_prices(arena, pairs, price, searched_value, stop);
  fill_regrets(pairs, price, regret);
  const Array1<Index> order = arena.make1<Index>(n);
  sort_by_key(regret.data, order);
  for (const Index i : order) move_to(rounded, pairs, i, best_pair(rounded, pairs, price.data, i).pair);
  improve(rounded, pairs, best_value, least, stop);
  const Loaded& better = searched_value >= total_value(rounded, pairs) ? searched : rounded;
  std::copy(better.matching.pair.begin(), better.matching.pair.end(), chosen.data);
}

}  // namespace muster
