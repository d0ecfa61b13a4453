#include "amax.hpp"

#include <cmath>

#include "instance.hpp"

namespace muster {

namespace {

// Instances between two checks of the stop.
constexpr Index kInstancesBetweenStops = 64;

// Whether all tasks of instance b are alive and all pairs allowed: then rows are scanned with SIMD.
bool is_open(const Problem& problem, Index b) {
  Index absent = 0;
  for (const bool alive : problem.task_alive.row(b)) absent += !alive;
  return absent == 0 && problem.allowed.layers == 0;
}

bool counts(const Problem& problem, Index b, Index i, Index j) {
  return problem.task_alive(b, j) && (problem.allowed.layers == 0 || problem.allowed(b, i, j));
}

bool is_valid_score(double score) { return std::abs(score) <= kLargestNumber || score == -kInfinity; }

// Whether every entry of agent i that counts is valid, as for the other methods.
bool is_sound(const Problem& problem, Index b, Index i, bool open) {
  const Array1<const double> scores = problem.scores.row(b, i);
  const bool plain = problem.contributions.layers == 0;
  if (open && plain) {
    const Extent own = extent(scores.data, scores.size);
    if (own.low >= -kLargestNumber && own.high <= kLargestNumber) return true;
  }
  for (Index j = 0; j < scores.size; ++j) {
    if (!counts(problem, b, i, j)) continue;
    if (!is_valid_score(scores[j])) return false;
    if (!plain && !is_valid_amount(problem.contributions(b, i, j))) return false;
  }
  return true;
}

bool is_sound(const Problem& problem, Index b, bool open) {
  for (Index j = 0; j < problem.scores.columns; ++j) {
    const double capacity = problem.capacities(b, j);
    if (problem.task_alive(b, j) && !is_valid_amount(capacity) && capacity != kInfinity) return false;
  }
  for (Index i = 0; i < problem.scores.rows; ++i) {
    if (problem.agent_alive(b, i) && !is_sound(problem, b, i, open)) return false;
  }
  return true;
}

// The task of agent i's largest score above `least`, the first one if several; -1 if there is none.
Index best_task(const Problem& problem, Index b, Index i, double least, bool open) {
  const Array1<const double> scores = problem.scores.row(b, i);
  if (open) {
    const double best = largest(scores.data, scores.size);
    return best > least ? index_of(best, scores.data, scores.size) : -1;
  }
  double best = least;
  Index where = -1;
  for (Index j = 0; j < scores.size; ++j) {
    if (scores[j] > best && counts(problem, b, i, j)) {
      best = scores[j];
      where = j;
    }
  }
  return where;
}

}  // namespace

void solve_amax(Index begin, Index end, const Problem& problem, const Settings& settings, const Output& out, Stop& stop) {
  for (Index b = begin; b < end; ++b) {
    if ((b - begin) % kInstancesBetweenStops == kInstancesBetweenStops - 1 && stop.requested()) {
      for (; b < end; ++b) out.status[b] = kTimeLimit;
      return;
    }
    const bool open = is_open(problem, b);
    if (!is_sound(problem, b, open)) {
      out.status[b] = kInvalid;
      continue;
    }
    double total = 0.0;
    for (Index i = 0; i < problem.scores.rows; ++i) {
      if (!problem.agent_alive(b, i)) continue;
      const Index j = best_task(problem, b, i, settings.assign_all ? -kInfinity : 0.0, open);
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
