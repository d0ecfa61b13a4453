#include "instance.hpp"

#include <cmath>

namespace muster {

namespace {

// Contributions mu_ij count as a_i d_j when they agree to this relative accuracy.
constexpr double kSplitTolerance = 1e-13;

// Properties of an instance's capacities.
struct Capacities {
  bool sound = true;
  bool closed = false;     // some task has none
  bool unlimited = false;  // some task has no limit
};

// List the living tasks with their capacities.
Capacities fill_tasks(Instance& instance, const Problem& problem, Index b) {
  Capacities found;
  instance.m = 0;
  for (Index j = 0; j < problem.task_alive.columns; ++j) {
    if (!problem.task_alive(b, j)) continue;
    const double capacity = problem.capacities(b, j);
    instance.tasks[instance.m] = j;
    instance.capacity[instance.m++] = capacity;
    found.closed |= capacity == 0.0;
    found.unlimited |= capacity == kInfinity;
    found.sound &= is_valid_amount(capacity) || capacity == kInfinity;
  }
  return found;
}

// target[k] = source[columns[k]] for k < m
void gather(double* target, const double* source, const Array1<Index>& columns, Index m) {
  if (m > 0 && columns[m - 1] == m - 1) {
    std::copy_n(source, m, target);
  } else {
    for (Index k = 0; k < m; ++k) target[k] = source[columns[k]];
  }
}

// Copy the scores, -infinity for what is not allowed; the least finite and the largest one, NaN if there is a NaN.
Extent fill_scores(Instance& instance, const Problem& problem, Index b) {
  const Index n = instance.n, m = instance.m;
  double low = kInfinity, high = -kInfinity;
  bool sound = true;
  for (Index i = 0; i < n; ++i) {
    double* const row = instance.score.row(i).data;
    gather(row, problem.scores.row(b, instance.agents[i]).data, instance.tasks, m);
    if (problem.allowed.layers > 0) {
      const bool* const allowed = problem.allowed.row(b, instance.agents[i]).data;
      for (Index j = 0; j < m; ++j) {
        if (!allowed[instance.tasks[j]]) row[j] = -kInfinity;
      }
    }
    const Extent own = extent(row, m);
    sound &= own.low == own.low;
    low = std::min(low, own.low);
    high = std::max(high, own.high);
  }
  if (low == -kInfinity) {
    low = kInfinity;
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j < m; ++j) {
        if (instance.score(i, j) > -kInfinity) low = std::min(low, instance.score(i, j));
      }
    }
  }
  return {low, sound ? high : kNaN};
}

// Copy the task scores; the largest size of one, NaN if there is a NaN.
double fill_task_scores(Instance& instance, const Problem& problem, Index b) {
  const Index m = instance.m;
  double steepest = 0.0;
  bool sound = true;
  for (Index j = 0; j < m; ++j) {
    double* const row = instance.task_score.row(j).data;
    gather(row, problem.task_scores.row(b, instance.tasks[j]).data, instance.tasks, m);
    for (Index k = 0; k < m; ++k) {
      const double size = std::abs(row[k]);
      sound &= size <= kLargestNumber;
      steepest = std::max(steepest, size);
    }
  }
  for (Index j = 0; j < m; ++j) {
    for (Index k = 0; k < m; ++k) instance.pair_score(j, k) = instance.task_score(j, k) + instance.task_score(k, j);
  }
  return sound ? steepest : kNaN;
}

// Copy the contributions; the least and the largest one, NaN if there is a NaN.
//
// A pair that is not allowed gets the contribution of the agent's first allowed one, so that contributions which depend
// on the agent alone still do.
Extent fill_uses(Instance& instance, const Problem& problem, Index b) {
  const Index n = instance.n, m = instance.m;
  double smallest = kInfinity, largest = 0.0;
  bool sound = true;
  for (Index i = 0; i < n; ++i) {
    double* const row = instance.use.row(i).data;
    gather(row, problem.contributions.row(b, instance.agents[i]).data, instance.tasks, m);
    if (problem.allowed.layers > 0) {
      const bool* const allowed = problem.allowed.row(b, instance.agents[i]).data;
      double usual = 1.0;
      for (Index j = 0; j < m; ++j) {
        if (allowed[instance.tasks[j]]) {
          usual = row[j];
          break;
        }
      }
      for (Index j = 0; j < m; ++j) {
        if (!allowed[instance.tasks[j]]) row[j] = usual;
      }
    }
    const Extent own = extent(row, m);
    sound &= own.low == own.low;
    smallest = std::min(smallest, own.low);
    largest = std::max(largest, own.high);
  }
  return {smallest, sound ? largest : kNaN};
}

// Let task scores act on loads. Where a task gets the same from every agent, loads are multiples of numbers of agents,
// and g takes the factors.
void weigh_task_scores(Instance& instance) {
  const Index n = instance.n, m = instance.m;
  for (Index i = 1; i < n; ++i) {
    for (Index j = 0; j < m; ++j) {
      if (instance.use(i, j) != instance.use(0, j)) {
        instance.pair_terms = PairTerms::by_load;
        return;
      }
    }
  }
  if (n == 0) return;
  for (Index j = 0; j < m; ++j) {
    for (Index k = 0; k < m; ++k) {
      instance.task_score(j, k) *= instance.use(0, j) * instance.use(0, k);
      instance.pair_score(j, k) *= instance.use(0, j) * instance.use(0, k);
    }
  }
}

// Derived arrays when every contribution is 1; `closed` if some task has no capacity.
void fill_plain(Instance& instance, bool closed) {
  const Index n = instance.n, m = instance.m;
  for (Index j = 0; j < m; ++j) {
    instance.price_scale[j] = 1.0;
    instance.flow_capacity[j] = std::min(instance.capacity[j], static_cast<double>(n) + 1.0);
  }
  for (Index i = 0; i < n; ++i) {
    instance.usable[i] = 1;
    instance.supply[i] = 1.0;
    instance.inverse_supply[i] = 1.0;
    std::fill_n(instance.use.row(i).data, m, 1.0);
    if (closed) {
      for (Index j = 0; j < m; ++j) {
        instance.arc_score(i, j) = instance.capacity[j] > 0.0 ? instance.score(i, j) : -kInfinity;
      }
    }
  }
  instance.restricted = closed;
}

// Whether contributions are a_i d_j; then sets supply a_i, its inverse and price_scale 1/d_j (0 for d_j = 0).
bool split(Instance& instance, double largest) {
  const Index n = instance.n, m = instance.m;
  if (largest == 0.0) {
    std::fill_n(instance.supply.data, n, 0.0);
    std::fill_n(instance.inverse_supply.data, n, 0.0);
    std::fill_n(instance.price_scale.data, m, 0.0);
    return true;
  }
  const Array2<double>& use = instance.use;
  double* const price_scale = instance.price_scale.data;
  Index pivot_i = n - 1, pivot_j = 0;
  while (use(pivot_i, pivot_j) != largest) {
    if (++pivot_j == m) {
      pivot_j = 0;
      --pivot_i;
    }
  }
  for (Index j = 0; j < m; ++j) price_scale[j] = use(pivot_i, j) / largest;
  for (Index i = 0; i < n; ++i) {
    const double own = use(i, pivot_j);
    const double* const row = use.row(i).data;
    instance.supply[i] = own;
    // Counted, not and-ed: so several are compared side by side.
    Index apart = 0;
    for (Index j = 0; j < m; ++j) {
      const double product = own * price_scale[j];
      apart += !(std::abs(row[j] - product) <= kSplitTolerance * product);
    }
    if (apart > 0) return false;
    instance.inverse_supply[i] = own > 0.0 ? 1.0 / own : 0.0;
  }
  for (Index j = 0; j < m; ++j) price_scale[j] = price_scale[j] > 0.0 ? 1.0 / price_scale[j] : 0.0;
  return true;
}

// Derived arrays for contributions of any kind: find out which, and which pairs take capacity at all.
//
// `special` if some contribution is 0 or some capacity is 0 or unlimited.
void fill_contributions(Instance& instance, double largest, bool special) {
  const Index n = instance.n, m = instance.m;
  const Array1<double>& capacity = instance.capacity;
  const Array1<double>& flow_capacity = instance.flow_capacity;
  const bool transport = split(instance, largest);
  instance.kind = transport ? Kind::transport : Kind::generalised;
  if (transport && !special) {
    for (Index i = 0; i < n; ++i) instance.usable[i] = 1;
    for (Index j = 0; j < m; ++j) flow_capacity[j] = capacity[j] * instance.price_scale[j];
    return;
  }
  if (!transport) {
    std::fill_n(instance.supply.data, n, 1.0);
    std::fill_n(instance.inverse_supply.data, n, 1.0);
  }
  std::fill_n(flow_capacity.data, m, 0.0);
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < m; ++j) flow_capacity[j] += instance.use(i, j);
  }
  for (Index j = 0; j < m; ++j) {
    // No more than twice what all agents together could use: the same problem, without huge ratios.
    const double usable = std::min(capacity[j], 2.0 * flow_capacity[j]);
    if (transport) {
      flow_capacity[j] = usable * instance.price_scale[j];
    } else {
      flow_capacity[j] = usable > 0.0 ? 1.0 : 0.0;
      instance.price_scale[j] = usable > 0.0 ? 1.0 / usable : 0.0;
    }
  }
  for (Index i = 0; i < n; ++i) {
    Index usable = 0;
    for (Index j = 0; j < m; ++j) {
      const double use = instance.use(i, j);
      const bool takes = use != 0.0 && capacity[j] > 0.0;
      instance.has_free_pairs |= use == 0.0;
      usable |= takes;
      instance.arc_score(i, j) = takes ? instance.score(i, j) : -kInfinity;
      if (!transport) instance.scaled_use(i, j) = takes ? use * instance.price_scale[j] : 0.0;
    }
    instance.usable[i] = usable;
    if (usable == 0) instance.supply[i] = 0.0;
  }
  instance.restricted = true;
}

}  // namespace

Extent extent(const double* values, Index count) {
  // NaN compares false with itself; maxima and minima alone would let it pass.
  Index nans = 0;
  for (Index j = 0; j < count; ++j) nans += values[j] != values[j];
  if (nans > 0) return {kNaN, kNaN};
  struct Negative {
    const double* values;
    Lanes operator()(Index j, Lanes) const { return Lanes::fill(0.0) - Lanes::load(values + j); }
    double operator()(Index j, double) const { return 0.0 - values[j]; }
  };
  return {-largest_of(count, Negative{values}), largest(values, count)};
}

double penalty_of(double low, double high, double steepest, Index n) {
  // More than any change of the other assignments could be worth.
  const double count = static_cast<double>(n);
  return std::min(0.0, low) -
         (count + 1.0) * (high - low + 2.0 * count * steepest + std::max(std::abs(low), std::abs(high)));
}

Instance make_instance(Arena& arena, Index n, Index m, bool with_task_scores) {
  const Index k = with_task_scores ? m : 0;
  Instance instance;
  instance.agents = arena.make1<Index>(n);
  instance.tasks = arena.make1<Index>(m);
  instance.score = arena.make2<double>(n, m);
  instance.arc_score = arena.make2<double>(n, m);
  instance.use = arena.make2<double>(n, m);
  instance.scaled_use = arena.make2<double>(n, m);
  instance.capacity = arena.make1<double>(m);
  instance.supply = arena.make1<double>(n);
  instance.inverse_supply = arena.make1<double>(n);
  instance.flow_capacity = arena.make1<double>(m);
  instance.price_scale = arena.make1<double>(m);
  instance.usable = arena.make1<Index>(n);
  instance.task_score = arena.zeros2<double>(k, k);
  instance.pair_score = arena.zeros2<double>(k, k);
  return instance;
}

bool fill_instance(Instance& instance, const Problem& problem, Index b, bool assign_all) {
  instance.n = 0;
  for (Index i = 0; i < problem.agent_alive.columns; ++i) {
    if (problem.agent_alive(b, i)) instance.agents[instance.n++] = i;
  }
  const Capacities capacities = fill_tasks(instance, problem, b);
  const Index n = instance.n, m = instance.m;
  instance.kind = Kind::transport;
  instance.has_free_pairs = instance.restricted = false;
  instance.pair_terms = PairTerms::none;
  const auto [low, high] = fill_scores(instance, problem, b);
  // -infinity forbids a pair; NaN fails every comparison.
  bool sound = capacities.sound && high <= kLargestNumber && low >= -kLargestNumber;
  double steepest = 0.0;
  if (problem.task_scores.layers > 0) {
    steepest = fill_task_scores(instance, problem, b);
    sound &= steepest <= kLargestNumber;
    instance.pair_terms = PairTerms::by_count;
  }
  const bool plain = problem.contributions.layers == 0;
  const Extent uses = plain ? Extent{1.0, 1.0} : fill_uses(instance, problem, b);
  sound &= uses.high <= kLargestNumber;
  if (problem.by_load && instance.pair_terms != PairTerms::none && !plain) {
    weigh_task_scores(instance);
    // The most that a pair of agents then earns.
    steepest = steepest * uses.high * uses.high;
    sound &= steepest <= kLargestNumber;
  }
  instance.idle = 0.0;
  if (assign_all && high > -kInfinity) instance.idle = penalty_of(low, high, steepest, n);
  if (plain) {
    fill_plain(instance, capacities.closed);
    return sound;
  }
  if (sound && uses.low < kSmallestAmount) {
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j < m; ++j) sound &= is_valid_amount(instance.use(i, j));
    }
  }
  if (sound) fill_contributions(instance, uses.high, capacities.closed || capacities.unlimited || uses.low == 0.0);
  return sound;
}

double score_scale(const Instance& instance) {
  const Index n = instance.n, m = instance.m;
  double largest = 0.0, heaviest = 1.0;
  if (instance.pair_terms == PairTerms::by_load) {
    heaviest = 0.0;
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j < m; ++j) heaviest = larger(instance.use(i, j), heaviest);
    }
  }
  for (Index i = 0; i < n; ++i) {
    const double* const row = instance.score.row(i).data;
    for (Index j = 0; j < m; ++j) largest = row[j] > -kInfinity ? larger(std::abs(row[j]), largest) : largest;
  }
  if (instance.pair_terms != PairTerms::none) {
    for (Index j = 0; j < m; ++j) {
      const double* const row = instance.task_score.row(j).data;
      for (Index k = 0; k < m; ++k) largest = larger(std::abs(row[k]) * heaviest * heaviest, largest);
    }
  }
  return largest;
}

}  // namespace muster
