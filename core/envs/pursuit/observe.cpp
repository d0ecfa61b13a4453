#include "observe.hpp"

#include <cmath>

#include "../../arena.hpp"

namespace muster::pursuit {

namespace {

constexpr double kUnitsPerCell = 1.0 / 8.0;
constexpr Index kFarthestWall = 8;

// Whole numbers of cells in units of 8: exact in single precision, too.
float in_units(Index cells) { return static_cast<float>(static_cast<double>(cells) * kUnitsPerCell); }

// The least of `values` in rising order, as many as fit in `least`.
void find_least(Array1<Index> values, Array1<Index> least) {
  Index filled = 0;
  for (const Index value : values) {
    Index at = std::min(filled, least.size - 1);
    if (filled == least.size && value >= least[at]) continue;
    for (; at > 0 && least[at - 1] > value; --at) least[at] = least[at - 1];
    least[at] = value;
    filled = std::min(filled + 1, least.size);
  }
}

// Observes one slot after the other.
class Observer {
 public:
  Observer(const Pursuit& pursuit, const Settings& settings)
      : pursuit_(pursuit),
        settings_(settings),
        ways_(arena_.make2<Index>(pursuit.evaders.rows, pursuit.pursuers.rows)),
        least_(arena_.make1<Index>(std::max(std::min<Index>(2, pursuit.pursuers.rows), settings.needed))) {}

  void observe(Index b, Array2<float> agents, Array2<float> tasks, Array3<float> pairs, Array3<float> task_pairs) {
    pursuers_ = pursuit_.pursuers.layer(b);
    evaders_ = pursuit_.evaders.layer(b);
    free_ = pursuit_.free.row(b);
    targets_ = pursuit_.targets.row(b);
    moves_ = pursuit_.moves.layer(b);
    for (Index j = 0; j < evaders_.rows; ++j) {
      for (Index i = 0; i < pursuers_.rows; ++i) ways_(j, i) = distance(pursuer(i), evader(j), settings_);
    }
    for (Index i = 0; i < pursuers_.rows; ++i) observe_pursuer(i, &agents(i, 0));
    for (Index j = 0; j < evaders_.rows; ++j) observe_evader(j, tasks.row(j), pairs);
    for (Index j = 0; j < evaders_.rows; ++j) {
      for (Index k = 0; k < evaders_.rows; ++k) {
        float* const pair = &task_pairs(j, k, 0);
        if (free_[j] && free_[k]) {
          observe_relation(evader(j), evader(k), pair);
        } else {
          std::fill_n(pair, task_pairs.columns, 0.0f);
        }
      }
    }
  }

 private:
  const Index* pursuer(Index i) const { return &pursuers_(i, kRow); }
  const Index* evader(Index j) const { return &evaders_(j, kRow); }

  // Distances of the nearest free evader and of the nearest other pursuer; 0 if there is none.
  void observe_pursuer(Index i, float* row) const {
    Index nearest = kFar, other = kFar;
    for (Index j = 0; j < evaders_.rows; ++j) {
      if (free_[j]) nearest = std::min(nearest, ways_(j, i));
    }
    for (Index k = 0; k < pursuers_.rows; ++k) {
      if (k != i) other = std::min(other, distance(pursuer(i), pursuer(k), settings_));
    }
    row[0] = nearest == kFar ? 0.0f : in_units(nearest);
    row[1] = other == kFar ? 0.0f : in_units(other);
  }

  // An evader, and its pairs with all pursuers.
  void observe_evader(Index j, Array1<float> row, Array3<float> pairs) const {
    std::ranges::fill(row, 0.0f);
    if (!free_[j]) {
      row[0] = 1.0f;
      for (Index i = 0; i < pursuers_.rows; ++i) std::fill_n(&pairs(i, j, 0), pairs.columns, 0.0f);
      return;
    }
    const Array1<Index> ways = ways_.row(j);
    find_least(ways, least_);
    const Index nearest = least_[0], second = least_[std::min<Index>(1, pursuers_.rows - 1)];
    const double needed = static_cast<double>(settings_.needed);
    row[1] = in_units(nearest);
    row[2] = in_units(least_[settings_.needed - 1]);
    row[3] = static_cast<float>(static_cast<double>(count_beside(pursuers_, evader(j), settings_)) / needed);
    row[5] = in_units(cells_to_wall(evaders_(j, kColumn), settings_.width));
    row[6] = in_units(cells_to_wall(evaders_(j, kRow), settings_.height));
    const Index before_row = evaders_(j, kRow) - moves_(j, kRow), before_column = evaders_(j, kColumn) - moves_(j, kColumn);
    for (Index i = 0; i < pursuers_.rows; ++i) {
      const bool mine = targets_[i] == j;
      // Added one by one in single precision.
      if (mine) row[4] = static_cast<float>(static_cast<double>(row[4]) + 1.0 / needed);
      float* const pair = &pairs(i, j, 0);
      observe_relation(pursuer(i), evader(j), pair);
      pair[5] = mine ? 1.0f : 0.0f;
      pair[6] = static_cast<float>(ways[i] - distance(before_row, before_column, pursuer(i), settings_));
      const Index other = ways[i] == nearest ? second : nearest;
      pair[7] = in_units(other);
      pair[8] = static_cast<float>(most_opposite(i, j, other));
    }
  }

  // dx, dy, |dx|, |dy| and the distance.
  void observe_relation(const Index* source, const Index* target, float* row) const {
    const float dx = in_units(steps_to(source[kColumn], target[kColumn], settings_.width, settings_.walls));
    const float dy = in_units(steps_to(source[kRow], target[kRow], settings_.height, settings_.walls));
    row[0] = dx;
    row[1] = dy;
    row[2] = std::abs(dx);
    row[3] = std::abs(dy);
    row[4] = std::max(std::abs(dx), std::abs(dy));
  }

  Index cells_to_wall(Index x, Index size) const {
    return settings_.walls ? std::min({x, size - 1 - x, kFarthestWall}) : kFarthestWall;
  }

  // The least cosine between pursuer i and another one at distance `way`, seen from the evader: -1 is a pincer. 1 if there is
  // no other, or where a pursuer is in the evader's cell.
  double most_opposite(Index i, Index j, Index way) const {
    const auto row_to = [&](Index k) {
      return steps_to(evaders_(j, kRow), pursuers_(k, kRow), settings_.height, settings_.walls);
    };
    const auto column_to = [&](Index k) {
      return steps_to(evaders_(j, kColumn), pursuers_(k, kColumn), settings_.width, settings_.walls);
    };
    const Index y = row_to(i), x = column_to(i);
    double least = 1.0;
    for (Index k = 0; k < pursuers_.rows; ++k) {
      if (k == i || ways_(j, k) != way) continue;
      const Index v = row_to(k), u = column_to(k);
      const Index lengths = (x * x + y * y) * (u * u + v * v);
      if (lengths > 0) {
        least = std::min(least, static_cast<double>(x * u + y * v) / std::sqrt(static_cast<double>(lengths)));
      }
    }
    return least;
  }

  const Pursuit& pursuit_;
  const Settings& settings_;
  Arena arena_;
  const Array2<Index> ways_;   // [M, N] distances
  const Array1<Index> least_;  // of an evader's pursuers

  Array2<Index> pursuers_;
  Array2<Index> evaders_;
  Array1<bool> free_;
  Array1<Index> targets_;
  Array2<Index> moves_;
};

}  // namespace

void observe_coordinates(const Pursuit& pursuit, const Settings& settings, Array3<float> agents, Array3<float> tasks) {
  const double middle_row = static_cast<double>(settings.height - 1) / 2.0;
  const double middle_column = static_cast<double>(settings.width - 1) / 2.0;
  const auto write = [&](Array1<Index> cell, float* row) {
    row[0] = static_cast<float>((static_cast<double>(cell[kColumn]) - middle_column) * kUnitsPerCell);
    row[1] = static_cast<float>((static_cast<double>(cell[kRow]) - middle_row) * kUnitsPerCell);
  };
  for (Index b = 0; b < agents.layers; ++b) {
    for (Index i = 0; i < agents.rows; ++i) write(pursuit.pursuers.row(b, i), &agents(b, i, 0));
    for (Index j = 0; j < tasks.rows; ++j) {
      write(pursuit.evaders.row(b, j), &tasks(b, j, 0));
      tasks(b, j, 2) = pursuit.free(b, j) ? 0.0f : 1.0f;
    }
  }
}

void measure_distances(const Pursuit& pursuit, const Settings& settings, Array3<double> prior) {
  for (Index b = 0; b < prior.layers; ++b) {
    for (Index i = 0; i < prior.rows; ++i) {
      const Index* const pursuer = &pursuit.pursuers(b, i, kRow);
      for (Index j = 0; j < prior.columns; ++j) {
        const Index way = distance(pursuer, &pursuit.evaders(b, j, kRow), settings);
        prior(b, i, j) = -kUnitsPerCell * static_cast<double>(way);
      }
    }
  }
}

void observe_relations(const Pursuit& pursuit, const Settings& settings, Array3<float> agents, Array3<float> tasks,
                       Array4<float> pairs, Array4<float> task_pairs) {
  Observer observer(pursuit, settings);
  for (Index b = 0; b < agents.layers; ++b) {
    observer.observe(b, agents.layer(b), tasks.layer(b), pairs.block(b), task_pairs.block(b));
  }
}

}  // namespace muster::pursuit
