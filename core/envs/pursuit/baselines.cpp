#include "baselines.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "../../random.hpp"
#include "pursuit.hpp"

namespace muster::pursuit {

namespace {

// Gathers the groups of one slot.
class Gathering {
 public:
  Gathering(Array2<const Index> distances, Array1<const bool> free, Index needed, Array1<Index> assignment)
      : distances_(distances), needed_(needed), open_(free.begin(), free.end()), assignment_(assignment) {
    std::ranges::fill(assignment_, -1);
  }

  void run() {
    for (Index idle = assignment_.size; idle >= needed_; idle -= needed_) {
      const Index task = choose_next();
      if (task < 0) break;
      for (Index k = 0; k < needed_; ++k) assign_nearest(task);
      open_[task] = false;
    }
    for (Index i = 0; i < assignment_.size; ++i) {
      if (assignment_[i] >= 0) continue;
      for (Index j = 0; j < distances_.columns; ++j) {
        const Index last = assignment_[i];
        if (open_[j] && (last < 0 || distances_(i, j) < distances_(i, last))) assignment_[i] = j;
      }
    }
  }

 private:
  // The open evader round which a group of pursuers without a task can gather soonest; -1 if no evader is open.
  Index choose_next() {
    Index best = -1, soonest = kFar, least_total = kFar;
    for (Index j = 0; j < distances_.columns; ++j) {
      if (!open_[j]) continue;
      ways_.clear();
      for (Index i = 0; i < assignment_.size; ++i) {
        if (assignment_[i] < 0) ways_.push_back(distances_(i, j));
      }
      const auto last = ways_.begin() + (needed_ - 1);
      std::nth_element(ways_.begin(), last, ways_.end());
      const Index total = std::accumulate(ways_.begin(), last + 1, Index{0});
      if (*last < soonest || (*last == soonest && total < least_total)) {
        best = j;
        soonest = *last;
        least_total = total;
      }
    }
    return best;
  }

  void assign_nearest(Index task) {
    Index nearest = -1;
    for (Index i = 0; i < assignment_.size; ++i) {
      if (assignment_[i] < 0 && (nearest < 0 || distances_(i, task) < distances_(nearest, task))) nearest = i;
    }
    assignment_[nearest] = task;
  }

  Array2<const Index> distances_;
  Index needed_;
  std::vector<bool> open_;
  Array1<Index> assignment_;
  std::vector<Index> ways_;
};

}  // namespace

void send_to_closest(Array3<const Index> distances, Array2<const bool> free, Array1<std::uint64_t> rng,
                     Array2<Index> assignment) {
  for (Index b = 0; b < distances.layers; ++b) {
    for (Index i = 0; i < distances.rows; ++i) {
      Index nearest = kFar, ties = 0;
      assignment(b, i) = -1;
      for (Index j = 0; j < distances.columns; ++j) {
        if (!free(b, j)) continue;
        const Index way = distances(b, i, j);
        if (way < nearest) {
          nearest = way;
          ties = 0;
        }
        if (way == nearest) {
          ++ties;
          if (ties == 1 || below(rng[b], ties) == 0) assignment(b, i) = j;
        }
      }
    }
  }
}

void gather_greedily(Array3<const Index> distances, Array2<const bool> free, Index needed, Array2<Index> assignment) {
  for (Index b = 0; b < distances.layers; ++b) {
    Gathering(distances.layer(b), free.row(b), needed, assignment.row(b)).run();
  }
}

}  // namespace muster::pursuit
