// Pursuit: evaders on a grid flee, and are caught where enough pursuers stand beside them. Cells are (row, column), distances
// king's moves. Every function touches its own slots only, and nothing depends on how pursuers or evaders are numbered: ties
// are decided by cell or by the evader's own random stream.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "../../array.hpp"
#include "../step_result.hpp"

namespace muster::pursuit {

enum Axis : Index { kRow, kColumn };

constexpr Index kFar = std::numeric_limits<Index>::max();

struct Settings {
  Index height;
  Index width;
  bool walls;    // otherwise the grid wraps round
  Index needed;  // pursuers that catch an evader
  Index sight;   // cells from which an evader sees a pursuer
  double speed;  // chance that an evader moves in a step
  Index max_steps;
};

// The state of B episodes with N pursuers and M evaders each.
struct Pursuit {
  Array3<Index> pursuers;     // [B, N, 2]
  Array3<Index> evaders;      // [B, M, 2]; of one that is caught, where it was
  Array2<bool> free;          // [B, M] not caught
  Array3<Index> moves;        // [B, M, 2] each evader's last move
  Array2<Index> targets;      // [B, N] the evader that each pursuer went for last; -1 for none
  Array2<std::uint64_t> rng;  // [B, M] a random stream for each evader
  Array1<Index> steps;
  Array1<bool> running;
};

// Steps from `here` to `there` along one axis, with a sign; without walls the shorter way round.
inline Index steps_to(Index here, Index there, Index size, bool walls) {
  Index way = there - here;
  if (!walls) {
    // Exactly half way round both ways are as long, and the sign follows from the cells alone.
    if (2 * way > size) {
      way -= size;
    } else if (2 * way < -size) {
      way += size;
    }
  }
  return way;
}

// The same without a sign, and without a branch to mispredict: for coordinates at most `size` apart.
inline Index steps_apart(Index here, Index there, Index size, bool walls) {
  const Index way = std::abs(there - here);
  return walls ? way : std::min(way, size - way);
}

// King's moves from (row, column) to `cell`.
inline Index distance(Index row, Index column, const Index* cell, const Settings& settings) {
  return std::max(steps_apart(row, cell[kRow], settings.height, settings.walls),
                  steps_apart(column, cell[kColumn], settings.width, settings.walls));
}
inline Index distance(const Index* a, const Index* b, const Settings& settings) {
  return distance(a[kRow], a[kColumn], b, settings);
}

// Pursuers within a king's move of the evader.
inline Index count_beside(Array2<Index> pursuers, const Index* evader, const Settings& settings) {
  Index count = 0;
  for (Index i = 0; i < pursuers.rows; ++i) count += distance(&pursuers(i, kRow), evader, settings) <= 1;
  return count;
}

// Reset slots[k] to the first state of the episode of seeds[k]: all on distinct cells, uniformly at random.
void reset(const Pursuit& pursuit, const Settings& settings, Array1<const Index> slots, Array1<const std::uint64_t> seeds);

// One step of the slots from begin to before end: pursuers move, evaders that enough of them stand beside are caught, and
// the others may flee.
void step(const Pursuit& pursuit, const Settings& settings, Array2<const Index> assignment, Index begin, Index end,
          const StepResult& result);

}  // namespace muster::pursuit
