#include "search.hpp"

#include <algorithm>
#include <cmath>

#include "../../random.hpp"
#include "../gains.hpp"

namespace muster {

TeamSearch::TeamSearch(Arena& arena, const Instance& instance, const Teams& teams, Stop& stop)
    : instance_(instance), teams_(teams), stop_(stop), least_(kGainTolerance * score_scale(instance)),
      trial_(make_plan(arena, instance.n, instance.m)), current_(make_plan(arena, instance.n, instance.m)),
      gain_(instance.n, 0.0) {}

bool TeamSearch::can_leave(const Plan& plan, Index i) const {
  const Index j = plan.task[i];
  if (j < 0) return true;
  if (plan.count[j] == 1.0) return teams_.empty[j] == 0.0;
  return teams_.least[j] == 0.0 || reaches(plan.load[j] - instance_.use(i, j), teams_.least[j]);
}

bool TeamSearch::can_join(const Plan& plan, Index i, Index j) const {
  return instance_.score(i, j) > -kInfinity && fits(plan.load[j], instance_.use(i, j), instance_.capacity[j]) &&
         reaches(plan.load[j] + instance_.use(i, j), teams_.least[j]);
}

bool TeamSearch::move_sweep(Plan& plan) {
  bool any = false;
  for (Index i = 0; i < instance_.n; ++i) {
    if (!can_leave(plan, i)) continue;
    double best = least_;
    Index where = -2;
    if (plan.task[i] >= 0 && leave_gain(plan, instance_, i) > best) {
      best = leave_gain(plan, instance_, i);
      where = -1;
    }
    for (Index j = 0; j < instance_.m; ++j) {
      if (j == plan.task[i] || !can_join(plan, i, j)) continue;
      double gain = move_gain(plan, instance_, i, j);
      if (plan.count[j] == 0.0) gain -= teams_.empty[j];
      if (gain > best) {
        best = gain;
        where = j;
      }
    }
    if (where == -2) continue;
    reassign(plan, instance_, i, where);
    any = true;
  }
  return any;
}

bool TeamSearch::swap_sweep(Plan& plan) {
  const Index n = instance_.n;
  bool any = false;
  // The load of a task when `leaves` goes and `comes` takes its place.
  const auto fine = [&](Index j, Index leaves, Index comes) {
    if (j < 0) return true;
    if (instance_.score(comes, j) == -kInfinity) return false;
    const double load = plan.load[j] - instance_.use(leaves, j);
    return fits(load, instance_.use(comes, j), instance_.capacity[j]) &&
           reaches(load + instance_.use(comes, j), teams_.least[j]);
  };
  const auto own = [&](Index i) { return plan.task[i] >= 0 ? instance_.score(i, plan.task[i]) : instance_.idle; };
  for (Index i = 0; i < n; ++i) {
    for (Index k = i + 1; k < n; ++k) {
      const Index a = plan.task[i], b = plan.task[k];
      if (a == b || !fine(a, i, k) || !fine(b, k, i)) continue;
      double gain = -own(i) - own(k) + (a >= 0 ? instance_.score(k, a) : instance_.idle) +
                    (b >= 0 ? instance_.score(i, b) : instance_.idle);
      if (instance_.pair_terms == PairTerms::by_load) {
        const double before = total_value(plan, instance_);
        reassign(plan, instance_, i, b);
        reassign(plan, instance_, k, a);
        gain = total_value(plan, instance_) - before;
        reassign(plan, instance_, k, b);
        reassign(plan, instance_, i, a);
      }
      if (gain <= least_) continue;
      reassign(plan, instance_, i, b);
      reassign(plan, instance_, k, a);
      any = true;
    }
    if ((i & 7) == 0 && stop_.requested()) return false;
  }
  return any;
}

void TeamSearch::empty(Plan& plan, Index j) {
  for (Index i = 0; i < instance_.n; ++i) {
    if (plan.task[i] == j) reassign(plan, instance_, i, -1);
  }
}

bool TeamSearch::fill(Plan& plan, Index j, bool only_idle) {
  const double least = teams_.least[j];
  order_.clear();
  for (Index i = 0; i < instance_.n; ++i) {
    const Index old = plan.task[i];
    if (old == j || instance_.score(i, j) == -kInfinity || instance_.use(i, j) == 0.0) continue;
    if (only_idle && old >= 0) continue;
    // Taking an agent from a task that then has too little costs that task.
    double gain = move_gain(plan, instance_, i, j);
    if (!can_leave(plan, i)) {
      for (Index k = 0; k < instance_.n; ++k) {
        if (k != i && plan.task[k] == old) gain += 0.5 * (instance_.idle - instance_.score(k, old));
      }
      gain += teams_.empty[old];
    }
    gain_[i] = gain / instance_.use(i, j);
    order_.push_back(i);
  }
  std::sort(order_.begin(), order_.end(), [&](Index a, Index b) { return gain_[a] != gain_[b] ? gain_[a] > gain_[b] : a < b; });
  for (const Index i : order_) {
    if (reaches(plan.load[j], least) && plan.count[j] > 0.0) break;
    if (!fits(plan.load[j], instance_.use(i, j), instance_.capacity[j])) continue;
    const Index old = plan.task[i];
    reassign(plan, instance_, i, j);
    if (old >= 0 && plan.count[old] > 0.0 && !reaches(plan.load[old], teams_.least[old])) empty(plan, old);
  }
  return plan.count[j] > 0.0 && reaches(plan.load[j], least);
}

Step TeamSearch::best_join(const Plan& plan, Index i) const {
  Step best{least_, -1};
  for (Index j = 0; j < instance_.m; ++j) {
    const double opened = plan.count[j] == 0.0 ? teams_.empty[j] : 0.0;
    const double gain = join_gain(plan, instance_, i, j) - instance_.idle - opened;
    if (gain > best.gain && can_join(plan, i, j)) best = {gain, j};
  }
  return best;
}

void TeamSearch::settle(Plan& plan) {
  bool any = true;
  while (any) {
    any = false;
    // The agents that gain most join first.
    for (bool joined = true; joined;) {
      joined = false;
      order_.clear();
      for (Index i = 0; i < instance_.n; ++i) {
        if (plan.task[i] >= 0) continue;
        const Step step = best_join(plan, i);
        gain_[i] = step.gain;
        if (step.task >= 0) order_.push_back(i);
      }
      std::sort(order_.begin(), order_.end(),
                [&](Index a, Index b) { return gain_[a] != gain_[b] ? gain_[a] > gain_[b] : a < b; });
      for (const Index i : order_) {
        const Step step = best_join(plan, i);
        if (step.task < 0) continue;
        reassign(plan, instance_, i, step.task);
        joined = true;
      }
    }
    if (stop_.requested()) return;
    // Then whole teams of agents without a task.
    for (const Index j : teams_.needy) {
      if (plan.count[j] > 0.0) continue;
      const double before = team_value(plan, instance_, teams_);
      if (!fill(plan, j, true) || team_value(plan, instance_, teams_) <= before + least_) {
        empty(plan, j);
      } else {
        any = true;
      }
    }
  }
}

void TeamSearch::repair(Plan& plan) {
  // Tasks below their minimum are completed by agents without a task, or emptied.
  for (const Index j : teams_.needy) {
    if (plan.count[j] > 0.0 && !reaches(plan.load[j], teams_.least[j]) && !fill(plan, j, true)) empty(plan, j);
  }
  settle(plan);
}

bool TeamSearch::team_sweep(Plan& plan) {
  const double before = team_value(plan, instance_, teams_);
  for (const Index j : teams_.needy) {
    if (stop_.requested()) return false;
    copy_plan(trial_, plan, instance_.n, instance_.m);
    if (plan.count[j] > 0.0) {
      empty(trial_, j);
      const double capacity = instance_.capacity[j];
      instance_.capacity[j] = -1.0;
      settle(trial_);
      instance_.capacity[j] = capacity;
    } else {
      if (!fill(trial_, j, false)) continue;
      settle(trial_);
    }
    while (move_sweep(trial_)) {
    }
    settle(trial_);
    if (team_value(trial_, instance_, teams_) > before + least_) {
      copy_plan(plan, trial_, instance_.n, instance_.m);
      return true;
    }
  }
  return false;
}

void TeamSearch::improve(Plan& plan) {
  while (!stop_.requested()) {
    if (move_sweep(plan)) continue;
    if (swap_sweep(plan)) continue;
    if (!team_sweep(plan)) return;
  }
}

void TeamSearch::perturb(Plan& plan, Index rounds) {
  if (instance_.n == 0 || instance_.m == 0) return;
  std::uint64_t state = 1;
  for (Index round = 0; round < rounds && !stop_.requested(); ++round) {
    copy_plan(current_, plan, instance_.n, instance_.m);
    for (Index turn = 0; turn < 3; ++turn) {
      const Index j = below(state, instance_.m);
      if (current_.count[j] > 0.0) {
        empty(current_, j);
      } else if (!fill(current_, j, false)) {
        empty(current_, j);
      }
    }
    settle(current_);
    improve(current_);
    if (team_value(current_, instance_, teams_) > team_value(plan, instance_, teams_) + least_) {
      copy_plan(plan, current_, instance_.n, instance_.m);
    }
  }
}

}  // namespace muster
