// A batch of assignment problems as it comes from Python, how to solve it, and where the answers go.
#pragma once

#include "../array.hpp"

namespace muster {

// B instances of N agents and M tasks. Blocks that are not given have no layers.
struct Problem {
  Array3<const double> scores;         // [B, N, M]
  Array3<const double> task_scores;    // [B, M, M], or none
  Array3<const double> contributions;  // [B, N, M], or none for 1
  Array2<const double> capacities;     // [B, M]
  Array2<const bool> agent_alive;      // [B, N]
  Array2<const bool> task_alive;       // [B, M]
  Array3<const bool> allowed;          // [B, N, M], or none for all; other entries of a pair that is not are never read
  bool by_load = false;                // task scores act on contributions instead of numbers of agents (QUAD)
};

enum Effort : Index { kPaper, kFast, kBest };
enum Rounding : Index { kStrict, kOriginal };

struct Settings {
  Index effort = kFast;
  Index steps = 0;  // of Frank-Wolfe
  Index rounding = kStrict;
  bool assign_all = false;
  Index rounds = 0;          // further starts of LP's integer search, of QUAD and of routes
  bool certify = true;
  bool report_proof = true;  // otherwise LP omits the proof where its rounding lost nothing
  bool prove = false;        // search until optimality is proven
};

// As muster.assign names them, in this order; kInvalid (an invalid entry) is never shown.
enum Status : Index {
  kOptimal,
  kRounded,
  kLocalOptimum,
  kConverged,
  kStalled,
  kIterationLimit,
  kTimeLimit,
  kInvalid,
  kIncomplete
};

// Why an agent has no task.
enum Reason : Index { kAssigned, kNegativeScores, kNoCapacity, kBetterLeftOut, kNotAlive, kBelowMinimum };

// The fields of a Solution, a row for each instance.
struct Output {
  Array2<Index> assignment;
  Array1<double> objective;
  Array1<double> relaxed;
  Array1<double> bound;
  Array1<Index> status;
  Array1<double> duality_gap;
  Array1<double> frank_wolfe_gap;
  Array2<double> loads;
  Array2<double> prices;
  Array2<Index> reason;
};

}  // namespace muster
