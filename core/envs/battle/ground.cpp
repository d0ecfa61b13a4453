#include "ground.hpp"

#include "../../random.hpp"
#include "collision.hpp"

namespace muster::battle {

namespace {

// Blocked frames after which a waiting walker looks for another way.
constexpr Index kPatience = 25;
// Frames between two plans that a collision may cause.
constexpr Index kReplanPeriod = 7;
// Frames after which a path is planned anew when a slide ends.
constexpr Index kOldPath = 150;
// A chain of states within one frame is short; the bound only guards against a cycle.
constexpr int kMaxStates = 8;

// Outcome of a frame in a state: nothing, go on in another state, or done for this frame.
enum class Outcome { kNothing, kGoOn, kDone };

// The unit that the planned step would run into, the nearest if there are several; -1 if there is none.
Index find_hit(const Battle& battle, Index i) {
  const Unit unit = battle.unit(i);
  const Index x = unit[PLAN_X] >> 8;
  const Index y = unit[PLAN_Y] >> 8;
  if (x == unit[PX] && y == unit[PY]) return -1;
  const Index* const type = battle.type(i);
  const Index left = x - type[T_LEFT];
  const Index right = x + type[T_RIGHT];
  const Index up = y - type[T_UP];
  const Index down = y + type[T_DOWN];
  const std::int32_t* const live = battle.row(LIVE);
  Index found = -1;
  Index nearest = kFar;
  for (Index k = 0; k < battle.counters[N_LIVE]; k++) {
    const Index j = live[k];
    const Index* const other_type = battle.type(j);
    const Index jx = battle.units(PX, j);
    if (jx - other_type[T_LEFT] > right || jx + other_type[T_RIGHT] < left) continue;
    const Index jy = battle.units(PY, j);
    if (jy - other_type[T_UP] > down || jy + other_type[T_DOWN] < up || j == i) continue;
    const Index way = std::abs(jx - x) + std::abs(jy - y);
    if (way < nearest) {
      nearest = way;
      found = j;
    }
  }
  return found;
}

void calm_down(Unit unit) {
  if (unit[BLOCKED] > 2) {
    unit[BLOCKED] = 2;
  } else if (unit[BLOCKED] > 0) {
    unit[BLOCKED]--;
  }
}

void count_blocked(Unit unit) { unit[BLOCKED] = std::min(unit[BLOCKED] + 1, 255); }

bool faces_waypoint(Unit unit) { return unit[VELOCITY_DIR] == direction_to(unit, unit[WAY_X], unit[WAY_Y]); }

// Stop here for good; `immovable` lets the order know.
void give_up(const Battle& battle, Index i, bool immovable) {
  const Unit unit = battle.unit(i);
  unit[SPEED] = 0;
  stop_unit(unit, battle.type(i));
  unit[IMMOVABLE] = immovable;
  unit[START_DELAY] = 0;
  unit[HAS_PATH] = 0;
  unit[STATE] = REST;
}

void plan_and_enter(const Battle& battle, Index i, Index considered, bool movers, GroundState state) {
  plan_path(battle, i, considered, movers);
  battle.units(STATE, i) = state;
}

// Deal with arrival or a new target; without a path, plan one if `new_path`.
Outcome check_target(const Battle& battle, Index i, bool new_path) {
  const Unit unit = battle.unit(i);
  if (at_target(unit) || unit[FLAGS] & BRAKING) {
    unit[HAS_PATH] = 0;
    unit[WAY_X] = unit[TARGET_X];
    unit[WAY_Y] = unit[TARGET_Y];
    unit[STATE] = REST;
    return Outcome::kGoOn;
  }
  const bool colliding = unit[STATE] == FIX || unit[STATE] == WAIT || unit[STATE] == SLIDE;
  const GroundState next = colliding ? FACE : FOLLOW;
  if (!unit[HAS_PATH]) {
    if (!new_path) return Outcome::kNothing;
    plan_and_enter(battle, i, -1, false, next);
    return Outcome::kDone;
  }
  if (unit[NEW_TARGET]) {
    plan_and_enter(battle, i, colliding ? unit[HIT_UNIT] : -1, false, next);
    return colliding ? Outcome::kDone : Outcome::kGoOn;
  }
  return Outcome::kNothing;
}

// A walker that has been blocked for a while stops its walking animation.
void stand_if_stuck(Unit unit) {
  if (unit[FLAGS] & MOVING && unit[BLOCKED] > 2 && !unit[UNBREAKABLE]) {
    unit[FLAGS] &= ~MOVING;
    unit[ANIMATION] = STANDING;
  }
}

// One frame in which a collision is dealt with.
Outcome run_fix(const Battle& battle, Index i) {
  const Unit unit = battle.unit(i);
  const Outcome change = check_target(battle, i, false);
  if (change != Outcome::kNothing) return change;
  count_blocked(unit);
  const Index c = unit[HIT_UNIT];
  if (c < 0 || !battle.alive(c)) {
    unit[STATE] = FOLLOW;
    return Outcome::kDone;
  }
  const Response response = respond_to_collision(battle, i, c);
  const bool replans = response == Response::kReplan || response == Response::kReplanAroundMovers ||
                       response == Response::kTurnAndStart;
  if (replans && battle.counters[FRAME] - unit[PATH_FRAME] < kReplanPeriod) {
    stand_if_stuck(unit);
    return Outcome::kDone;
  }
  switch (response) {
    case Response::kStay:
    case Response::kStayImmovable: give_up(battle, i, response == Response::kStayImmovable); break;
    case Response::kReplan: plan_and_enter(battle, i, c, false, FOLLOW); break;
    case Response::kReplanAroundMovers: plan_and_enter(battle, i, c, true, FACE); break;
    case Response::kTurnAndStart:
      unit[SPEED] = 0;
      plan_and_enter(battle, i, c, false, FACE);
      break;
    case Response::kWait: unit[STATE] = WAIT; break;
    case Response::kSlide: unit[STATE] = SLIDE; break;
  }
  return Outcome::kDone;
}

// Try the blocked step again; after long enough look for another way.
Outcome run_wait(const Battle& battle, Index i) {
  const Unit unit = battle.unit(i);
  const Index* const type = battle.type(i);
  count_blocked(unit);
  const Outcome change = check_target(battle, i, true);
  if (change != Outcome::kNothing) return change;
  unit[SPEED] = unit[HIT_SPEED];
  plan_step(unit, type);
  if (find_hit(battle, i) < 0) {
    take_step(unit, type);
    unit[STATE] = FOLLOW;
    return Outcome::kDone;
  }
  stand_if_stuck(unit);
  unit[SPEED] = 0;
  if (!faces_waypoint(unit)) update_heading(unit, type);
  if (unit[BLOCKED] >= kPatience) plan_and_enter(battle, i, -1, below(*battle.rng, 2) == 0, FACE);
  return Outcome::kDone;
}

// Plan a step of so many 1/256 px in a direction.
void aim(Unit unit, Index heading, Index way) {
  unit[PLAN_X] = static_cast<std::int32_t>(unit[X] + (kUnitX[heading] * way >> 8));
  unit[PLAN_Y] = static_cast<std::int32_t>(unit[Y] + (kUnitY[heading] * way >> 8));
}

// Move along the edge of a standing unit, pixel by pixel, until the way is free of it.
Outcome run_slide(const Battle& battle, Index i) {
  const Unit unit = battle.unit(i);
  const Index* const type = battle.type(i);
  count_blocked(unit);
  const Outcome change = check_target(battle, i, true);
  if (change != Outcome::kNothing) return change;
  const std::int32_t slide = unit[SLIDE_DIR];
  unit[FLAGS] |= TURNING;
  unit[DESIRED_DIR] = slide;
  unit[CURRENT_DIR] = turn_velocity(unit, type, slide);
  update_heading(unit, type);
  const std::int32_t course = unit[VELOCITY_DIR];
  const Index reach = type[T_TOP];
  const Index obstacle = unit[HIT_UNIT];
  bool stuck = false;
  bool free = false;
  for (Index left = reach; left > 0; left -= 256) {
    aim(unit, slide, std::min(left, Index{256}));
    stuck = find_hit(battle, i) >= 0;
    if (stuck) break;
    unit[X] = unit[PLAN_X];
    unit[Y] = unit[PLAN_Y];
    unit[PX] = unit[X] >> 8;
    unit[PY] = unit[Y] >> 8;
    aim(unit, turn_velocity(unit, type, direction_to(unit, unit[WAY_X], unit[WAY_Y])), reach);
    const Index now = find_hit(battle, i);
    if (now != obstacle) {
      free = now < 0;
      break;
    }
  }
  unit[VELOCITY_DIR] = unit[CURRENT_DIR] = course;
  unit[SPEED] = stuck ? 0 : static_cast<std::int32_t>(reach);
  if (free) unit[FLAGS] |= TURNING;
  if (free && battle.counters[FRAME] - unit[PATH_FRAME] < kOldPath) {
    unit[STATE] = FOLLOW;
  } else if (stuck || free) {
    plan_and_enter(battle, i, -1, false, FACE);
  }
  return Outcome::kDone;
}

// Walk towards the waypoint, or meet an obstacle.
Outcome run_follow(const Battle& battle, Index i) {
  const Unit unit = battle.unit(i);
  const Index* const type = battle.type(i);
  const Outcome change = check_target(battle, i, true);
  if (change != Outcome::kNothing) return change;
  if (unit[PX] == unit[WAY_X] && unit[PY] == unit[WAY_Y]) plan_path(battle, i, -1, false);
  const std::int32_t speed = unit[SPEED];
  plan_step(unit, type);
  const Index c = find_hit(battle, i);
  if (c >= 0) {
    unit[HIT_UNIT] = static_cast<std::int32_t>(c);
    unit[HIT_SPEED] = speed;
    unit[STATE] = FIX;
    return Outcome::kGoOn;
  }
  if (unit[PX] != unit[PLAN_X] >> 8 || unit[PY] != unit[PLAN_Y] >> 8) calm_down(unit);
  take_step(unit, type);
  return Outcome::kDone;
}

// Turn towards the waypoint before walking on.
Outcome run_face(const Battle& battle, Index i) {
  const Unit unit = battle.unit(i);
  const Outcome change = check_target(battle, i, true);
  if (change != Outcome::kNothing) return change;
  if (faces_waypoint(unit)) {
    unit[STATE] = FOLLOW;
    return Outcome::kGoOn;
  }
  plan_step(unit, battle.type(i));
  update_heading(unit, battle.type(i));
  return Outcome::kDone;
}

// Face what is to be faced; set off when there is somewhere to go.
Outcome run_rest(const Battle& battle, Index i) {
  const Unit unit = battle.unit(i);
  const Index* const type = battle.type(i);
  const bool arrived = at_target(unit);
  bool turning = false;
  if (arrived) {
    unit[BLOCKED] = 0;
    turning = (unit[FLAGS] & MOVING) != 0;
    if (!turning && (unit[PX] != unit[FACE_X] || unit[PY] != unit[FACE_Y])) {
      const Index wanted = direction_to(unit, unit[FACE_X], unit[FACE_Y]);
      turning = unit[HEADING] != wanted || unit[VELOCITY_DIR] != wanted;
    }
  } else {
    calm_down(unit);
  }
  if (turning || unit[FLAGS] & BRAKING) {
    plan_step(unit, type);
    take_step(unit, type);
  } else if (arrived) {
    unit[SPEED] = 0;
    unit[FACE_X] = unit[PX];
    unit[FACE_Y] = unit[PY];
  }
  if (arrived) return Outcome::kDone;
  plan_and_enter(battle, i, -1, false, FOLLOW);
  if (unit[START_DELAY] > 0) {
    unit[START_DELAY] = static_cast<std::int32_t>(below(*battle.rng, 3));
    unit[STATE] = DELAY;
  }
  return Outcome::kGoOn;
}

// Wait the few frames that a unit takes to walk off on a command.
Outcome run_delay(const Battle& battle, Index i) {
  const Unit unit = battle.unit(i);
  const Outcome change = check_target(battle, i, true);
  if (change != Outcome::kNothing) return change;
  if (unit[START_DELAY] == 0) {
    unit[STATE] = FOLLOW;
    return Outcome::kGoOn;
  }
  unit[START_DELAY]--;
  return Outcome::kDone;
}

Outcome run_state(const Battle& battle, Index i) {
  switch (battle.units(STATE, i)) {
    case REST: return run_rest(battle, i);
    case FOLLOW: return run_follow(battle, i);
    case FIX: return run_fix(battle, i);
    case WAIT: return run_wait(battle, i);
    case SLIDE: return run_slide(battle, i);
    case FACE: return run_face(battle, i);
    default: return run_delay(battle, i);
  }
}

}  // namespace

void move_walker(const Battle& battle, Index i) {
  for (int states = 0; states < kMaxStates; states++) {
    if (run_state(battle, i) == Outcome::kDone) return;
  }
}

}  // namespace muster::battle
