// Where each quantity of a battle lives in the arrays that numpy owns; muster/envs/battle/layout.py has the same names.
//
// A batch of B battles is a few integer arrays, one leading index a battle:
// - units [B, UNIT_FIELDS, U] int32: one row a quantity, one column a unit; ours first (0..n_ours-1), then theirs;
// - counters [B, COUNTERS] int64: the clock and totals of the battle;
// - bullets [B, limit, BULLET_FIELDS] int32: shots in the air or showing their hit, oldest first;
// - cells [B, kCells * kCells] int16: how many flyers are in each cell of a grid.
//
// Positions are in 1/256 pixel ("exact") or whole pixels; directions in 1/256 of a turn, 0 up, clockwise.
#pragma once

#include <algorithm>
#include <cstdint>

#include "../../array.hpp"

namespace muster::battle {

// Rows of `units`. LIVE is the list of live units in update order, N_LIVE of them.
enum UnitField : Index {
  TYPE, SIDE, ALIVE, HP, KEY, LIVE,
  X, Y, PX, PY, TARGET_X, TARGET_Y, TARGET_UNIT, WAY_X, WAY_Y, FACE_X, FACE_Y,
  HEADING, VELOCITY_DIR, DESIRED_DIR, CURRENT_DIR, SPEED, CURRENT_SPEED, FLAGS,
  PLAN_X, PLAN_Y, PLAN_SPEED, PLAN_FLAGS, PLAN_EVENT,
  STATE, HAS_PATH, PATH_FRAME, NEW_TARGET, HIT_UNIT, HIT_SPEED, SLIDE_DIR, BLOCKED, IMMOVABLE, START_DELAY,
  CELL, PUSH_DIR, PUSH_COUNT,
  ORDER, ORDER_STATE, ORDER_UNIT, ORDER_X, ORDER_Y, LOOK_TIMER, MAIN_TIMER, CHASE_TIMER, COOLDOWN, AUTO, FREE,
  QUEUED, QUEUED_X, QUEUED_Y, PENDING, PENDING_UNIT, PENDING_X, PENDING_Y,
  ANIMATION, ATTACK_TIME, FIRST_SHOT, WALK_STEP, UNBREAKABLE, SEEN,
  COMMAND, COMMAND_UNIT, COMMAND_FRAME, STOPPING, WAS_STOPPING, PREVIOUS, FIRED_FRAME, OLD_X, OLD_Y,
  UNIT_FIELDS
};

// Movement flags.
constexpr std::int32_t TURNING = 1, MOVING = 2, BRAKING = 4, ATTACKING = 8;
// A planned step may start or end a movement.
enum Event : std::int32_t { NOTHING, STARTS, STOPS };
// Ground movement states.
enum GroundState : std::int32_t { REST, DELAY, FOLLOW, FIX, WAIT, SLIDE, FACE };
enum Order : std::int32_t { IDLE_FIRST, IDLE, ATTACK, ATTACK_MOVE, STOP, NO_ORDER };
enum Animation : std::int32_t { STANDING, WALKING, SHOOTING };
// Commands on their way to a unit.
enum Command : std::int32_t { NO_COMMAND, COMMAND_ATTACK, COMMAND_ATTACK_MOVE };
// Orders instead of a target.
constexpr Index UNASSIGNED = -1, HOLD = -2, MARCH = -3;

enum Counter : Index {
  FRAME, ORDER_COUNTER, N_LIVE, N_BULLETS, N_OURS, N_THEIRS, MARCH_X, MARCH_Y, MARCH_FRAME,
  OUR_MARCH_X, OUR_MARCH_Y, ENDED, STEPS, DEATHS, HEALTH_OURS, HEALTH_THEIRS, HEALTH_START, LOST_SHOTS,
  COUNTERS
};

enum BulletField : Index { B_STATE, B_X, B_Y, B_SPEED, B_UNIT, B_TX, B_TY, B_SOURCE, B_TIMER, B_MISS, BULLET_FIELDS };
enum BulletState : std::int32_t { INSTANT, FLYING, SHOWING };

// Columns of `types` [K, TYPE_FIELDS + 2 K]; after them come exact and integer damage on each type.
enum TypeField : Index {
  T_HP, T_LEFT, T_UP, T_RIGHT, T_DOWN, T_COOLDOWN, T_RANGE, T_ACQUIRE, T_SIGHT, T_TURN, T_ANGLE, T_FLYER,
  T_TOP, T_ACCEL, T_HALT, T_REGEN, T_SHOT, T_BULLET_FRAMES, T_MISSILE_TOP, T_MISSILE_ACCEL, T_MISSILE_AHEAD,
  T_READY_LOOK, T_AIR,
  T_SHOT_FIRST, T_HOLD_FROM_FIRST, T_HOLD_TO_FIRST, T_READY_FIRST,
  T_SHOT_REPEAT, T_HOLD_FROM_REPEAT, T_HOLD_TO_REPEAT, T_READY_REPEAT,
  T_WALK_LENGTH, T_WALK, TYPE_FIELDS = T_WALK + 8
};
enum Shot : Index { SHOT_INSTANT, SHOT_MISSILE, SHOT_MELEE };

// Flyers are counted on a kCells x kCells grid of kCellSize pixels.
constexpr Index kCellSize = 48, kCells = 96;
// Pixels along a walk tile.
constexpr std::int32_t kTile = 8;
// Frames between two decisions.
constexpr Index kDecisionFrames = 6;
// An order is looked at every so many frames.
constexpr Index kLookPeriod = 9;
// Frames between two attack-move orders to a whole army.
constexpr Index kReissue = 60;

// More than any distance.
constexpr Index kFar = Index{1} << 30;

// Settings of the engine where its behaviour is uncertain.
struct Settings {
  Index latency = 0;            // frames from a command to its effect
  Index bot_step = 1;           // frames between two steps of the bot; a unit without target is stopped at each
  Index first_order = 0;        // frames by which the opponent's first order follows ours; negative: comes before it
  Index standing = 0;           // frames since all units appeared, at our first decision; 0: their timers are random
  bool fog = true;              // a target can be judged in range only once an ally has seen it
  bool opponent_first = true;   // the opponent's units are updated before ours
};

// One unit: unit[PX] is its row PX.
struct Unit {
  std::int32_t* column;
  Index stride;

  std::int32_t& operator[](UnitField field) const { return column[field * stride]; }
};

// One battle of a batch: views of its slices, and the data that all battles share.
struct Battle {
  Array2<std::int32_t> units;
  Array1<Index> counters;
  Array2<std::int32_t> bullets;
  Array1<std::int16_t> cells;
  std::uint64_t* rng;
  Array2<const Index> types;
  Index n_ours;
  const Settings& settings;

  Index n_units() const { return units.columns; }
  Index n_theirs() const { return units.columns - n_ours; }
  Unit unit(Index i) const {
    check_index(i, units.columns);
    return {units.data + i, units.columns};
  }
  std::int32_t* row(UnitField field) const { return units.data + field * units.columns; }
  // The row of `types` of unit i.
  const Index* type(Index i) const { return types.row(units(TYPE, i)).data; }
  bool alive(Index i) const { return units(ALIVE, i) != 0; }
};

// Index of the first and behind the last enemy of unit i.
struct Range {
  Index first;
  Index last;
};
inline Range enemies_of(const Battle& battle, Index i) {
  return i < battle.n_ours ? Range{battle.n_ours, battle.n_units()} : Range{0, battle.n_ours};
}

// Python's division of integers, which rounds down.
inline Index floor_divide(Index a, Index b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

}  // namespace muster::battle
