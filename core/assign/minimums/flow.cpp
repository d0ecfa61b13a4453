#include "flow.hpp"

#include <cmath>

namespace muster {

Flow::Flow(Arena& arena, const Teams& teams) : task(teams.n, -1), count(teams.m, 0), teams_(teams) {
  std::vector<Index> capacity;
  for (Index j = 0; j < teams.m; ++j) {
    const Index fewest = teams.fewest_agents[j], most = std::min(teams.most_agents[j], teams.n);
    if (fewest > 0) {
      column_task_.push_back(j);
      column_first_.push_back(1);
      capacity.push_back(std::min(fewest, most));
    }
    if (most > fewest) {
      column_task_.push_back(j);
      column_first_.push_back(0);
      capacity.push_back(most - fewest);
    }
  }
  const Index n = teams.n, columns = static_cast<Index>(column_task_.size());
  instance_ = make_instance(arena, n, columns, false);
  instance_.n = n;
  instance_.m = columns;
  instance_.idle = teams.idle;
  relaxation_ = make_relaxation(arena, n, columns);
  bonus_ = arena.zeros1<double>(columns);
  double low = std::min(0.0, teams.idle), high = 0.0;
  for (const double score : teams.score) {
    low = std::min(low, score);
    high = std::max(high, score);
  }
  force_ = -penalty_of(low, high, 0.0, n);
  std::fill_n(instance_.score.data, n * columns, -kInfinity);
  std::fill_n(instance_.use.data, n * columns, 1.0);
  for (Index k = 0; k < columns; ++k) {
    const Index j = column_task_[k];
    instance_.tasks[k] = k;
    instance_.capacity[k] = instance_.flow_capacity[k] = static_cast<double>(capacity[k]);
    instance_.price_scale[k] = 1.0;
    for (Index e = teams.first[j]; e < teams.first[j + 1]; ++e) instance_.score(teams.agent[e], k) = teams.score[e];
  }
  for (Index i = 0; i < n; ++i) {
    instance_.agents[i] = i;
    instance_.usable[i] = 1;
    instance_.supply[i] = instance_.inverse_supply[i] = 1.0;
  }
}

double Flow::solve(const std::vector<signed char>& open, Stop& stop) {
  const Index n = teams_.n, columns = instance_.m;
  for (Index k = 0; k < columns; ++k) {
    const signed char state = open[column_task_[k]];
    bonus_[k] = state == kClosed ? -force_ : state == kOpen && column_first_[k] ? force_ : 0.0;
  }
  const double scale = set_profits(relaxation_, instance_, bonus_);
  const Status status = maximise(relaxation_, instance_, scale, warm_, stop);
  warm_ = true;
  read_vertex(relaxation_, instance_);
  std::fill(count.begin(), count.end(), 0);
  double total = 0.0;
  for (Index i = 0; i < n; ++i) {
    task[i] = -1;
    const Point& point = relaxation_.vertex;
    for (Index k = point.first[i]; k < point.first[i + 1]; ++k) {
      if (point.value[k] < 0.5) continue;
      const Index column = point.task[k], j = column_task_[column];
      if (open[j] == kClosed) continue;
      task[i] = j;
      ++count[j];
      total += instance_.score(i, column);
    }
    if (task[i] < 0) total += teams_.idle;
  }
  whole = status == kOptimal;
  for (const Index j : teams_.needy) {
    const bool filled = count[j] >= teams_.fewest_agents[j];
    if (open[j] == kOpen && !filled) return -kInfinity;
    if (count[j] > 0 && !filled) whole = false;
    if (count[j] == 0) total += teams_.empty[j];
  }
  return status == kOptimal ? total : -kInfinity;
}

void Flow::read_prices(std::vector<double>& price) const {
  for (Index i = 0; i < teams_.n; ++i) price[i] = std::max(teams_.idle, relaxation_.tree.dual[i]);
}

}  // namespace muster
