#include "orders.hpp"

#include <array>

#include "../../random.hpp"

namespace muster::battle {

namespace {

// Frames between two searches for a target.
constexpr std::int32_t kAcquirePeriod = 15;
// Enemies considered when a unit looks for a target by itself.
constexpr Index kCandidates = 16;
// A target moving within this of our own direction gives no braking bonus.
constexpr Index kNearTurn = 32;
// Pixels within which a chaser keeps track of a target that nobody sees.
constexpr Index kFollowUnseen = 448;
// Boxes are smaller than this (px): centres further apart than a range and it are out of that range.
constexpr Index kBoxes = 64;

// The enemy that unit i picks by itself: the nearest of the first few, from the left, in acquisition range; or -1.
Index acquire(const Battle& battle, Index i) {
  const Index reach = battle.type(i)[T_ACQUIRE];
  const Index far = reach + kBoxes;
  const std::int32_t* const px = battle.row(PX);
  const std::int32_t* const py = battle.row(PY);
  const Index x = px[i];
  const Index y = py[i];
  std::array<Index, kCandidates> candidates;
  std::array<Index, kCandidates> edges;
  Index kept = 0;
  const Range enemies = enemies_of(battle, i);
  for (Index j = enemies.first; j < enemies.last; j++) {
    if (std::abs(px[j] - x) > far || std::abs(py[j] - y) > far || !battle.alive(j) || !battle.units(SEEN, j) ||
        gap(battle, i, j) > reach) {
      continue;
    }
    const Index edge = px[j] - battle.type(j)[T_LEFT];
    Index slot = kept;
    while (slot > 0 && edges[slot - 1] > edge) slot--;
    if (slot >= kCandidates) continue;
    kept = std::min(kept + 1, kCandidates);
    for (Index k = kept - 1; k > slot; k--) {
      candidates[k] = candidates[k - 1];
      edges[k] = edges[k - 1];
    }
    candidates[slot] = j;
    edges[slot] = edge;
  }
  Index best = -1;
  Index nearest = kFar;
  for (Index k = 0; k < kept; k++) {
    const Index way = length(px[candidates[k]] - x, py[candidates[k]] - y);
    if (way < nearest) {
      nearest = way;
      best = candidates[k];
    }
  }
  return best;
}

// Break off an attack animation; the next attack is a "first" one.
void break_off_attack(Unit unit) {
  unit[UNBREAKABLE] = 0;
  if (unit[ANIMATION] == SHOOTING) {
    unit[ANIMATION] = STANDING;
    unit[ATTACK_TIME] = -1;
  }
  unit[FLAGS] &= ~ATTACKING;
}

// Begin an order now: timers cleared, attack broken off.
void activate(Unit unit, std::int32_t order, Index target, Index x, Index y) {
  unit[ORDER] = order;
  unit[ORDER_STATE] = 0;
  unit[ORDER_UNIT] = static_cast<std::int32_t>(target);
  unit[ORDER_X] = static_cast<std::int32_t>(x);
  unit[ORDER_Y] = static_cast<std::int32_t>(y);
  unit[FREE] = 0;
  unit[LOOK_TIMER] = 0;
  unit[CHASE_TIMER] = 0;
  unit[AUTO] = -1;
  break_off_attack(unit);
}

// Begin an order now, or as soon as the unbreakable part of an attack is over; true if now.
bool request_order(Unit unit, Order order, Index target, Index x, Index y) {
  if (unit[UNBREAKABLE]) {
    unit[PENDING] = order;
    unit[PENDING_UNIT] = static_cast<std::int32_t>(target);
    unit[PENDING_X] = static_cast<std::int32_t>(x);
    unit[PENDING_Y] = static_cast<std::int32_t>(y);
    return false;
  }
  unit[PENDING] = NO_ORDER;
  activate(unit, order, target, x, y);
  return true;
}

// The order is carried out: back to the attack-move that it interrupted, else idle.
void finish_order(Unit unit) {
  if (unit[PENDING] != NO_ORDER) return;
  if (unit[QUEUED] == ATTACK_MOVE) {
    unit[QUEUED] = NO_ORDER;
    request_order(unit, ATTACK_MOVE, -1, unit[QUEUED_X], unit[QUEUED_Y]);
  } else {
    request_order(unit, IDLE_FIRST, -1, unit[PX], unit[PY]);
  }
}

// Attack j on the unit's own account, so that it may change its mind.
void attack_freely(const Battle& battle, Unit unit, Index j) {
  if (request_order(unit, ATTACK, j, battle.units(PX, j), battle.units(PY, j))) unit[FREE] = 1;
}

// Leave the attack-move for target j, and remember it.
void interrupt_march(const Battle& battle, Index i, Index j) {
  const Unit unit = battle.unit(i);
  stop_unit(unit, battle.type(i));
  unit[QUEUED] = ATTACK_MOVE;
  unit[QUEUED_X] = unit[ORDER_X];
  unit[QUEUED_Y] = unit[ORDER_Y];
  attack_freely(battle, unit, j);
}

bool lives(const Battle& battle, Index j) { return j >= 0 && battle.alive(j); }

void process_idle(const Battle& battle, Index i) {
  const Unit unit = battle.unit(i);
  if (unit[ORDER] == IDLE_FIRST) {
    unit[MAIN_TIMER] = static_cast<std::int32_t>(below(*battle.rng, 16));
    unit[ORDER] = IDLE;
  } else if (lives(battle, unit[AUTO])) {
    attack_freely(battle, unit, unit[AUTO]);
  } else if (unit[MAIN_TIMER] == 0) {
    unit[MAIN_TIMER] = kAcquirePeriod;
    const Index j = acquire(battle, i);
    if (j >= 0) attack_freely(battle, unit, j);
  }
}

void process_attack_move(const Battle& battle, Index i) {
  const Unit unit = battle.unit(i);
  if (unit[ORDER_STATE] == 0) {
    set_move_target(unit, unit[ORDER_X], unit[ORDER_Y], -1);
    unit[FACE_X] = unit[ORDER_X];
    unit[FACE_Y] = unit[ORDER_Y];
    unit[ORDER_STATE] = 1;
  }
  if (lives(battle, unit[AUTO])) {
    interrupt_march(battle, i, unit[AUTO]);
  } else if (unit[MAIN_TIMER] == 0) {
    unit[MAIN_TIMER] = kAcquirePeriod;
    if (at_target(unit)) {
      finish_order(unit);
      return;
    }
    const Index j = acquire(battle, i);
    if (j >= 0) interrupt_march(battle, i, j);
  }
}

// A unit that attacks on its own account changes to a target in range if its own is not.
void reconsider_target(const Battle& battle, Index i) {
  const Unit unit = battle.unit(i);
  std::int32_t target = unit[ORDER_UNIT];
  const bool alive = lives(battle, target);
  if (alive && in_range_moving(battle, i, target)) return;
  const std::int32_t shooter = unit[AUTO];
  if (lives(battle, shooter)) {
    if (in_range_moving(battle, i, shooter)) {
      unit[ORDER_UNIT] = shooter;
      return;
    }
    if (!alive) target = shooter;
  } else {
    unit[AUTO] = -1;
  }
  const Index found = acquire(battle, i);
  unit[ORDER_UNIT] = found >= 0 ? static_cast<std::int32_t>(found) : target;
}

// Start an attack if cooldown, range and heading allow; otherwise see to it that the next look comes in time.
void try_to_fire(const Battle& battle, Index i) {
  const Unit unit = battle.unit(i);
  const Index* const type = battle.type(i);
  if (unit[COOLDOWN] > 0) {
    unit[LOOK_TIMER] = std::min(unit[LOOK_TIMER], unit[COOLDOWN] - 1);
    return;
  }
  if (unit[FLAGS] & ATTACKING || gap(battle, i, unit[ORDER_UNIT]) > type[T_RANGE]) return;
  if ((unit[FACE_X] != unit[PX] || unit[FACE_Y] != unit[PY]) &&
      std::abs(wrap(direction_to(unit, unit[FACE_X], unit[FACE_Y]) - unit[HEADING])) > type[T_ANGLE]) {
    unit[LOOK_TIMER] = 0;
    return;
  }
  unit[FLAGS] |= ATTACKING;
  // Cooldowns vary by -1 to +2 frames.
  unit[COOLDOWN] = static_cast<std::int32_t>(type[T_COOLDOWN] + below(*battle.rng, 4) - 1);
  unit[FIRST_SHOT] = unit[ANIMATION] == SHOOTING ? 0 : 1;
  unit[ANIMATION] = SHOOTING;
  unit[ATTACK_TIME] = 0;
  unit[FIRED_FRAME] = static_cast<std::int32_t>(battle.counters[FRAME]);
}

void process_attack(const Battle& battle, Index i) {
  const Unit unit = battle.unit(i);
  const Index* const type = battle.type(i);
  if (unit[FREE]) reconsider_target(battle, i);
  const Index target = unit[ORDER_UNIT];
  if (!lives(battle, target)) {
    stop_unit(unit, type);
    finish_order(unit);
    return;
  }
  const std::int32_t x = battle.units(PX, target);
  const std::int32_t y = battle.units(PY, target);
  unit[ORDER_X] = unit[FACE_X] = x;
  unit[ORDER_Y] = unit[FACE_Y] = y;
  const bool near = in_range_moving(battle, i, target);
  if (unit[ORDER_STATE] == 0) {
    unit[ORDER_STATE] = 1;
    if (!near) set_move_target(unit, x, y, target);
  } else if (near) {
    stop_unit(unit, type);
  } else {
    if (at_target(unit) && unit[IMMOVABLE]) {
      stop_unit(unit, type);
      unit[FACE_X] = unit[TARGET_X];
      unit[FACE_Y] = unit[TARGET_Y];
      finish_order(unit);
    } else if (unit[CHASE_TIMER] == 0) {
      if (battle.units(SEEN, target) || gap(battle, i, target) <= kFollowUnseen) {
        set_move_target(unit, x, y, target);
      } else if (at_target(unit)) {
        finish_order(unit);
      }
    }
    return;
  }
  try_to_fire(battle, i);
}

void process_stop(const Battle& battle, Index i) {
  const Unit unit = battle.unit(i);
  stop_unit(unit, battle.type(i));
  unit[FACE_X] = unit[TARGET_X];
  unit[FACE_Y] = unit[TARGET_Y];
  break_off_attack(unit);
  finish_order(unit);
}

}  // namespace

bool in_range_moving(const Battle& battle, Index i, Index j) {
  const Unit unit = battle.unit(i);
  const Unit target = battle.unit(j);
  if (!target[SEEN]) return false;
  const Index* const type = battle.type(i);
  const Index reach = type[T_RANGE];
  const Index way = gap(battle, i, j);
  if (way <= reach) return true;
  if (!(unit[FLAGS] & MOVING)) return false;
  if (target[FLAGS] & MOVING && std::abs(wrap(target[VELOCITY_DIR] - unit[VELOCITY_DIR])) <= kNearTurn) return false;
  return way <= reach + (halt_distance(unit, type) >> 8);
}

void give_order(Unit unit, Order order, Index target, Index x, Index y) {
  unit[QUEUED] = NO_ORDER;
  request_order(unit, order, target, x, y);
}

void resume_pending(const Battle& battle, Unit unit) {
  const std::int32_t order = unit[PENDING];
  if (order == NO_ORDER) return;
  unit[PENDING] = NO_ORDER;
  // A target that died meanwhile takes the order with it.
  if (order == ATTACK && !battle.alive(unit[PENDING_UNIT])) return;
  activate(unit, order, unit[PENDING_UNIT], unit[PENDING_X], unit[PENDING_Y]);
}

void process_order(const Battle& battle, Index i) {
  switch (battle.units(ORDER, i)) {
    case ATTACK: process_attack(battle, i); break;
    case ATTACK_MOVE: process_attack_move(battle, i); break;
    case STOP: process_stop(battle, i); break;
    default: process_idle(battle, i);
  }
}

}  // namespace muster::battle
