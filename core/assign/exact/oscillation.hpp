// Integer assignments under tight capacities: a tabu search that crosses what the capacities forbid.
//
// Measured by the prices pi of the linear programme, every assignment falls short of its bound by
//
//   sum_i loss[i, task_i] + sum_j pi_j (capacity_j - load_j),   loss_ij = y_i - (h_ij - mu_ij pi_j) >= 0,
//
// so only pairs of small loss are worth a look. A step is the best move or swap of all under that measure, where a unit
// beyond a capacity costs a penalty: it grows while the capacity is exceeded and shrinks while none is, so the search
// swings from one side of the border to the other (Glover's strategic oscillation; Díaz and Fernández 2001). A pair that
// was just left is tabu for a few steps.
//
// Being left out is a choice like the others: task m, which has capacity for all.
#pragma once

#include <cstdint>

#include "../../stop.hpp"
#include "../instance.hpp"

namespace muster {

// Choices of each agent that are looked at, those of least loss.
inline constexpr Index kChoices = 6;
// Gains below this share of the bound are rounding errors.
inline constexpr double kOscillationTolerance = 1e-11;

// An instance measured by prices, and the state of the search.
struct Oscillation {
  double bound = 0.0;           // upper bound by the prices
  double value = 0.0;           // of the best assignment found, with the penalty for agents left out
  double goal = 0.0;            // upper bound that ends the search when reached
  Index steps = 0;              // taken so far
  Index work = 0;               // pairs compared since the last look at the clock
  std::uint64_t random = 1;     // state of the random numbers
  Array2<double> loss;          // [M + 1, N] infinite for pairs that are impossible
  Array2<double> use;           // [M + 1, N]
  Array1<double> capacity;      // [M + 1] finite, with the tolerance of capacities
  Array1<double> price;         // [M + 1]
  Array1<double> penalty;       // [M + 1] cost of a unit beyond the capacity, ...
  Array1<double> first_penalty; // [M + 1] ... and at first
  Array1<double> cost;          // [M + 1] of the present loads
  Array2<Index> choice;         // [N, kChoices] tasks by increasing loss
  Array1<Index> choices;        // [N] how many
  Array1<Index> task;           // [N] the present assignment
  Array1<double> own_loss;      // [N] loss and contribution at that task
  Array1<double> own_use;       // [N]
  Array1<double> load;          // [M + 1]
  Array1<Index> head;           // [M + 1] first agent of each task, -1 for none
  Array1<Index> next;           // [N] next and previous agent of the same task
  Array1<Index> previous;       // [N]
  Array2<std::int32_t> tabu;    // [M + 1, N] the step until which the agent may not come back
  Array1<Index> found;          // [N] the best assignment found
};

Oscillation make_oscillation(Arena& arena, Index n, Index m);

// Set losses under the prices of tasks, the choices worth a look, and the bound that the prices prove.
void start_oscillation(Oscillation& oscillation, const Instance& instance, const Array1<double>& prices);

// Take up to `steps` steps from `task`, fewer if `patience` many find nothing better than `value`; `found` has the best.
void oscillate(Oscillation& oscillation, const Instance& instance, Index steps, Index patience, Stop& stop);

// A random number in [0, 1).
inline double draw(Oscillation& oscillation) {
  oscillation.random = oscillation.random * 6364136223846793005u + 1442695040888963407u;
  return static_cast<double>(oscillation.random >> 33) / 2147483648.0;
}

}  // namespace muster
