// Ground movement: a small state machine that never lets two boxes overlap.
#pragma once

#include "layout.hpp"

namespace muster::battle {

// One frame of a ground unit.
void move_walker(const Battle& battle, Index i);

}  // namespace muster::battle
