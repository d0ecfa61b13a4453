// Where a walker goes next: straight on, or round the corner of a unit that stands in the way.
#pragma once

#include "movement.hpp"

namespace muster::battle {

// Whether unit i could not stand at (x, y) for another unit.
bool blocked_at(const Battle& battle, Index i, Index x, Index y, bool standing_only);

// Set the next waypoint towards the move target of unit i, and face it.
//
// That is the straight line, or else the cheapest free corner of the first obstacle on it (and of what stands before
// that corner, a few times over). Obstacles are the units that stand, `considered` (>= 0) and, with `movers`, all units.
// With no free corner the walker goes straight on.
void plan_path(const Battle& battle, Index i, Index considered, bool movers);

}  // namespace muster::battle
