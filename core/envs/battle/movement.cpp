#include "movement.hpp"

namespace muster::battle {

namespace {

// Frames for which a chaser keeps going to where its target was.
constexpr std::int32_t kChasePeriod = 15;
// A flyer at its target and slower than this (1/256 px a frame) stands.
constexpr Index kStill = 192;
// A walker that faces further off its way than this turns on the spot first.
constexpr Index kSharpTurn = 32;
// Nearer to its waypoint than this (px), a flyer slows down if it cannot turn in time.
constexpr Index kTurnInTime = 32;
// A pushed flyer nearer than this (px) to its target gives it up.
constexpr Index kGiveUp = 24;

Index direction_to_waypoint(Unit unit) {
  const Index x = unit[PX];
  const Index y = unit[PY];
  if (x != unit[WAY_X] || y != unit[WAY_Y]) return direction(unit[WAY_X] - x, unit[WAY_Y] - y);
  if (x != unit[FACE_X] || y != unit[FACE_Y]) return direction(unit[FACE_X] - x, unit[FACE_Y] - y);
  return unit[HEADING];
}

// Speed of a flyer in this frame: accelerate unless it must brake for its waypoint.
Index flying_speed(Unit unit, const Index* type) {
  const Index speed = unit[SPEED];
  const Index way = length(unit[WAY_X] - unit[PX], unit[WAY_Y] - unit[PY]);
  bool faster = unit[CURRENT_DIR] == unit[DESIRED_DIR] || way >= kTurnInTime;
  if (!faster) {
    const Index turn = type[T_TURN];
    const Index error = std::abs(wrap(unit[DESIRED_DIR] - unit[CURRENT_DIR]));
    const Index turning_way = ((error * 2 + turn - 1) * speed / turn) >> 8;
    faster = turning_way * 3 / 2 <= way;
  }
  if (faster) {
    faster = halt_distance(unit, type) < length(unit[WAY_X] * 256 - unit[X], unit[WAY_Y] * 256 - unit[Y]);
  }
  return std::clamp(speed + (faster ? type[T_ACCEL] : -type[T_ACCEL]), Index{0}, type[T_TOP]);
}

// Begin the walking animation, unless it runs already.
void start_walking(Unit unit, const Index* type) {
  if (unit[ANIMATION] == WALKING) return;
  unit[ANIMATION] = WALKING;
  unit[WALK_STEP] = 0;
  unit[SPEED] = static_cast<std::int32_t>(type[T_WALK]);
}

// Displace the planned step along the unit's private direction, which follows its target every 8th frame.
void push(Unit unit, Index crowd) {
  const bool arrived = at_target(unit);
  if (unit[PUSH_COUNT] > 0) {
    unit[PUSH_COUNT]--;
  } else {
    unit[PUSH_COUNT] = 7;
    if (!arrived) {
      const Index ahead = direction_to(unit, unit[TARGET_X], unit[TARGET_Y]);
      const Index side = (unit[PUSH_DIR] - ahead) & 255;
      unit[PUSH_DIR] = static_cast<std::int32_t>((ahead + side % 32 + (side < 128 ? 32 : -64)) & 255);
    }
  }
  Index x = kUnitX[unit[PUSH_DIR]] >> 1;
  Index y = kUnitY[unit[PUSH_DIR]] >> 1;
  if (arrived) {
    x = x * (crowd / 4 + 1) >> 1;
    y = y * (crowd / 4 + 1) >> 1;
  }
  unit[PLAN_X] += static_cast<std::int32_t>(x);
  unit[PLAN_Y] += static_cast<std::int32_t>(y);
}

}  // namespace

void set_move_target(Unit unit, Index x, Index y, Index target) {
  if (unit[TARGET_X] == x && unit[TARGET_Y] == y && (target < 0 || unit[TARGET_UNIT] == target)) {
    if (target >= 0) unit[IMMOVABLE] = 0;
    return;
  }
  unit[NEW_TARGET] = 1;
  unit[TARGET_X] = unit[WAY_X] = static_cast<std::int32_t>(x);
  unit[TARGET_Y] = unit[WAY_Y] = static_cast<std::int32_t>(y);
  unit[TARGET_UNIT] = static_cast<std::int32_t>(target);
  unit[FLAGS] = (unit[FLAGS] & ~BRAKING) | TURNING;
  unit[IMMOVABLE] = 0;
  unit[CHASE_TIMER] = kChasePeriod;
}

void stop_unit(Unit unit, const Index* type) {
  unit[CHASE_TIMER] = kChasePeriod;
  if (unit[FLAGS] & BRAKING) return;
  Index x = unit[PX];
  Index y = unit[PY];
  if (unit[FLAGS] & MOVING && type[T_FLYER]) {
    const Index way = halt_distance(unit, type);
    x = (unit[X] + (kUnitX[unit[VELOCITY_DIR]] * way >> 8)) >> 8;
    y = (unit[Y] + (kUnitY[unit[VELOCITY_DIR]] * way >> 8)) >> 8;
    if (x != unit[PX] || y != unit[PY]) unit[FLAGS] |= BRAKING;
  }
  unit[TARGET_X] = unit[WAY_X] = static_cast<std::int32_t>(x);
  unit[TARGET_Y] = unit[WAY_Y] = static_cast<std::int32_t>(y);
  unit[TARGET_UNIT] = -1;
}

void plan_step(Unit unit, const Index* type) {
  const bool flyer = type[T_FLYER] != 0;
  const bool arrived = at_target(unit);
  const Index desired = direction_to_waypoint(unit);
  unit[DESIRED_DIR] = static_cast<std::int32_t>(desired);
  unit[CURRENT_DIR] = turn_velocity(unit, type, desired);
  std::int32_t flags = unit[FLAGS];
  Index speed = unit[SPEED];
  if (flyer) {
    if (arrived && speed < kStill) {
      flags &= ~BRAKING;
      speed = 0;
    } else {
      speed = flying_speed(unit, type);
    }
  } else if (arrived) {
    flags &= ~BRAKING;
    speed = 0;
  } else if (flags & TURNING && std::abs(wrap(unit[HEADING] - desired)) >= kSharpTurn) {
    flags &= ~(MOVING | BRAKING);
    speed = 0;
  }
  Event event = NOTHING;
  if (!arrived) {
    if (!(flags & MOVING)) {
      if (flyer || !(flags & ATTACKING)) flags |= MOVING;
      if (!(flags & ATTACKING)) event = STARTS;
    }
  } else if (flags & MOVING) {
    flags &= ~MOVING;
    if (!(flags & ATTACKING)) event = STOPS;
  }
  Index x = unit[X];
  Index y = unit[Y];
  unit[PLAN_SPEED] = static_cast<std::int32_t>(speed);
  if (flags & MOVING && speed) {
    const Index way_x = Index{unit[WAY_X]} * 256;
    const Index way_y = Index{unit[WAY_Y]} * 256;
    if (speed >= length(way_x - x, way_y - y)) {
      x = way_x;
      y = way_y;
    } else {
      x += kUnitX[unit[CURRENT_DIR]] * speed >> 8;
      y += kUnitY[unit[CURRENT_DIR]] * speed >> 8;
    }
    // A walker's speed lasts one frame: its animation sets the next.
    if (!flyer) speed = 0;
  }
  unit[PLAN_X] = static_cast<std::int32_t>(x);
  unit[PLAN_Y] = static_cast<std::int32_t>(y);
  unit[CURRENT_SPEED] = static_cast<std::int32_t>(speed);
  unit[PLAN_FLAGS] = flags;
  unit[PLAN_EVENT] = event;
}

void update_heading(Unit unit, const Index* type) {
  unit[VELOCITY_DIR] = unit[CURRENT_DIR];
  if (unit[FLAGS] & MOVING && !(unit[FLAGS] & TURNING)) return;
  const Index rate = type[T_TURN];
  const std::int32_t desired = unit[DESIRED_DIR];
  const Index turn = std::clamp(wrap(desired - unit[HEADING]), -rate, rate);
  unit[HEADING] = static_cast<std::int32_t>((unit[HEADING] + turn) & 255);
  if (unit[VELOCITY_DIR] == desired && unit[HEADING] == desired) unit[FLAGS] &= ~TURNING;
}

void take_step(Unit unit, const Index* type) {
  unit[FLAGS] = unit[PLAN_FLAGS];
  unit[SPEED] = unit[CURRENT_SPEED];
  unit[X] = unit[PLAN_X];
  unit[Y] = unit[PLAN_Y];
  unit[PX] = unit[X] >> 8;
  unit[PY] = unit[Y] >> 8;
  update_heading(unit, type);
  if (type[T_FLYER]) return;
  if (unit[PLAN_EVENT] == STOPS) {
    if (!unit[UNBREAKABLE]) unit[ANIMATION] = STANDING;
  } else if (unit[PLAN_EVENT] == STARTS) {
    start_walking(unit, type);
  }
}

std::int32_t cell_of(Unit unit) {
  const Index column = std::clamp(unit[PX] / kCellSize, Index{0}, kCells - 1);
  const Index row = std::clamp(unit[PY] / kCellSize, Index{0}, kCells - 1);
  return static_cast<std::int32_t>(row * kCells + column);
}

void move_flyer(const Battle& battle, Index i) {
  const Unit unit = battle.unit(i);
  const Index* const type = battle.type(i);
  plan_step(unit, type);
  const Index crowd = battle.cells[unit[CELL]];
  const bool pushed = crowd > 1;
  if (pushed) {
    push(unit, crowd);
  } else {
    unit[PUSH_COUNT] = 0;
  }
  take_step(unit, type);
  const std::int32_t cell = cell_of(unit);
  if (cell != unit[CELL]) {
    battle.cells[unit[CELL]]--;
    battle.cells[cell]++;
    unit[CELL] = cell;
    unit[PUSH_COUNT] = 0;
  }
  if (pushed && std::max(std::abs(unit[TARGET_X] - unit[PX]), std::abs(unit[TARGET_Y] - unit[PY])) < kGiveUp) {
    unit[TARGET_X] = unit[WAY_X] = unit[PX];
    unit[TARGET_Y] = unit[WAY_Y] = unit[PY];
  }
}

}  // namespace muster::battle
