// One instance of a batch: living agents and tasks only, with everything that solving derives from the input once.
#pragma once

#include "../arena.hpp"
#include "simd.hpp"
#include "problem.hpp"

namespace muster {

// A capacity is respected up to this share of itself, since sums of contributions are rounded.
constexpr double kCapacityTolerance = 1e-11;
// Numbers beyond this size are refused: sums of them would overflow ...
constexpr double kLargestNumber = 1e100;
// ... and so are contributions and capacities below this size that are not 0: ratios of them would.
constexpr double kSmallestAmount = 1e-100;

// Contributions mu_ij are a_i d_j (a transport problem), or of any kind.
enum class Kind { transport, generalised };

// Task scores: there are none, or they act on the number of agents on each task, or on its load.
enum class PairTerms { none, by_count, by_load };

// Arrays for N agents and M tasks, of which the first n and m are in use.
struct Instance {
  Index n = 0;
  Index m = 0;
  Kind kind = Kind::transport;
  bool has_free_pairs = false;  // some pair takes no capacity
  PairTerms pair_terms = PairTerms::none;
  bool restricted = false;  // arc_score is not just score, and filled
  double idle = 0.0;        // value of leaving an agent out: 0, or very negative where all have to be assigned

  Array1<Index> agents;          // [N] position of each living agent in the input
  Array1<Index> tasks;           // [M]
  Array2<double> score;          // [N, M] h; -infinity where the pair is not allowed
  Array2<double> arc_score;      // [N, M] h where the pair takes capacity and the task has some, else -infinity
  Array2<double> use;            // [N, M] mu
  Array2<double> scaled_use;     // [N, M] mu_ij / u_j, for the generalised simplex
  Array1<double> capacity;       // [M] u
  Array1<double> supply;         // [N] a_i (transport)
  Array1<double> inverse_supply;  // [N] 1 / a_i
  Array1<double> flow_capacity;  // [M] u_j / d_j (transport), or 1 (generalised)
  Array1<double> price_scale;    // [M] turns a dual of the simplex into a price per unit of capacity
  Array1<Index> usable;          // [N] 1 if the agent has a pair that takes capacity
  Array2<double> task_score;     // [M, M] g
  Array2<double> pair_score;     // [M, M] g + g'
};

Instance make_instance(Arena& arena, Index n, Index m, bool with_task_scores);

// Fill the instance from number b of the batch; false if an entry is invalid.
bool fill_instance(Instance& instance, const Problem& problem, Index b, bool assign_all);

// Value of leaving one of n agents out where all have to be assigned, for scores and pair terms of such sizes.
double penalty_of(double low, double high, double steepest, Index n);

// Whether a contribution or capacity is valid.
inline bool is_valid_amount(double value) { return value == 0.0 || (value >= kSmallestAmount && value <= kLargestNumber); }

// Weight of agent i on task j in the quadratic term: 1, or its contribution.
inline double weight(const Instance& instance, Index i, Index j) {
  return instance.pair_terms == PairTerms::by_load ? instance.use(i, j) : 1.0;
}

// Whether a contribution `use` can join a load within the capacity.
inline bool fits(double load, double use, double capacity) {
  return use == 0.0 || load + use <= capacity * (1.0 + kCapacityTolerance);
}

// Largest absolute value of a score, or of a pair of agents' share in the quadratic term.
double score_scale(const Instance& instance);

}  // namespace muster
