#include "branch.hpp"

#include <algorithm>
#include <cmath>

namespace muster {

namespace {

// Values within this share are the same.
constexpr double kSame = 1e-9;
// Subgradient steps at each node; the root takes four times as many.
constexpr Index kNodeSteps = 40;

}  // namespace

Branching::Branching(const Teams& teams, Flow* flow, double unit, Stop& stop)
    : best(teams.n, -1), root(make_dual(teams)), teams_(teams), flow_(flow), unit_(unit), stop_(stop),
      decisions_(make_decisions(teams)) {}

void Branching::offer(const std::vector<Index>& task, double worth) {
  if (worth > value) {
    value = worth;
    best = task;
  }
}

double Branching::enough() const { return value + std::max(kSame * std::abs(value), unit_ * (1.0 - 1e-6)); }

void Branching::take_steps(Dual& dual, Index steps, std::vector<double>& share) {
  const double size = static_cast<double>(teams_.agent.size() + 1);
  const Index affordable = static_cast<Index>(std::clamp(work_ / size, 1.0, 1e9));
  const Index taken = std::min(steps, affordable);
  descend(dual, teams_, decisions_, value, enough(), taken, share, stop_);
  work_ -= static_cast<double>(taken) * size;
  if (work_ <= 0.0) nodes_ = 0;
}

bool Branching::try_open(const std::vector<signed char>& open) {
  --plans_;
  const double worth = flow_->solve(open, stop_);
  if (!(worth > value + kSame * std::abs(value))) return false;
  offer(flow_->task, worth);
  return true;
}

void Branching::exchange(Index plans) {
  plans_ = plans;
  std::vector<signed char> open = decisions_.open;
  const auto counted = [&] {
    for (const Index j : teams_.needy) open[j] = flow_->count[j] >= teams_.fewest_agents[j] ? kOpen : kClosed;
  };
  // Start from the relaxation: the tasks that it fills, and those that it fills in part.
  flow_->solve(open, stop_);
  std::vector<signed char> begun = open;
  for (const Index j : teams_.needy) begun[j] = flow_->count[j] > 0 ? kOpen : kClosed;
  counted();
  try_open(open);
  if (try_open(begun)) open = begun;
  for (const Index j : teams_.needy) begun[j] = root.team[j] > teams_.empty[j] ? kOpen : kClosed;
  if (try_open(begun)) open = begun;
  if (value == -kInfinity) {
    for (const Index j : teams_.needy) open[j] = kClosed;
    try_open(open);
  }
  Dual dual = make_dual(teams_);
  const Decisions free = make_decisions(teams_);
  struct Change {
    double promise;
    Index opened, closed;
  };
  std::vector<Change> changes;
  bool better = true;
  while (better && plans_ > 0 && !stop_.requested()) {
    better = false;
    // With the prices of this plan no change can gain more than it promises.
    if (flow_->solve(open, stop_) == -kInfinity) return;
    flow_->read_prices(dual.price);
    evaluate(dual, teams_, free);
    changes.clear();
    const auto promise = [&](Index j) {
      const double more = dual.team[j] - teams_.empty[j];
      return open[j] == kOpen ? -more : more;
    };
    for (const Index j : teams_.needy) {
      const double own = promise(j);
      if (own > 0.0) changes.push_back({own, open[j] == kOpen ? -1 : j, open[j] == kOpen ? j : -1});
      if (open[j] == kOpen) continue;
      for (const Index k : teams_.needy) {
        if (open[k] == kOpen && own + promise(k) > 0.0) changes.push_back({own + promise(k), j, k});
      }
    }
    std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
      return a.promise != b.promise ? a.promise > b.promise : a.opened != b.opened ? a.opened < b.opened : a.closed < b.closed;
    });
    for (const Change& change : changes) {
      if (plans_ <= 0 || stop_.requested()) break;
      if (change.opened >= 0) open[change.opened] = kOpen;
      if (change.closed >= 0) open[change.closed] = kClosed;
      better = try_open(open);
      if (better) break;
      if (change.opened >= 0) open[change.opened] = kClosed;
      if (change.closed >= 0) open[change.closed] = kOpen;
    }
  }
}

double Branching::prove(Index nodes, double work) {
  work_ = work;
  nodes_ = nodes;
  // Tasks that have to be served are open unless that cannot be.
  std::vector<double> share(teams_.m);
  bool required = false;
  for (const Index j : teams_.needy) {
    if (teams_.empty[j] < 0.0) {
      decisions_.open[j] = kOpen;
      required = true;
    }
  }
  bool decided = required;
  if (required && flow_ != nullptr && flow_->solve(decisions_.open, stop_) == -kInfinity) decided = false;
  if (required && flow_ == nullptr) decided = false;
  if (!decided) {
    for (const Index j : teams_.needy) decisions_.open[j] = kUndecided;
  }
  take_steps(root, 4 * kNodeSteps, share);
  relaxed = root.bound;
  if (root.bound <= enough()) return value;
  const double found = node(root, 0);
  return std::max(value, std::min(found, root.bound));
}

double Branching::bound_by_flow(Dual& dual, bool& done) {
  done = true;
  const double worth = flow_->solve(decisions_.open, stop_);
  if (stop_.requested()) return dual.bound;
  if (worth == -kInfinity) return -kInfinity;
  bool whole = flow_->whole;
  for (const Index j : teams_.needy) {
    if (decisions_.open[j] == kUndecided && teams_.empty[j] < 0.0 && flow_->count[j] == 0) whole = false;
  }
  if (whole) {
    offer(flow_->task, worth);
    return worth;
  }
  done = false;
  Dual other = dual;
  flow_->read_prices(other.price);
  evaluate(other, teams_, decisions_);
  evaluate(dual, teams_, decisions_);
  if (other.bound < dual.bound) dual = other;
  return dual.bound;
}

double Branching::node(const Dual& parent, Index depth) {
  if (nodes_ <= 0 || stop_.requested()) return parent.bound;
  --nodes_;
  Dual dual = parent;
  if (flow_ != nullptr) {
    bool done = false;
    const double bound = bound_by_flow(dual, done);
    if (done) return bound;
  }
  if (flow_ == nullptr) release_stranded(dual);
  std::vector<double> share(teams_.m);
  take_steps(dual, kNodeSteps, share);
  dual.bound = std::min(dual.bound, parent.bound);
  if (flow_ == nullptr) round(dual);
  if (dual.bound <= enough()) return value;
  // Tasks that cannot be opened, or closed, without exceeding the gap are decided.
  const double gap = dual.bound - enough();
  std::vector<Index> decided;
  for (const Index j : teams_.needy) {
    if (decisions_.open[j] != kUndecided || decisions_.count[j] > 0) continue;
    const double more = dual.team[j] - teams_.empty[j];
    if (std::abs(more) <= gap) continue;
    decisions_.open[j] = more > 0.0 ? kOpen : kClosed;
    decided.push_back(j);
  }
  const double found = branch_on_task(dual, share, depth);
  for (const Index j : decided) decisions_.open[j] = kUndecided;
  return std::min(found, dual.bound);
}

bool Branching::is_active(Index e, Index j) const {
  return !decisions_.banned[e] && decisions_.open[j] != kClosed && decisions_.fixed[teams_.agent[e]] == kFreeAgent &&
         fits(decisions_.load[j], teams_.use[e], teams_.most[j]);
}

void Branching::release_stranded(Dual& dual) const {
  std::vector<char> has(teams_.n, 0);
  for (Index j = 0; j < teams_.m; ++j) {
    for (Index e = teams_.first[j]; e < teams_.first[j + 1]; ++e) {
      if (is_active(e, j)) has[teams_.agent[e]] = 1;
    }
  }
  for (Index i = 0; i < teams_.n; ++i) {
    if (!has[i]) dual.price[i] = teams_.idle;
  }
}

double Branching::branch_on_task(const Dual& dual, const std::vector<double>& share, Index depth) {
  Index which = -1;
  double least = kInfinity;
  for (const Index j : teams_.needy) {
    if (decisions_.open[j] != kUndecided || decisions_.count[j] > 0) continue;
    const double doubt = std::abs(share[j] - 0.5);
    if (doubt < least) {
      least = doubt;
      which = j;
    }
  }
  if (which < 0) {
    if (flow_ == nullptr) return branch_on_agent(dual, depth);
    Dual leaf = dual;
    bool done = false;
    return bound_by_flow(leaf, done);
  }
  const signed char likely = share[which] >= 0.5 ? kOpen : kClosed;
  double found = -kInfinity;
  for (const signed char state : {likely, static_cast<signed char>(likely == kOpen ? kClosed : kOpen)}) {
    decisions_.open[which] = state;
    found = std::max(found, node(dual, depth + 1));
  }
  decisions_.open[which] = kUndecided;
  return found;
}

double Branching::branch_on_agent(const Dual& dual, Index depth) {
  // The most fractional agent: chosen by several tasks, in parts, or by none although it has a price.
  std::vector<double> doubt(teams_.n, 0.0);
  for (Index i = 0; i < teams_.n; ++i) {
    if (decisions_.fixed[i] != kFreeAgent) continue;
    doubt[i] = dual.demand[i] > 1.0 ? dual.demand[i] : 0.0;
    if (dual.demand[i] < 1.0 && dual.price[i] > teams_.idle) {
      doubt[i] = (1.0 - dual.demand[i]) * std::min(1.0, (dual.price[i] - teams_.idle) / (1e-300 + std::abs(dual.bound)));
    }
  }
  for (std::size_t e = 0; e < teams_.agent.size(); ++e) {
    if (dual.chosen[e] > 1e-9 && dual.chosen[e] < 1.0 - 1e-9) doubt[teams_.agent[e]] += dual.chosen[e];
  }
  const Index agent = std::max_element(doubt.begin(), doubt.end()) - doubt.begin();
  Index pair = -1, task = -1;
  double most = -kInfinity;
  for (Index j = 0; j < teams_.m && teams_.n > 0 && doubt[agent] > 1e-13; ++j) {
    for (Index e = teams_.first[j]; e < teams_.first[j + 1]; ++e) {
      if (teams_.agent[e] != agent || !is_active(e, j)) continue;
      const double wanted = dual.chosen[e] > 0.0 ? 1e30 * dual.chosen[e] : teams_.score[e] - dual.price[agent];
      if (wanted > most) {
        most = wanted;
        pair = e;
        task = j;
      }
    }
  }
  // Where no agent is fractional, the tasks' choices are a plan, worth the bound but for rounding: branch on any pair.
  for (Index j = 0; j < teams_.m && pair < 0; ++j) {
    for (Index e = teams_.first[j]; e < teams_.first[j + 1] && pair < 0; ++e) {
      if (!is_active(e, j)) continue;
      pair = e;
      task = j;
    }
  }
  if (pair < 0) return dual.bound <= enough() ? value : dual.bound;
  const Index i = teams_.agent[pair];
  const signed char before = decisions_.open[task];
  fix_pair(decisions_, teams_, i, task, pair);
  decisions_.open[task] = kOpen;
  double found = node(dual, depth + 1);
  decisions_.open[task] = before;
  release_pair(decisions_, teams_, i, task, pair);
  decisions_.banned[pair] = 1;
  found = std::max(found, node(dual, depth + 1));
  decisions_.banned[pair] = 0;
  return found;
}

void Branching::round(const Dual& dual) {
  // Tasks, by the value of their teams, take the agents they chose that are still free, if those reach the minimum; then
  // other agents join.
  static thread_local std::vector<Index> order;
  std::vector<Index> task(teams_.n, -1);
  std::vector<double> load(teams_.m, 0.0);
  std::vector<char> served(teams_.m, 0);
  order.clear();
  for (Index j = 0; j < teams_.m; ++j) order.push_back(j);
  std::sort(order.begin(), order.end(), [&](Index a, Index b) {
    const double left = dual.team[a] - teams_.empty[a], right = dual.team[b] - teams_.empty[b];
    return left != right ? left > right : a < b;
  });
  std::vector<std::pair<double, Index>> wanted;
  for (const Index j : order) {
    if (decisions_.open[j] == kClosed) continue;
    wanted.clear();
    for (Index e = teams_.first[j]; e < teams_.first[j + 1]; ++e) {
      const Index i = teams_.agent[e];
      const bool fixed = decisions_.fixed[i] == j;
      if (task[i] >= 0 || decisions_.banned[e] || !(fixed || decisions_.fixed[i] == kFreeAgent)) continue;
      wanted.push_back({fixed ? -kInfinity : -(dual.chosen[e] * 1e30 + teams_.score[e] - dual.price[i]), e});
    }
    std::sort(wanted.begin(), wanted.end());
    for (const auto& [key, e] : wanted) {
      const double use = teams_.use[e];
      const bool pays = -key > 0.0 && (dual.chosen[e] > 0.0 || teams_.least[j] == 0.0);
      if ((!pays && reaches(load[j], teams_.least[j])) || !fits(load[j], use, teams_.most[j])) continue;
      task[teams_.agent[e]] = j;
      load[j] += use;
      served[j] = 1;
    }
    if (served[j] && reaches(load[j], teams_.least[j])) continue;
    for (Index& other : task) {
      if (other == j) other = -1;
    }
    load[j] = 0.0;
    served[j] = 0;
  }
  double worth = 0.0;
  for (Index j = 0; j < teams_.m; ++j) {
    double own = 0.0;
    for (Index e = teams_.first[j]; e < teams_.first[j + 1]; ++e) {
      const Index i = teams_.agent[e];
      if (task[i] == j) own += teams_.score[e];
      if (task[i] < 0 && served[j] && teams_.score[e] > teams_.idle && fits(load[j], teams_.use[e], teams_.most[j])) {
        task[i] = j;
        load[j] += teams_.use[e];
        own += teams_.score[e];
      }
    }
    worth += served[j] ? own : teams_.empty[j];
  }
  for (const Index j : task) {
    if (j < 0) worth += teams_.idle;
  }
  offer(task, worth);
}

}  // namespace muster
