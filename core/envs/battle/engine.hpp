// Time: one frame of a battle, and the frames between two decisions.
#pragma once

#include "layout.hpp"

namespace muster::battle {

// Frames after which the order timers of all units are staggered again.
constexpr Index kResetPeriod = 150;

// Whole hit points of so many 1/256: what the game shows, rounded up.
inline Index shown_hit_points(Index exact) { return (exact + 255) >> 8; }

// Hit points of the live units first..last-1 as the game shows them.
Index shown_health(const Battle& battle, Index first, Index last);

// Carry out one decision, or its first `frames` frames, to look at what lies between; nothing if the battle has ended.
//
// `orders` [n_ours]: an enemy's index, HOLD or MARCH.
void run_decision(const Battle& battle, Array1<const Index> orders, Index frames);

// Run the battle up to our first decision, in frame 0: an opponent may be ordered before us.
void run_to_first_decision(const Battle& battle);

}  // namespace muster::battle
