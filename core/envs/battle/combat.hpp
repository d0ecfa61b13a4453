// Attack animations, shots and damage.
#pragma once

#include "layout.hpp"

namespace muster::battle {

// One frame of the unit's animation: walking sets the next speed, attacking leads to the shot.
void animate(const Battle& battle, Index i);

// One frame of every shot: fly, hit, and free the slot when the hit has been shown.
void move_bullets(const Battle& battle);

}  // namespace muster::battle
