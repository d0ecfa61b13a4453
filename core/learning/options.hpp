// The options that agents had in one state of the decisions: their utilities and chances (see choices.hpp).
#pragma once

#include <algorithm>
#include <limits>
#include <numbers>

#include "arena.hpp"
#include "learning/choices.hpp"
#include "models/elementary.hpp"

namespace muster {

// One state at a time, and in it one agent after the other.
class Options {
 public:
  // Temperature of an exchange by that of a move.
  static constexpr double kExchange = std::numbers::sqrt2;

  Options(const Decisions& decisions, Arena& arena)
      : n(decisions.assignment.columns),
        m(decisions.capacities.columns),
        count((m + 1 + n + kLanes - 1) / kLanes * kLanes),
        counts(arena.make1<double>(m)),
        utility(arena.make1<double>(count)),
        chance(arena.make1<double>(count)),
        decisions_(decisions),
        load_(arena.make1<double>(m)),
        limit_(arena.make1<double>(m)),
        join_(arena.zeros1<double>(m)),
        least_(arena.zeros1<double>(m)),
        team_(arena.zeros1<double>(m)),
        both_(arena.make2<float>(m, m)),
        value_(arena.make2<double>(n, m)),
        exchange_(arena.make2<double>(n, n)) {
    std::fill_n(utility.data, count, kNone);
  }

  // A state: the loads of the tasks and their numbers of agents.
  void begin(Index s) {
    slot_ = s;
    std::fill_n(load_.data, m, 0.0);
    std::fill_n(counts.data, m, 0.0);
    for (Index i = 0; i < n; ++i) {
      const Index j = own(i);
      if (j < 0 || !alive(i)) continue;
      load_[j] += contribution(i, j);
      counts[j] += 1.0;
    }
    for (Index j = 0; j < m; ++j) limit_[j] = decisions_.capacities(s, j) * (1.0 + kCapacityTolerance);
    for (Index j = 0; j < m && has_minimums(); ++j) least_[j] = decisions_.minimums(s, j) * (1.0 - kCapacityTolerance);
  }

  // The same with scores: the utilities of joining each task and of every exchange.
  void begin(Index s, const ChoiceScores& scores) {
    begin(s);
    tau_ = scores.tau;
    const float* const h = scores.h.layer(s).data;
    const float* const history = decisions_.history.layer(s).data;
    for (Index k = 0; k < n * m; ++k) value_.data[k] = static_cast<double>(h[k]) + history[k];
    pairs_ = scores.g.layers > 0;
    if (pairs_) weigh_joining(scores.g.layer(s));
    if (has_minimums()) {
      std::fill_n(team_.data, m, 0.0);
      for (Index i = 0; i < n; ++i) {
        if (alive(i) && own(i) >= 0) team_[own(i)] += value_(i, own(i));
      }
    }
    std::fill_n(exchange_.data, n * n, kNone);
    if (!decisions_.exchanging) return;
    for (Index i = 0; i < n; ++i) {
      for (Index k = i + 1; k < n && alive(i); ++k) {
        if (alive(k) && may_exchange(i, k)) {
          exchange_(i, k) = exchange_(k, i) = worth_of_exchange(i, k) / (kExchange * tau_);
        }
      }
    }
  }

  Index own(Index i) const { return decisions_.assignment(slot_, i); }
  bool alive(Index i) const { return decisions_.agent_alive(slot_, i); }

  // Whether agent i's task would fall below its minimum without it: then all its agents leave, and their values are lost.
  bool is_needed(Index i) const {
    const Index j = own(i);
    return has_minimums() && j >= 0 && load_[j] - contribution(i, j) < least_[j];
  }

  // Whether agent i had a choice of its own, given the others' tasks.
  bool has_moves(Index i) const {
    Index options = decisions_.idling || own(i) < 0 ? 1 : 0;
    for (Index j = 0; j < m; ++j) options += j == own(i) || fits(i, j, load_[j]);
    return options > 1;
  }

  // Set utilities by tau and chances of agent i's options: tasks, idling, exchanges. False where it had only one.
  bool weigh(Index i) {
    const Index mine = own(i);
    const double* const value = value_.row(i).data;
    const double* const use = decisions_.contributions.row(slot_, i).data;
    const bool* const open = decisions_.open.row(slot_, i).data;
    const double* const load = load_.data;
    const double* const limit = limit_.data;
    const double* const least = least_.data;
    double* __restrict const to = utility.data;
    for (Index j = 0; j < m; ++j) to[j] = value[j];
    if (pairs_) add_joining(mine, to);
    if (is_needed(i)) to[mine] += team_[mine] - value[mine];
    const double kept = mine >= 0 ? to[mine] / tau_ : 0.0;
    for (Index j = 0; j < m; ++j) {
      const bool within = (use[j] == 0.0) | (load[j] + use[j] <= limit[j]);
      const bool fits = open[j] & within & (load[j] + use[j] >= least[j]);
      to[j] = fits ? to[j] / tau_ : kNone;
    }
    if (mine >= 0) to[mine] = kept;
    to[m] = decisions_.idling ? weigh_idling() : mine < 0 ? 0.0 : kNone;
    const double* const exchange = exchange_.row(i).data;
    for (Index k = 0; k < n; ++k) to[m + 1 + k] = to[mine >= 0 ? mine : m] + exchange[k];
    return weigh_utilities();
  }

  // Slope of the utility of idling in that of each task is this times the task's chance.
  double idling_slope() const {
    if (!decisions_.idling || idling_slope_ == 0.0) return 0.0;
    double all = 0.0;
    for (Index j = 0; j < m; ++j) all += chance[j];
    return all > 0.0 ? idling_slope_ / all : 0.0;
  }

  // The log of an option's chance is its utility less this.
  double shift() const { return best_ + log_total_; }

  double log_likelihood(Index i) const { return std::max(utility[own(i) >= 0 ? own(i) : m] - shift(), kLeastLikelihood); }

  double entropy() const {
    double part[kLanes] = {};
    for (Index j = 0; j < count; j += kLanes) {
      for (Index lane = 0; lane < kLanes; ++lane) {
        const double p = chance[j + lane], log_chance = utility[j + lane] - shift();
        part[lane] -= p > 0.0 ? p * log_chance : 0.0;
      }
    }
    return (part[0] + part[2]) + (part[1] + part[3]);
  }

  Index n, m;
  Index count;  // of options, rounded up to whole lanes
  Array1<double> counts;   // [M] agents on each task
  Array1<double> utility;  // [count] by tau; -inf where there is no such option
  Array1<double> chance;   // [count]

 private:
  // A capacity is respected up to this share of itself, since sums of contributions are rounded.
  static constexpr double kCapacityTolerance = 1e-11;
  static constexpr double kNone = -std::numeric_limits<double>::infinity();
  static constexpr double kLeastLikelihood = -690.7755278982137;  // log 1e-300
  static constexpr Index kLanes = 4;
  // log lambda from which lambda grows linearly: inference that is not exact also idles where noise hardly ever would.
  static constexpr double kLargestLogLambda = 2.0;

  bool has_minimums() const { return decisions_.minimums.rows > 0; }
  double contribution(Index i, Index j) const { return decisions_.contributions(slot_, i, j); }

  bool fits(Index i, Index j, double load) const {
    const double use = contribution(i, j);
    return decisions_.open(slot_, i, j) && (use == 0.0 || load + use <= limit_[j]) && load + use >= least_[j];
  }

  bool may_exchange(Index i, Index k) const {
    const Index mine = own(i), theirs = own(k);
    if (mine == theirs) return false;
    if (theirs >= 0 && !fits(i, theirs, load_[theirs] - contribution(k, theirs))) return false;
    return mine < 0 || fits(k, mine, load_[mine] - contribution(i, mine));
  }

  // Gain of h when agents i and k exchange tasks.
  double worth_of_exchange(Index i, Index k) const {
    const Index mine = own(i), theirs = own(k);
    double gain = 0.0;
    if (mine >= 0) gain += value_(k, mine) - value_(i, mine);
    if (theirs >= 0) gain += value_(i, theirs) - value_(k, theirs);
    return gain;
  }

  // (g + g') counts + diag g: what one more agent on a task adds to the task-task term.
  void weigh_joining(Array2<const float> g) {
    for (Index j = 0; j < m; ++j) {
      join_[j] = g(j, j);
      for (Index k = 0; k < m; ++k) both_(j, k) = g(j, k) + g(k, j);
    }
    double* __restrict const join = join_.data;
    for (Index k = 0; k < m; ++k) {
      const float* const row = both_.row(k).data;
      const double agents = counts[k];
      for (Index j = 0; j < m; ++j) join[j] += row[j] * agents;
    }
  }

  // The same for an agent on task `mine`, which does not join itself.
  void add_joining(Index mine, double* __restrict to) const {
    const double* const join = join_.data;
    for (Index j = 0; j < m; ++j) to[j] += join[j];
    if (mine < 0) return;
    const float* const row = both_.row(mine).data;
    for (Index j = 0; j < m; ++j) to[j] -= row[j];
  }

  // Utility of idling beside those of the tasks: worth 0 without noise, it is taken if the best task with its noise is
  // worth less. The maximum of Gumbel variables is one itself, so that happens with probability exp(-lambda), where
  // log lambda = log sum exp(utilities of the tasks) - gamma, against 1 - exp(-lambda).
  double weigh_idling() {
    double best = kNone, total = 0.0;
    for (Index j = 0; j < m; ++j) best = std::max(best, utility[j]);
    idling_slope_ = 0.0;
    if (best == kNone) return std::numbers::egamma;
    for (Index j = 0; j < m; ++j) total += exp_fixed(utility[j] - best);
    const double tasks = best + log_fixed(total), log_lambda = tasks - std::numbers::egamma;
    const double within = std::min(log_lambda, kLargestLogLambda), rate = exp_fixed(within);
    const double lambda = rate * (1.0 + log_lambda - within);
    if (lambda < 1e-4) {
      idling_slope_ = -0.5 * lambda;
      return std::numbers::egamma - 0.5 * lambda;
    }
    const double missed = exp_fixed(-lambda);
    idling_slope_ = 1.0 - rate / (1.0 - missed);
    return tasks - lambda - log_fixed(1.0 - missed);
  }

  bool weigh_utilities() {
    double most[kLanes] = {kNone, kNone, kNone, kNone};
    Index options = 0;
    for (Index j = 0; j < count; j += kLanes) {
      for (Index lane = 0; lane < kLanes; ++lane) {
        const double u = utility[j + lane];
        most[lane] = u > most[lane] ? u : most[lane];
        options += u > kNone;
      }
    }
    if (options < 2) return false;
    best_ = std::max(std::max(most[0], most[1]), std::max(most[2], most[3]));
    double part[kLanes] = {};
    double* __restrict const chances = chance.data;
    const double* const utilities = utility.data;
    const double best = best_;
    for (Index j = 0; j < count; ++j) chances[j] = exp_fixed(utilities[j] - best);
    for (Index j = 0; j < count; j += kLanes) {
      for (Index lane = 0; lane < kLanes; ++lane) part[lane] += chances[j + lane];
    }
    const double total = (part[0] + part[2]) + (part[1] + part[3]);
    log_total_ = log_fixed(total);
    for (Index j = 0; j < count; ++j) chances[j] /= total;
    return true;
  }

  const Decisions& decisions_;
  Array1<double> load_;
  Array1<double> limit_;     // [M] capacities with their tolerance
  Array1<double> join_;      // [M]
  Array1<double> least_;     // [M] minimums with their tolerance, 0 where there are none
  Array1<double> team_;      // [M] value of all agents on each task, where there are minimums
  Array2<float> both_;       // [M, M] g + g'
  Array2<double> value_;     // [N, M] h with its history
  Array2<double> exchange_;  // [N, N] worth of an exchange by its temperature; -inf where it cannot be
  Index slot_ = 0;
  bool pairs_ = false;
  double tau_ = 1.0, best_ = 0.0, log_total_ = 0.0, idling_slope_ = 0.0;
};

}  // namespace muster
