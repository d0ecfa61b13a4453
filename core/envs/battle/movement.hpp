// How one unit turns, speeds up and steps; how flyers push each other apart.
#pragma once

#include "geometry.hpp"

namespace muster::battle {

// Whether the unit stands on its move target.
inline bool at_target(Unit unit) { return unit[PX] == unit[TARGET_X] && unit[PY] == unit[TARGET_Y]; }

// Way that the unit still makes when it brakes now, in 1/256 px; 0 for walkers.
inline Index halt_distance(Unit unit, const Index* type) {
  const Index speed = unit[SPEED];
  if (type[T_FLYER] == 0 || speed == 0) return 0;
  return speed == type[T_TOP] ? type[T_HALT] : speed * speed / type[T_ACCEL] / 2;
}

// Send the unit to a point, or to where `target` (>= 0) stands; does nothing if it is already under way there.
void set_move_target(Unit unit, Index x, Index y, Index target);

// Make the unit stay here; a flyer under way heads for the point at which it can halt.
void stop_unit(Unit unit, const Index* type);

// Velocity direction after one frame's turn towards `desired`; flyers swing it at half their turn rate.
inline std::int32_t turn_velocity(Unit unit, const Index* type, Index desired) {
  const Index rate = type[T_FLYER] ? type[T_TURN] / 2 : type[T_TURN];
  return static_cast<std::int32_t>((unit[VELOCITY_DIR] + std::clamp(wrap(desired - unit[VELOCITY_DIR]), -rate, rate)) & 255);
}

// Work out this frame's step into the PLAN rows (and CURRENT and DESIRED); position and flags stay.
void plan_step(Unit unit, const Index* type);

// Take over the velocity direction, and turn the body unless the unit moves straight on.
void update_heading(Unit unit, const Index* type);

// Carry out what `plan_step` worked out.
void take_step(Unit unit, const Index* type);

// The cell of the flyers' grid in which the unit is; beyond the map's edge, the one at the edge.
std::int32_t cell_of(Unit unit);

// One frame of a flyer: step, be pushed by others in its cell, and give up a target that it is pushed from.
void move_flyer(const Battle& battle, Index i);

}  // namespace muster::battle
