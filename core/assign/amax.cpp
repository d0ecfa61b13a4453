#include "amax.hpp"

#include <cmath>

#include "instance.hpp"

namespace muster {

namespace {

// Instances after which a batch asks whether to stop.
constexpr Index kBetweenStops = 64;

bool is_allowed(const Problem& problem, Index b, Index i, Index j) {
  return problem.allowed.layers == 0 || problem.allowed(b, i, j);
}

// Whether every entry that counts is one to be worked with, as for the other methods.
bool is_sound(const Problem& problem, Index b) {
  const Index n = problem.scores.rows, m = problem.scores.columns;
  for (Index j = 0; j < m; ++j) {
    const double capacity = problem.capacities(b, j);
    if (problem.task_alive(b, j) && !is_valid_amount(capacity) && capacity != kInfinity) return false;
  }
  for (Index i = 0; i < n; ++i) {
    if (!problem.agent_alive(b, i)) continue;
    for (Index j = 0; j < m; ++j) {
      if (!problem.task_alive(b, j) || !is_allowed(problem, b, i, j)) continue;
      const double score = problem.scores(b, i, j);
      if (!(std::abs(score) <= kLargestNumber || score == -kInfinity)) return false;
      if (problem.contributions.layers > 0 && !is_valid_amount(problem.contributions(b, i, j))) return false;
    }
  }
  return true;
}

// The task of agent i's largest score above `least`, the first one if several; -1 if there is none.
Index best_task(const Problem& problem, Index b, Index i, double least) {
  double best = least;
  Index where = -1;
  for (Index j = 0; j < problem.scores.columns; ++j) {
    const double score = problem.scores(b, i, j);
    if (problem.task_alive(b, j) && score > best && is_allowed(problem, b, i, j)) {
      best = score;
      where = j;
    }
  }
  return where;
}

}  // namespace

void solve_amax(Index begin, Index end, const Problem& problem, const Settings& settings, const Output& out, Stop& stop) {
  for (Index b = begin; b < end; ++b) {
    if ((b - begin) % kBetweenStops == kBetweenStops - 1 && stop.requested()) {
      for (; b < end; ++b) out.status[b] = kTimeLimit;
      return;
    }
    if (!is_sound(problem, b)) {
      out.status[b] = kInvalid;
      continue;
    }
    double total = 0.0;
    for (Index i = 0; i < problem.scores.rows; ++i) {
      if (!problem.agent_alive(b, i)) continue;
      const Index j = best_task(problem, b, i, settings.assign_all ? -kInfinity : 0.0);
      out.assignment(b, i) = j;
      out.reason(b, i) = j >= 0 ? kAssigned : kNegativeScores;
      if (j >= 0) {
        total += problem.scores(b, i, j);
        out.loads(b, j) += problem.contributions.layers > 0 ? problem.contributions(b, i, j) : 1.0;
      }
    }
    out.objective[b] = out.relaxed[b] = out.bound[b] = total;
    out.duality_gap[b] = out.frank_wolfe_gap[b] = kNaN;
    out.status[b] = kOptimal;
  }
}

}  // namespace muster
