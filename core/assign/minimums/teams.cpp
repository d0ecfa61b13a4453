#include "teams.hpp"

#include <cmath>

#include "../local_search.hpp"

namespace muster {

namespace {

// Whether all allowed agents together reach the minimum of task j, and it is within the capacity.
bool can_reach(const Instance& instance, Index j, double least) {
  double total = 0.0;
  for (Index i = 0; i < instance.n; ++i) {
    if (instance.score(i, j) > -kInfinity) total += instance.use(i, j);
  }
  return reaches(total, least) && least <= instance.capacity[j] * (1.0 + kCapacityTolerance);
}

// Whether any one of the allowed agents is enough.
bool one_is_enough(const Instance& instance, Index j, double least) {
  for (Index i = 0; i < instance.n; ++i) {
    if (instance.score(i, j) > -kInfinity && !reaches(instance.use(i, j), least)) return false;
  }
  return true;
}

// List the allowed pairs of task j; whether all of them contribute the same amount, above 0.
bool list_pairs(Teams& teams, const Instance& instance, Index j) {
  double same = -1.0;
  bool uniform = true;
  for (Index i = 0; i < instance.n; ++i) {
    const double use = instance.use(i, j);
    if (instance.score(i, j) == -kInfinity || !fits(0.0, use, instance.capacity[j])) continue;
    teams.agent.push_back(i);
    teams.score.push_back(instance.score(i, j));
    teams.use.push_back(use);
    if (same < 0.0) same = use;
    uniform &= use == same && use > 0.0;
  }
  teams.first.push_back(static_cast<Index>(teams.agent.size()));
  const Index all = instance.n;
  Index fewest = 0, most = all;
  if (uniform && same > 0.0) {
    const double capacity = instance.capacity[j] * (1.0 + kCapacityTolerance) / same;
    if (capacity < static_cast<double>(all)) most = static_cast<Index>(std::floor(capacity));
    fewest = static_cast<Index>(std::ceil(teams.least[j] * (1.0 - kCapacityTolerance) / same));
  }
  teams.fewest_agents.push_back(fewest);
  teams.most_agents.push_back(most);
  return uniform;
}

}  // namespace

Teams read_teams(Instance& instance, const Array1<const double>& minimums, const Array1<const bool>& required) {
  Teams teams;
  teams.n = instance.n;
  teams.m = instance.m;
  teams.idle = instance.idle;
  // The penalty for a task that is not served outweighs all scores together.
  const double scale = std::max(score_scale(instance), 1e-300);
  const double penalty =
      -4.0 * static_cast<double>((instance.n + 1) * (instance.n + 1)) * scale + static_cast<double>(instance.n + 1) * instance.idle;
  teams.first.push_back(0);
  teams.blocked.assign(instance.n, 0);
  for (Index j = 0; j < instance.m; ++j) {
    const Index task = instance.tasks[j];
    double least = std::max(0.0, minimums[task]);
    const bool has_to = required[task] && least > 0.0;
    const bool reachable = least == 0.0 || can_reach(instance, j, least);
    if (!reachable) {
      for (Index i = 0; i < instance.n; ++i) {
        if (instance.score(i, j) > std::min(0.0, instance.idle)) teams.blocked[i] = 1;
        instance.score(i, j) = -kInfinity;
      }
      least = 0.0;
    } else if (!has_to && one_is_enough(instance, j, least)) {
      least = 0.0;
    }
    teams.least.push_back(least);
    teams.empty.push_back(has_to && reachable ? penalty : 0.0);
    teams.most.push_back(instance.capacity[j]);
    teams.uniform &= list_pairs(teams, instance, j);
    if (least > 0.0) teams.needy.push_back(j);
  }
  return teams;
}

bool meets_minimums(const Plan& plan, const Teams& teams) {
  for (const Index j : teams.needy) {
    if (plan.count[j] > 0.0 && !reaches(plan.load[j], teams.least[j])) return false;
  }
  return true;
}

double team_value(const Plan& plan, const Instance& instance, const Teams& teams) {
  double value = total_value(plan, instance);
  for (const Index j : teams.needy) {
    if (plan.count[j] == 0.0) value += teams.empty[j];
  }
  return value;
}

}  // namespace muster
