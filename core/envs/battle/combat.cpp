#include "combat.hpp"

#include "../../random.hpp"
#include "orders.hpp"

namespace muster::battle {

namespace {

// Allies within this square (px) round a unit that is hit turn on the shooter too.
constexpr Index kAlarm = 96;
// A shot misses once in so many times.
constexpr Index kMissOnceIn = 256;

// Take a dead unit off the field; it leaves the live list at the end of the frame.
void remove_unit(const Battle& battle, Index i) {
  const Unit unit = battle.unit(i);
  unit[ALIVE] = 0;
  battle.counters[DEATHS] = 1;
  battle.counters[unit[SIDE] == 0 ? N_OURS : N_THEIRS]--;
  if (battle.type(i)[T_FLYER]) battle.cells[unit[CELL]]--;
}

// Make `shooter` the unit's automatic target if it has none alive, or none in range while this one is.
void alarm(const Battle& battle, Index i, std::int32_t shooter) {
  const Unit unit = battle.unit(i);
  // A unit attacking on our command never looks at its automatic target, and any new order clears it.
  if (!unit[ALIVE] || unit[AUTO] == shooter || (unit[ORDER] == ATTACK && !unit[FREE])) return;
  const Index old = unit[AUTO];
  if (old < 0 || !battle.alive(old) || (in_range_moving(battle, i, shooter) && !in_range_moving(battle, i, old))) {
    unit[AUTO] = shooter;
  }
}

// Let the unit and its neighbours know who hit it.
void alarm_neighbours(const Battle& battle, Index i, std::int32_t shooter) {
  const Index x = battle.units(PX, i);
  const Index y = battle.units(PY, i);
  const bool ours = i < battle.n_ours;
  for (Index j = ours ? 0 : battle.n_ours; j < (ours ? battle.n_ours : battle.n_units()); j++) {
    const Unit ally = battle.unit(j);
    const Index* const type = battle.type(j);
    if (ally[PX] - type[T_LEFT] <= x + kAlarm && ally[PX] + type[T_RIGHT] >= x - kAlarm &&
        ally[PY] - type[T_UP] <= y + kAlarm && ally[PY] + type[T_DOWN] >= y - kAlarm) {
      alarm(battle, j, shooter);
    }
  }
}

// Unit i takes a hit from `shooter` (who may be dead already).
void hurt(const Battle& battle, Index i, std::int32_t shooter) {
  const Unit unit = battle.unit(i);
  if (!unit[ALIVE]) return;
  if (battle.alive(shooter)) alarm_neighbours(battle, i, shooter);
  const Index damage = battle.type(shooter)[TYPE_FIELDS + unit[TYPE]];
  unit[HP] = static_cast<std::int32_t>(std::max(unit[HP] - damage, Index{0}));
  if (unit[HP] == 0) remove_unit(battle, i);
}

// The moment of the attack animation at which the blow falls or the shot leaves.
void shoot(const Battle& battle, Index i) {
  const Unit unit = battle.unit(i);
  const std::int32_t target = unit[ORDER_UNIT];
  if (target < 0 || !battle.alive(target)) return;
  const Index* const type = battle.type(i);
  if (type[T_SHOT] == SHOT_MELEE) {
    hurt(battle, target, static_cast<std::int32_t>(i));
    return;
  }
  const Index n = battle.counters[N_BULLETS];
  if (n >= battle.bullets.rows) {
    battle.counters[LOST_SHOTS]++;
    return;
  }
  battle.counters[N_BULLETS] = n + 1;
  const Array1<std::int32_t> bullet = battle.bullets.row(n);
  const std::int32_t ahead = static_cast<std::int32_t>(type[T_MISSILE_AHEAD]);
  bullet[B_STATE] = type[T_SHOT] == SHOT_MISSILE ? FLYING : INSTANT;
  bullet[B_X] = unit[PX] * 256 + kUnitX[unit[HEADING]] * ahead;
  bullet[B_Y] = unit[PY] * 256 + kUnitY[unit[HEADING]] * ahead;
  bullet[B_SPEED] = 0;
  bullet[B_UNIT] = target;
  bullet[B_TX] = battle.units(PX, target);
  bullet[B_TY] = battle.units(PY, target);
  bullet[B_SOURCE] = static_cast<std::int32_t>(i);
  bullet[B_TIMER] = static_cast<std::int32_t>(type[T_BULLET_FRAMES]);
  bullet[B_MISS] = below(*battle.rng, kMissOnceIn) == 0;
}

// Move a missile to where its target was when it was fired; true when it arrives.
bool fly(const Battle& battle, Array1<std::int32_t> bullet) {
  if (bullet[B_UNIT] >= 0 && !battle.alive(bullet[B_UNIT])) bullet[B_UNIT] = -1;
  const Index* const type = battle.type(bullet[B_SOURCE]);
  const Index speed = std::min(bullet[B_SPEED] + type[T_MISSILE_ACCEL], type[T_MISSILE_TOP]);
  bullet[B_SPEED] = static_cast<std::int32_t>(speed);
  const Index dx = bullet[B_TX] * 256 - bullet[B_X];
  const Index dy = bullet[B_TY] * 256 - bullet[B_Y];
  if (speed >= length(dx, dy)) {
    bullet[B_X] = bullet[B_TX] * 256;
    bullet[B_Y] = bullet[B_TY] * 256;
    return true;
  }
  const Index course = direction(dx, dy);
  bullet[B_X] += static_cast<std::int32_t>(kUnitX[course] * speed >> 8);
  bullet[B_Y] += static_cast<std::int32_t>(kUnitY[course] * speed >> 8);
  return false;
}

// One frame of a shot; false when its slot is free again.
bool move_bullet(const Battle& battle, Array1<std::int32_t> bullet) {
  if (bullet[B_STATE] == SHOWING) return --bullet[B_TIMER] > 0;
  if (bullet[B_STATE] == FLYING && !fly(battle, bullet)) return true;
  bullet[B_STATE] = SHOWING;
  if (!bullet[B_MISS] && bullet[B_UNIT] >= 0) hurt(battle, bullet[B_UNIT], bullet[B_SOURCE]);
  return true;
}

}  // namespace

void animate(const Battle& battle, Index i) {
  const Unit unit = battle.unit(i);
  const Index* const type = battle.type(i);
  if (unit[ANIMATION] == WALKING) {
    const Index step = unit[WALK_STEP] + 1 < type[T_WALK_LENGTH] ? unit[WALK_STEP] + 1 : 0;
    unit[WALK_STEP] = static_cast<std::int32_t>(step);
    unit[SPEED] = static_cast<std::int32_t>(type[T_WALK + step]);
    return;
  }
  const Index time = unit[ATTACK_TIME];
  if (time < 0 || unit[ANIMATION] != SHOOTING) return;
  unit[ATTACK_TIME]++;
  // Shot, start and end of the unbreakable part, ready: of a first attack or of a repeated one.
  const Index* const at = type + (unit[FIRST_SHOT] ? T_SHOT_FIRST : T_SHOT_REPEAT);
  if (time == at[1]) unit[UNBREAKABLE] = 1;
  if (time == at[0]) shoot(battle, i);
  if (time == at[3]) unit[FLAGS] &= ~ATTACKING;
  if (time == at[2] && unit[UNBREAKABLE]) {
    unit[UNBREAKABLE] = 0;
    resume_pending(battle, unit);
  }
  if (time > at[3]) unit[ATTACK_TIME] = -1;
}

void move_bullets(const Battle& battle) {
  Index kept = 0;
  for (Index n = 0; n < battle.counters[N_BULLETS]; n++) {
    if (!move_bullet(battle, battle.bullets.row(n))) continue;
    if (kept != n) std::copy_n(battle.bullets.row(n).data, BULLET_FIELDS, battle.bullets.row(kept).data);
    kept++;
  }
  battle.counters[N_BULLETS] = kept;
}

}  // namespace muster::battle
