#include "knapsack.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "../lp/integrality.hpp"

namespace muster {

namespace {

// Columns of a grid at most, cells of a table at most, and columns where contributions are not integral.
constexpr Index kLargestGrid = 20'000, kLargestTable = 4'000'000, kRoundedGrid = 1'000;
// Cells and agents between two checks of the stop: less than a millisecond.
constexpr Index kCellsBetweenStops = 500'000;

void count_cells(Knapsacks& knapsacks, Index cells) {
  knapsacks.cells += static_cast<double>(cells);
  knapsacks.work += cells;
}

// List the agents that task j would gain by at these prices of agents; returns how many.
Index list_agents(Knapsacks& knapsacks, Index j, const Array1<double>& price) {
  const Index n = knapsacks.n, size = knapsacks.size[j];
  const double* const worth = knapsacks.worth.row(j).data;
  const Index* const weight = knapsacks.weight.row(j).data;
  const bool* const open = knapsacks.open.row(j).data;
  double* const __restrict profit = knapsacks.profit.data;
  Index count = 0;
  for (Index i = 0; i < n; ++i) {
    profit[i] = worth[i] - price.data[i];
    // Few agents gain: the first condition is mostly predicted.
    if (profit[i] > 0.0 && open[i] && knapsacks.fixed.data[i] < 0 && weight[i] <= size) {
      knapsacks.listed.data[count] = i;
      ++count;
    }
  }
  count_cells(knapsacks, count * (size + 1));
  knapsacks.work += n;
  return count;
}

// One more agent: target[c] = max(source[c], source[c - weight] + profit)
void add_row(double* __restrict target, const double* source, Index size, Index weight, double profit) {
  std::copy_n(source, weight, target);
  for (Index c = weight; c <= size; ++c) {
    const double without = source[c], with = source[c - weight] + profit;
    target[c] = without < with ? with : without;
  }
}

// The same where column c stands for the amount size - c.
void add_mirrored_row(double* __restrict target, const double* source, Index size, Index weight, double profit) {
  for (Index c = 0; c <= size - weight; ++c) {
    const double without = source[c], with = source[c + weight] + profit;
    target[c] = without < with ? with : without;
  }
  std::copy_n(source + size - weight + 1, weight, target + size - weight + 1);
}

// Fill the table `ahead` for the listed agents; returns the knapsack's value.
double fill_ahead(const Knapsacks& knapsacks, Index j, Index count) {
  const Index size = knapsacks.size[j];
  const Index* const weight = knapsacks.weight.row(j).data;
  std::fill_n(knapsacks.ahead.row(0).data, size + 1, 0.0);
  for (Index k = 0; k < count; ++k) {
    const Index i = knapsacks.listed[k];
    add_row(knapsacks.ahead.row(k + 1).data, knapsacks.ahead.row(k).data, size, weight[i], knapsacks.profit[i]);
  }
  return knapsacks.ahead(count, size);
}

// Mark the chosen agents in `taken`, from the table `ahead`.
void read_choice(const Knapsacks& knapsacks, Index j, Index count) {
  bool* const taken = knapsacks.taken.row(j).data;
  const Index* const weight = knapsacks.weight.row(j).data;
  std::fill_n(taken, knapsacks.n, false);
  Index c = knapsacks.size[j];
  for (Index k = count - 1; k >= 0; --k) {
    if (knapsacks.ahead(k + 1, c) == knapsacks.ahead(k, c)) continue;
    const Index i = knapsacks.listed[k];
    taken[i] = true;
    c -= weight[i];
  }
}

// The largest ahead[c] + behind[c] of so many columns.
double best_split(const double* ahead, const double* behind, Index columns) {
  struct Sum {
    const double *ahead, *behind;
    Lanes operator()(Index c, Lanes) const { return Lanes::load(ahead + c) + Lanes::load(behind + c); }
    double operator()(Index c, double) const { return ahead[c] + behind[c]; }
  };
  return largest_of(columns, Sum{ahead, behind});
}

}  // namespace

Knapsacks make_knapsacks(Arena& arena, Index n, Index m) {
  Knapsacks knapsacks;
  knapsacks.worth = arena.make2<double>(m + 1, n);
  knapsacks.weight = arena.make2<Index>(m + 1, n);
  knapsacks.size = arena.make1<Index>(m + 1);
  knapsacks.open = arena.make2<bool>(m + 1, n);
  knapsacks.fixed = arena.make1<Index>(n);
  knapsacks.profit = arena.make1<double>(n);
  knapsacks.listed = arena.make1<Index>(n);
  knapsacks.taken = arena.make2<bool>(m + 1, n);
  knapsacks.join = arena.make2<double>(m + 1, n);
  knapsacks.leave = arena.make2<double>(m + 1, n);
  return knapsacks;
}

Index set_grid(const Knapsacks& knapsacks, const Instance& instance) {
  const Index n = instance.n, m = instance.m;
  const double scale = scale_to_integers(instance.use, n, m);
  const Index largest = std::max(kRoundedGrid, std::min(kLargestGrid, kLargestTable / (n + 1)));
  Index columns = 1;
  for (Index j = 0; j < m; ++j) {
    const Array1<Index> weight = knapsacks.weight.row(j);
    const double capacity = instance.capacity[j] * (1.0 + kCapacityTolerance);
    double unit = scale > 0.0 ? 1.0 / scale : capacity / kRoundedGrid;
    if (capacity == kInfinity || capacity == 0.0) unit = kInfinity;
    Index total = 0, divisor = 0;
    for (Index i = 0; i < n; ++i) {
      // A contribution beyond the capacity needs no more than one cell too many.
      const double cells = std::min(instance.use(i, j), 2.0 * capacity) / unit;
      weight[i] = static_cast<Index>(scale > 0.0 ? std::nearbyint(cells) : std::floor(cells));
      total += weight[i];
      divisor = common_divisor(weight[i], divisor);
    }
    divisor = std::max(divisor, Index{1});
    Index size = 0;
    if (unit < kInfinity) size = static_cast<Index>(std::min(static_cast<double>(total), capacity / unit * (1.0 + 1e-12)));
    if (size > largest * divisor) divisor *= 1 + size / (largest * divisor);
    knapsacks.size[j] = size / divisor;
    for (Index i = 0; i < n; ++i) weight[i] /= divisor;
    columns = std::max(columns, knapsacks.size[j] + 1);
  }
  return columns;
}

void fill_knapsacks(Knapsacks& knapsacks, const Instance& instance, double* tables, Index columns) {
  const Index n = instance.n, m = instance.m;
  knapsacks.n = n;
  knapsacks.m = m;
  knapsacks.cells = 0.0;
  knapsacks.work = 0;
  knapsacks.ahead = {tables, n + 1, columns};
  knapsacks.behind = {tables + (n + 1) * columns, 2, columns};
  knapsacks.size[m] = 0;
  for (Index i = 0; i < n; ++i) {
    knapsacks.fixed[i] = -1;
    for (Index j = 0; j < m; ++j) {
      const bool open = instance.score(i, j) > -kInfinity && fits(0.0, instance.use(i, j), instance.capacity[j]) &&
                        knapsacks.weight(j, i) <= knapsacks.size[j];
      knapsacks.open(j, i) = open;
      knapsacks.worth(j, i) = open ? instance.score(i, j) : 0.0;
    }
    knapsacks.open(m, i) = true;
    knapsacks.worth(m, i) = instance.idle;
    knapsacks.weight(m, i) = 0;
  }
}

double solve_knapsack(Knapsacks& knapsacks, Index j, const Array1<double>& price, const Array1<double>& times) {
  const Index count = list_agents(knapsacks, j, price);
  if (count == 0) {
    std::fill_n(knapsacks.taken.row(j).data, knapsacks.n, false);
    return 0.0;
  }
  const double value = fill_ahead(knapsacks, j, count);
  read_choice(knapsacks, j, count);
  const bool* const taken = knapsacks.taken.row(j).data;
  for (Index k = 0; k < count; ++k) {
    const Index i = knapsacks.listed[k];
    times[i] += taken[i] ? 1.0 : 0.0;
  }
  return value;
}

bool weigh_choices(Knapsacks& knapsacks, const Array1<double>& price, Stop& stop) {
  const Index n = knapsacks.n;
  const Array2<double>& ahead = knapsacks.ahead;
  for (Index j = 0; j <= knapsacks.m; ++j) {
    const Index size = knapsacks.size[j];
    const Array1<Index> weight = knapsacks.weight.row(j);
    const Array1<double> join = knapsacks.join.row(j), leave = knapsacks.leave.row(j);
    const Index count = list_agents(knapsacks, j, price);
    const double value = fill_ahead(knapsacks, j, count);
    read_choice(knapsacks, j, count);
    if (should_stop(knapsacks, stop)) return false;
    for (Index i = 0; i < n; ++i) {
      leave[i] = 0.0;
      join[i] = -kInfinity;
      if (knapsacks.fixed[i] < 0 && knapsacks.open(j, i) && weight[i] <= size && knapsacks.profit[i] <= 0.0) {
        join[i] = knapsacks.profit[i] + ahead(count, size - weight[i]) - value;
      }
    }
    double *rest = knapsacks.behind.row(0).data, *next_rest = knapsacks.behind.row(1).data;
    std::fill_n(rest, size + 1, 0.0);
    for (Index k = count - 1; k >= 0; --k) {
      const Index i = knapsacks.listed[k];
      const double* const first = ahead.row(k).data;
      if (knapsacks.taken(j, i)) {
        join[i] = 0.0;
        leave[i] = std::min(0.0, best_split(first, rest, size + 1) - value);
      } else {
        const double best = best_split(first, rest + weight[i], size - weight[i] + 1);
        join[i] = std::min(0.0, best + knapsacks.profit[i] - value);
      }
      add_mirrored_row(next_rest, rest, size, weight[i], knapsacks.profit[i]);
      std::swap(rest, next_rest);
      count_cells(knapsacks, 2 * (size + 1));
      if (should_stop(knapsacks, stop)) return false;
    }
  }
  return true;
}

bool should_stop(Knapsacks& knapsacks, Stop& stop) {
  if (knapsacks.work < kCellsBetweenStops) return false;
  knapsacks.work = 0;
  return stop.requested();
}

}  // namespace muster
