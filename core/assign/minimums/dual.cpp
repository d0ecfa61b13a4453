#include "dual.hpp"

#include <algorithm>
#include <cmath>

namespace muster {

namespace {

struct Candidate {
  double worth;  // score less price
  double use;
  Index pair;

  double ratio() const { return use > 0.0 ? worth / use : worth > 0.0 ? kInfinity : -kInfinity; }
};

// The best team of a task whose agents all contribute the same: the best `fewest`, then more while they pay.
double choose_alike(std::vector<Candidate>& list, Index fewest, Index most, std::vector<double>& chosen) {
  const Index size = static_cast<Index>(list.size());
  if (size < fewest || most < fewest || most < 0) return -kInfinity;
  const auto better = [](const Candidate& a, const Candidate& b) { return a.worth > b.worth; };
  if (most < size) std::nth_element(list.begin(), list.begin() + most, list.end(), better);
  const Index kept = std::min(most, size);
  if (fewest < kept) std::nth_element(list.begin(), list.begin() + fewest, list.begin() + kept, better);
  double total = 0.0;
  for (Index a = 0; a < kept; ++a) {
    if (a < fewest || list[a].worth > 0.0) {
      total += list[a].worth;
      chosen[list[a].pair] = 1.0;
    }
  }
  return total;
}

// The best fractional team: agents of positive worth by worth per contribution, then those that cost least, until the
// minimum is reached.
double choose_parts(std::vector<Candidate>& list, double least, double most, std::vector<double>& chosen) {
  std::sort(list.begin(), list.end(), [](const Candidate& a, const Candidate& b) {
    const double left = a.ratio(), right = b.ratio();
    return left != right ? left > right : a.pair < b.pair;
  });
  double total = 0.0, load = 0.0;
  const double slack = kCapacityTolerance * std::max(1.0, least);
  for (const Candidate& one : list) {
    if (one.use == 0.0) {
      if (one.worth > 0.0) {
        total += one.worth;
        chosen[one.pair] = 1.0;
      }
      continue;
    }
    const double left = one.worth > 0.0 ? most - load : std::min(most, least) - load;
    if (left <= slack) continue;
    const double part = std::min(1.0, left / one.use);
    total += part * one.worth;
    load += part * one.use;
    chosen[one.pair] = part;
  }
  return load >= least - 2.0 * slack ? total : -kInfinity;
}

// The best team of at most two agents, found without a list.
double choose_few(const Dual& dual, const Teams& teams, const Decisions& decisions, Index j, Index fewest, Index most,
                  std::vector<double>& chosen) {
  double best = -kInfinity, second = -kInfinity;
  Index first_pair = -1, second_pair = -1;
  for (Index e = teams.first[j]; e < teams.first[j + 1]; ++e) {
    const double worth = teams.score[e] - dual.price[teams.agent[e]];
    if (worth <= second || decisions.banned[e] || decisions.fixed[teams.agent[e]] != kFreeAgent) continue;
    if (worth > best) {
      second = best;
      second_pair = first_pair;
      best = worth;
      first_pair = e;
    } else {
      second = worth;
      second_pair = e;
    }
  }
  double total = 0.0;
  if (most >= 1 && (fewest >= 1 || best > 0.0)) {
    if (first_pair < 0) return -kInfinity;
    total += best;
    chosen[first_pair] = 1.0;
    if (most >= 2 && (fewest >= 2 || second > 0.0)) {
      if (second_pair < 0) return -kInfinity;
      total += second;
      chosen[second_pair] = 1.0;
    }
  }
  return total;
}

}  // namespace

Decisions make_decisions(const Teams& teams) {
  Decisions decisions;
  decisions.open.assign(teams.m, kOpen);
  for (const Index j : teams.needy) decisions.open[j] = kUndecided;
  decisions.fixed.assign(teams.n, kFreeAgent);
  decisions.banned.assign(teams.agent.size(), 0);
  decisions.load.assign(teams.m, 0.0);
  decisions.value.assign(teams.m, 0.0);
  decisions.count.assign(teams.m, 0);
  return decisions;
}

void fix_pair(Decisions& decisions, const Teams& teams, Index i, Index j, Index e) {
  decisions.fixed[i] = j;
  decisions.load[j] += teams.use[e];
  decisions.value[j] += teams.score[e];
  decisions.count[j] += 1;
}

void release_pair(Decisions& decisions, const Teams& teams, Index i, Index j, Index e) {
  decisions.fixed[i] = kFreeAgent;
  decisions.count[j] -= 1;
  decisions.load[j] = decisions.count[j] == 0 ? 0.0 : decisions.load[j] - teams.use[e];
  decisions.value[j] = decisions.count[j] == 0 ? 0.0 : decisions.value[j] - teams.score[e];
}

Dual make_dual(const Teams& teams) {
  Dual dual;
  dual.price.assign(teams.n, teams.idle);
  dual.team.assign(teams.m, 0.0);
  dual.chosen.assign(teams.agent.size(), 0.0);
  dual.demand.assign(teams.n, 0.0);
  return dual;
}

void evaluate(Dual& dual, const Teams& teams, const Decisions& decisions) {
  static thread_local std::vector<Candidate> list;
  std::fill(dual.chosen.begin(), dual.chosen.end(), 0.0);
  std::fill(dual.demand.begin(), dual.demand.end(), 0.0);
  double total = 0.0;
  for (Index i = 0; i < teams.n; ++i) {
    if (decisions.fixed[i] == kFreeAgent) {
      total += dual.price[i];
    } else if (decisions.fixed[i] < 0) {
      total += teams.idle;
    }
  }
  for (Index j = 0; j < teams.m; ++j) {
    const Index begin = teams.first[j], end = teams.first[j + 1];
    if (decisions.open[j] == kClosed) {
      dual.team[j] = -kInfinity;
      total += decisions.count[j] > 0 ? -kInfinity : teams.empty[j];
      continue;
    }
    const Index placed = decisions.count[j];
    const Index fewest = std::max(Index{0}, teams.fewest_agents[j] - placed), most = teams.most_agents[j] - placed;
    double worth;
    if (teams.uniform && (most <= 2 || end - begin <= 2)) {
      worth = most < fewest || fewest > 2 ? -kInfinity : choose_few(dual, teams, decisions, j, fewest, most, dual.chosen);
    } else {
      list.clear();
      for (Index e = begin; e < end; ++e) {
        const Index i = teams.agent[e];
        if (decisions.banned[e] || decisions.fixed[i] != kFreeAgent) continue;
        if (!teams.uniform && !fits(decisions.load[j], teams.use[e], teams.most[j])) continue;
        list.push_back({teams.score[e] - dual.price[i], teams.use[e], e});
      }
      worth = teams.uniform                                     ? choose_alike(list, fewest, most, dual.chosen)
              : !fits(0.0, decisions.load[j], teams.most[j]) ? -kInfinity
                                                               : choose_parts(list, std::max(0.0, teams.least[j] - decisions.load[j]),
                                           teams.most[j] * (1.0 + kCapacityTolerance) - decisions.load[j], dual.chosen);
    }
    worth += decisions.value[j];
    dual.team[j] = worth;
    const bool may_close = decisions.open[j] == kUndecided && placed == 0;
    if (may_close && worth <= teams.empty[j]) {
      std::fill(dual.chosen.begin() + begin, dual.chosen.begin() + end, 0.0);
      worth = teams.empty[j];
    }
    total += worth;
    for (Index e = begin; e < end; ++e) {
      if (dual.chosen[e] > 0.0) dual.demand[teams.agent[e]] += dual.chosen[e];
    }
  }
  dual.bound = total;
}

void descend(Dual& dual, const Teams& teams, const Decisions& decisions, double lower, double enough, Index steps,
             std::vector<double>& share, Stop& stop) {
  std::fill(share.begin(), share.end(), 0.0);
  evaluate(dual, teams, decisions);
  Dual here = dual;
  std::vector<double> direction(teams.n, 0.0);
  double length = 1.0;
  Index since = 0, taken = 0;
  for (; taken < steps && dual.bound > enough && here.bound > -kInfinity; ++taken) {
    if ((taken & 15) == 0 && stop.requested()) break;
    double norm = 0.0;
    for (Index i = 0; i < teams.n; ++i) {
      if (decisions.fixed[i] != kFreeAgent) continue;
      double change = here.demand[i] - 1.0;
      if (change < 0.0 && here.price[i] <= teams.idle) change = 0.0;
      direction[i] = 0.3 * direction[i] + change;
      if (direction[i] < 0.0 && here.price[i] <= teams.idle) direction[i] = 0.0;
      norm += direction[i] * direction[i];
    }
    if (norm < 1e-20) break;
    const double target = lower > -kInfinity ? lower : here.bound - 0.05 * std::abs(here.bound);
    const double step = length * std::max(here.bound - target, 1e-9 * std::abs(here.bound)) / norm;
    for (Index i = 0; i < teams.n; ++i) {
      if (decisions.fixed[i] == kFreeAgent) here.price[i] = std::max(teams.idle, here.price[i] + step * direction[i]);
    }
    evaluate(here, teams, decisions);
    for (const Index j : teams.needy) share[j] += decisions.open[j] != kClosed && here.team[j] > teams.empty[j] ? 1.0 : 0.0;
    if (here.bound < dual.bound - 1e-12 * std::abs(dual.bound)) {
      dual = here;
      since = 0;
    } else if (++since >= 8) {
      length *= 0.6;
      since = 0;
      if (length < 1e-4) break;
    }
  }
  for (const Index j : teams.needy) {
    share[j] = taken > 0 ? share[j] / static_cast<double>(taken)
                         : (decisions.open[j] != kClosed && dual.team[j] > teams.empty[j] ? 1.0 : 0.0);
  }
}

}  // namespace muster
