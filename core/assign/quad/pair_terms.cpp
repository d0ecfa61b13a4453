#include "pair_terms.hpp"

#include <algorithm>
#include <cmath>

namespace muster {

namespace {

// The diagonal that is always added is this share of the largest entry: rounding errors are far below.
constexpr double kLeastShift = 1e-10;
// Slack of limits that are sums or ratios of rounded numbers.
constexpr double kRoundingSlack = 1.0 + 1e-9;

bool can_take(const Instance& instance, Index i, Index j) {
  return instance.score(i, j) > -kInfinity && fits(0.0, instance.use(i, j), instance.capacity[j]);
}

// Most that an agent on task j earns of g_jj by itself, per unit of its weight.
double own_term(const TaskLimits& limits, const Instance& instance, Index j) {
  const double own = instance.task_score(j, j);
  return own * (own > 0.0 ? limits.heaviest[j] : limits.lightest[j]);
}

}  // namespace

TaskLimits make_task_limits(Arena& arena, Index m) {
  TaskLimits limits;
  limits.agents = arena.zeros1<Index>(m);
  limits.heaviest = arena.zeros1<double>(m);
  limits.lightest = arena.zeros1<double>(m);
  limits.mass = arena.zeros1<double>(m);
  limits.use = arena.zeros1<double>(m);
  limits.least = arena.zeros1<double>(m);
  limits.root = arena.zeros1<double>(m);
  return limits;
}

void fill_task_limits(TaskLimits& limits, const Instance& instance) {
  const Index n = instance.n, m = instance.m;
  const bool by_load = instance.pair_terms == PairTerms::by_load;
  const Array1<Index>& agents = limits.agents;
  const Array1<double>&least = limits.least, &total = limits.use, &heaviest = limits.heaviest;
  std::fill_n(agents.data, m, 0);
  std::fill_n(least.data, m, kInfinity);
  std::fill_n(total.data, m, 0.0);
  std::fill_n(heaviest.data, m, 0.0);
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < m; ++j) {
      if (can_take(instance, i, j)) {
        const double use = instance.use(i, j);
        agents[j] += 1;
        total[j] += use;
        least[j] = std::min(least[j], use);
        heaviest[j] = std::max(heaviest[j], use);
      }
    }
  }
  for (Index j = 0; j < m; ++j) {
    const double count = static_cast<double>(agents[j]);
    limits.lightest[j] = least[j];
    limits.mass[j] = std::min(total[j], instance.capacity[j] * kRoundingSlack);
    if (agents[j] > 0) {
      total[j] /= count;
      if (least[j] > 0.0) {
        agents[j] = static_cast<Index>(std::min(count, instance.capacity[j] / least[j] * kRoundingSlack));
      }
    }
    if (!by_load) {
      heaviest[j] = std::min(1.0, count);
      limits.lightest[j] = 1.0;
      limits.mass[j] = static_cast<double>(agents[j]);
    }
    limits.mass[j] = std::min(limits.mass[j], heaviest[j] * static_cast<double>(agents[j]));
    limits.root[j] = std::sqrt(limits.mass[j]);
  }
}

void count_closely(TaskLimits& limits, const Instance& instance, const Array1<double>& keys, const Array1<double>& ties,
                   const Array1<Index>& order) {
  for (Index j = 0; j < instance.m; ++j) {
    const double capacity = instance.capacity[j];
    if (limits.least[j] == limits.use[j] || capacity == kInfinity) continue;
    Index count = 0;
    for (Index i = 0; i < instance.n; ++i) {
      if (can_take(instance, i, j)) {
        keys[i] = -instance.use(i, j);
        order[count++] = i;
      }
    }
    rank(keys, ties, order, count);
    double load = 0.0;
    Index fitting = 0;
    while (fitting < count && fits(load, -keys[order[fitting]], capacity * kRoundingSlack)) {
      load -= keys[order[fitting]];
      ++fitting;
    }
    limits.agents[j] = std::min(limits.agents[j], fitting);
    limits.mass[j] = std::min(limits.mass[j], limits.heaviest[j] * static_cast<double>(limits.agents[j]));
    limits.root[j] = std::sqrt(limits.mass[j]);
  }
}

void set_share_bonus(const Array1<double>& bonus, const TaskLimits& limits, const Instance& instance,
                     const Array1<double>& scratch) {
  const Index m = instance.m;
  double* __restrict const total = scratch.data;
  double* __restrict const top = scratch.data + m;
  std::fill_n(scratch.data, 2 * m, 0.0);
  // g + g' is symmetric: its rows serve as columns, so that the sums of all tasks grow side by side.
  for (Index k = 0; k < m; ++k) {
    const double mass = limits.mass[k], heaviest = limits.heaviest[k];
    const double* const both = instance.pair_score.row(k).data;
    for (Index j = 0; j < m; ++j) {
      const double half = 0.5 * both[j];
      const double pull = half > 0.0 ? half : 0.0;
      total[j] += pull * mass;
      const double most = pull * heaviest;
      top[j] = most > top[j] ? most : top[j];
    }
  }
  for (Index j = 0; j < m; ++j) {
    // One of the places on task j itself is taken.
    const double others =
        std::min(limits.heaviest[j] * static_cast<double>(std::max<Index>(0, limits.agents[j] - 1)), limits.mass[j]);
    const double sum = total[j] - std::max(0.0, 0.5 * instance.pair_score(j, j)) * (limits.mass[j] - others);
    const double most = static_cast<double>(std::max<Index>(0, instance.n - 1)) * top[j];
    bonus[j] = limits.agents[j] > 0 ? std::min(sum, most) + own_term(limits, instance, j) : 0.0;
  }
}

void shift_prices(const Array1<double>& shifted, const Array1<double>& prices, const Array1<double>& slope,
                  const Array1<double>& bonus, const TaskLimits& limits, const Instance& instance) {
  const bool by_load = instance.pair_terms == PairTerms::by_load;
  double rise = -kInfinity;
  for (Index j = 0; j < instance.m; ++j) rise = std::max(rise, bonus[j] - slope[j]);
  for (Index j = 0; j < instance.m; ++j) {
    const double use = by_load || limits.use[j] == 0.0 ? 1.0 : limits.use[j];
    const double price = std::max(0.0, prices[j] + (bonus[j] - slope[j] - rise) / use);
    shifted[j] = instance.capacity[j] < kInfinity ? price : 0.0;
  }
}

void list_most(const Array2<double>& most, const TaskLimits& limits, const Instance& instance,
               const Array1<double>& keys, const Array1<double>& ties, const Array1<Index>& order) {
  const Index n = instance.n, m = instance.m;
  for (Index j = 0; j < m; ++j) {
    Index count = 0;
    for (Index k = 0; k < m; ++k) {
      keys[k] = 0.5 * instance.pair_score(j, k) * limits.heaviest[k];
      if (keys[k] > 0.0 && limits.agents[k] > 0) order[count++] = k;
    }
    rank(keys, ties, order, count);
    most(0, j) = 0.0;
    Index others = 0;
    double total = 0.0;
    for (Index a = 0; a < count; ++a) {
      const Index k = order[a];
      double left = limits.mass[k];
      const Index places = limits.agents[k] - (k == j ? 1 : 0);
      for (Index place = 0; place < places && others + 1 < n; ++place) {
        total += 0.5 * instance.pair_score(j, k) * std::min(left, limits.heaviest[k]);
        left = std::max(0.0, left - limits.heaviest[k]);
        most(++others, j) = total;
      }
    }
    for (Index r = others + 1; r < n; ++r) most(r, j) = total;
  }
}

bool is_concave_with(double shift, const TaskLimits& limits, const Instance& instance, const Array2<double>& matrix,
                     const Array1<double>& column) {
  const Index m = instance.m;
  const double* const root = limits.root.data;
  for (Index j = 0; j < m; ++j) {
    double* __restrict const row = matrix.row(j).data;
    const double* const both = instance.pair_score.row(j).data;
    for (Index k = 0; k <= j; ++k) row[k] = -0.5 * both[k] * (root[j] * root[k]);
    row[j] += shift;
    if (row[j] <= 0.0) return false;
  }
  double* __restrict const below = column.data;
  for (Index k = 0; k < m; ++k) {
    if (!(matrix(k, k) > 0.0)) return false;
    const double pivot = std::sqrt(matrix(k, k));
    for (Index i = k + 1; i < m; ++i) below[i] = matrix(i, k) / pivot;
    for (Index i = k + 1; i < m; ++i) {
      const double factor = below[i];
      double* __restrict const row = matrix.row(i).data;
      for (Index j = k + 1; j <= i; ++j) row[j] -= factor * below[j];
    }
  }
  return true;
}

ShiftRange find_shift_range(const TaskLimits& limits, const Instance& instance, const Array1<double>& sums) {
  const Index m = instance.m;
  double* __restrict const sum = sums.data;
  std::fill_n(sum, m, 0.0);
  double largest = 0.0, most = 0.0;
  // By symmetry again rows serve as columns.
  for (Index k = 0; k < m; ++k) {
    const double root = limits.root[k];
    const double* const both = instance.pair_score.row(k).data;
    double widest = 0.0;
    for (Index j = 0; j < m; ++j) {
      const double size = std::abs(0.5 * both[j]) * (limits.root[j] * root);
      widest = larger(size, widest);
      sum[j] += size;
    }
    largest = std::max(largest, widest);
  }
  for (Index j = 0; j < m; ++j) most = std::max(most, sum[j]);
  return {kLeastShift * largest * static_cast<double>(m), most};
}

}  // namespace muster
