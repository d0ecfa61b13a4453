#include "engine.hpp"

#include "combat.hpp"
#include "ground.hpp"
#include "orders.hpp"

namespace muster::battle {

namespace {

// Integer mean, in walk tiles, of one coordinate (PX or PY) of the live units first..last-1.
Index mean_tile(const Battle& battle, UnitField field, Index first, Index last) {
  Index total = 0;
  Index n = 0;
  for (Index i = first; i < last; i++) {
    if (!battle.alive(i)) continue;
    total += battle.units(field, i) >> 3;
    n++;
  }
  return floor_divide(total, std::max(n, Index{1}));
}

// Send each of our units its order.
//
// An attack is sent only when the target has changed. A unit on HOLD is stopped at every step of the bot.
void send_commands(const Battle& battle, Array1<const Index> orders) {
  const Array1<Index> counters = battle.counters;
  const Index frame = counters[FRAME];
  const Index n_ours = battle.n_ours;
  counters[OUR_MARCH_X] = kTile * mean_tile(battle, PX, n_ours, battle.n_units());
  counters[OUR_MARCH_Y] = kTile * mean_tile(battle, PY, n_ours, battle.n_units());
  const bool march_again = floor_divide(frame, kReissue) != floor_divide(frame - kDecisionFrames, kReissue);
  const auto effect = static_cast<std::int32_t>(frame + battle.settings.latency);
  for (Index i = 0; i < n_ours; i++) {
    const Unit unit = battle.unit(i);
    if (!unit[ALIVE]) continue;
    const Index order = orders[i];
    unit[WAS_STOPPING] = unit[STOPPING];
    unit[STOPPING] = order == HOLD;
    if (order >= 0 && order != unit[PREVIOUS]) {
      unit[COMMAND] = COMMAND_ATTACK;
      unit[COMMAND_UNIT] = static_cast<std::int32_t>(n_ours + order);
      unit[COMMAND_FRAME] = effect;
    } else if (order == MARCH && (march_again || unit[PREVIOUS] != MARCH)) {
      unit[COMMAND] = COMMAND_ATTACK_MOVE;
      unit[COMMAND_FRAME] = effect;
    }
    unit[PREVIOUS] = static_cast<std::int32_t>(order);
  }
}

// Apply our commands that are due; the decision that they may come from was taken in frame `started`.
void deliver_commands(const Battle& battle, Index started) {
  const Index frame = battle.counters[FRAME];
  const Index sent = frame - battle.settings.latency;
  const bool bot_steps = sent % battle.settings.bot_step == 0;
  const UnitField stopping = sent >= started ? STOPPING : WAS_STOPPING;
  for (Index i = 0; i < battle.n_ours; i++) {
    const Unit unit = battle.unit(i);
    if (!unit[ALIVE]) continue;
    if (bot_steps && unit[stopping]) give_order(unit, STOP, -1, unit[PX], unit[PY]);
    if (unit[COMMAND] == NO_COMMAND || unit[COMMAND_FRAME] != frame) continue;
    const std::int32_t target = unit[COMMAND_UNIT];
    if (unit[COMMAND] == COMMAND_ATTACK_MOVE) {
      unit[START_DELAY] = 1;
      give_order(unit, ATTACK_MOVE, -1, battle.counters[OUR_MARCH_X], battle.counters[OUR_MARCH_Y]);
    } else if (battle.alive(target)) {
      unit[START_DELAY] = 1;
      give_order(unit, ATTACK, target, battle.units(PX, target), battle.units(PY, target));
    }
    unit[COMMAND] = NO_COMMAND;
  }
}

// Every so often send all opponents to the middle of our army, attacking what they meet.
void order_opponents(const Battle& battle) {
  const Array1<Index> counters = battle.counters;
  const Index frame = counters[FRAME];
  const Index since = frame - battle.settings.first_order;
  if (since >= 0 && since % kReissue == 0) {
    counters[MARCH_X] = kTile * mean_tile(battle, PX, 0, battle.n_ours);
    counters[MARCH_Y] = kTile * mean_tile(battle, PY, 0, battle.n_ours);
    counters[MARCH_FRAME] = frame + battle.settings.latency;
  }
  if (frame != counters[MARCH_FRAME]) return;
  for (Index i = battle.n_ours; i < battle.n_units(); i++) {
    const Unit unit = battle.unit(i);
    if (!unit[ALIVE]) continue;
    unit[START_DELAY] = 1;
    give_order(unit, ATTACK_MOVE, -1, counters[MARCH_X], counters[MARCH_Y]);
  }
}

bool seen_by_enemy(const Battle& battle, Index i) {
  const Unit unit = battle.unit(i);
  const Range enemies = enemies_of(battle, i);
  for (Index j = enemies.first; j < enemies.last; j++) {
    const Unit enemy = battle.unit(j);
    if (!enemy[ALIVE]) continue;
    const std::int32_t dx = enemy[PX] - unit[PX];
    const Index reach = battle.type(j)[T_SIGHT];
    if (std::abs(dx) <= reach && length(dx, enemy[PY] - unit[PY]) <= reach) return true;
  }
  return false;
}

// Mark the units that an enemy sees; a unit once seen stays marked.
void update_sight(const Battle& battle) {
  // While the armies are apart, most units lie beyond anything that the other side can see: tell them by x alone.
  struct Span {
    Index left = kFar;
    Index right = -kFar;
  } spans[2];
  const std::int32_t* const live = battle.row(LIVE);
  for (Index k = 0; k < battle.counters[N_LIVE]; k++) {
    const Index i = live[k];
    const Index x = battle.units(PX, i);
    const Index reach = battle.type(i)[T_SIGHT];
    Span& side = spans[i < battle.n_ours];
    side.left = std::min(side.left, x - reach);
    side.right = std::max(side.right, x + reach);
  }
  for (Index k = 0; k < battle.counters[N_LIVE]; k++) {
    const Index i = live[k];
    const Unit unit = battle.unit(i);
    const Span& enemy = spans[i >= battle.n_ours];
    if (unit[SEEN] || unit[PX] < enemy.left || unit[PX] > enemy.right) continue;
    if (seen_by_enemy(battle, i)) unit[SEEN] = 1;
  }
}

// One unit's timers, order and animation.
void update_unit(const Battle& battle, Index i) {
  const Unit unit = battle.unit(i);
  const Index* const type = battle.type(i);
  if (unit[MAIN_TIMER] > 0) unit[MAIN_TIMER]--;
  if (unit[COOLDOWN] > 0) unit[COOLDOWN]--;
  if (unit[COOLDOWN] == 0 && type[T_READY_LOOK]) unit[LOOK_TIMER] = 0;
  if (type[T_REGEN]) unit[HP] = static_cast<std::int32_t>(std::min(unit[HP] + type[T_REGEN], type[T_HP]));
  if (unit[CHASE_TIMER] > 0) unit[CHASE_TIMER]--;
  if (unit[LOOK_TIMER] > 0) {
    unit[LOOK_TIMER]--;
  } else {
    unit[LOOK_TIMER] = kLookPeriod - 1;
    process_order(battle, i);
  }
  animate(battle, i);
}

// Drop the dead from the live list.
void bury(const Battle& battle) {
  std::int32_t* const live = battle.row(LIVE);
  Index kept = 0;
  for (Index k = 0; k < battle.counters[N_LIVE]; k++) {
    if (battle.alive(live[k])) live[kept++] = live[k];
  }
  battle.counters[N_LIVE] = kept;
  battle.counters[DEATHS] = 0;
}

// One frame: commands, movement, sight, orders and animations, shots.
void advance_frame(const Battle& battle, Index started) {
  const Array1<Index> counters = battle.counters;
  const std::int32_t* const live = battle.row(LIVE);
  deliver_commands(battle, started);
  order_opponents(battle);
  if (--counters[ORDER_COUNTER] <= 0) {
    counters[ORDER_COUNTER] = kResetPeriod;
    for (Index k = 0; k < counters[N_LIVE]; k++) battle.units(LOOK_TIMER, live[k]) = static_cast<std::int32_t>(k % 8);
  }
  for (Index k = 0; k < counters[N_LIVE]; k++) {
    const Index i = live[k];
    const Unit unit = battle.unit(i);
    unit[OLD_X] = unit[X];
    unit[OLD_Y] = unit[Y];
    if (battle.type(i)[T_FLYER]) {
      move_flyer(battle, i);
    } else {
      move_walker(battle, i);
    }
  }
  if (battle.settings.fog) update_sight(battle);
  for (Index k = 0; k < counters[N_LIVE]; k++) {
    if (battle.alive(live[k])) update_unit(battle, live[k]);
  }
  move_bullets(battle);
  if (counters[DEATHS]) bury(battle);
  counters[FRAME]++;
}

}  // namespace

Index shown_health(const Battle& battle, Index first, Index last) {
  Index total = 0;
  for (Index i = first; i < last; i++) {
    if (battle.alive(i)) total += shown_hit_points(battle.units(HP, i));
  }
  return total;
}

void run_decision(const Battle& battle, Array1<const Index> orders, Index frames) {
  const Array1<Index> counters = battle.counters;
  if (counters[ENDED]) return;
  const Index started = counters[FRAME];
  send_commands(battle, orders);
  for (Index frame = 0; frame < frames && !counters[ENDED]; frame++) {
    advance_frame(battle, started);
    counters[ENDED] = counters[N_OURS] == 0 || counters[N_THEIRS] == 0;
  }
  counters[STEPS]++;
  counters[HEALTH_OURS] = shown_health(battle, 0, battle.n_ours);
  counters[HEALTH_THEIRS] = shown_health(battle, battle.n_ours, battle.n_units());
}

void run_to_first_decision(const Battle& battle) {
  while (battle.counters[FRAME] < 0) advance_frame(battle, 0);
}

}  // namespace muster::battle
