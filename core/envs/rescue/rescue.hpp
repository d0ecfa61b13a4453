// Search and rescue: ambulances on a grid, one king's move a step, pick up victims. Cells are (row, column).
#pragma once

#include <cstdint>

#include "../../array.hpp"
#include "../step_result.hpp"
#include "mud.hpp"

namespace muster::rescue {

enum Axis : Index { kRow, kColumn };
enum class Placement : Index { distinct, distinct_within_type, independent };

constexpr double kStepReward = -0.01;

struct Settings {
  Placement placement;
  Index height;
  Index width;
  bool random_moves;
  bool solved_assignable;
  Index max_steps;
  double mud;  // share of muddy cells; 0 for dry ground, which has no arrays
};

// The state of B episodes with N ambulances and M victims each. Every function touches its own slots only.
struct Rescue {
  Array1<std::uint64_t> rng;
  Array3<Index> agents;   // [B, N, 2]
  Array3<Index> victims;  // [B, M, 2]
  Array2<bool> waiting;   // [B, M] not picked up
  Array1<Index> steps;
  Array1<bool> running;
  Array2<Index> assigned;  // [B, N] what was carried out last
  Ground ground;
};

inline Index sign(Index x) { return (x > 0) - (x < 0); }

// Reset slots[k] to the first state of the episode of seeds[k].
void reset(const Rescue& rescue, const Settings& settings, Array1<const Index> slots, Array1<const std::uint64_t> seeds);

// In every slot from begin to before end whose episode goes on: move, then pick up the victims that are reached.
void step(const Rescue& rescue, const Settings& settings, Array2<const Index> assignment, Index begin, Index end,
          const StepResult& result);

}  // namespace muster::rescue
