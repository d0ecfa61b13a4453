// Collisions of walkers: slide along a unit, push it, or wait.
#pragma once

#include "paths.hpp"

namespace muster::battle {

enum class Response { kStay, kStayImmovable, kReplan, kReplanAroundMovers, kTurnAndStart, kWait, kSlide };

// Choose what unit i does about having run into unit c; may set the slide direction.
Response respond_to_collision(const Battle& battle, Index i, Index c);

}  // namespace muster::battle
