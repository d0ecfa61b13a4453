// Observations of a battle, and the orders that follow from an assignment.
#pragma once

#include "engine.hpp"
#include "geometry.hpp"

namespace muster::battle {

// Features of a unit; its one-hot type may follow.
enum UnitFeature : Index {
  ENEMY, PLACE_X, PLACE_Y, VELOCITY_X, VELOCITY_Y, HEALTH, COOLDOWN_LEFT, RANGE, BASE_FEATURES
};
// Features of a unit and an enemy.
enum PairFeature : Index { DISTANCE, LAST_TARGET, PAIR_FEATURES };

// How units are shown: range [K] of each type, whether the type is shown, and the unit of distances in walk tiles.
struct Display {
  Array1<const double> ranges;
  bool one_hot;
  double distance_scale;
};

// Side of the square of planes, in walk tiles.
constexpr Index kGrid = 100;

// Hit points of unit i as the game shows them.
inline Index hit_points(const Battle& battle, Index i) { return shown_hit_points(battle.units(HP, i)); }

// Integer part of the damage that one hit of i does to j (both indices into all units).
inline Index contribution(const Battle& battle, Index i, Index j) {
  return battle.type(i)[TYPE_FIELDS + battle.types.rows + battle.units(TYPE, j)];
}

// Index (0..n_theirs-1) of the enemy nearest to our unit i, counted in walk tiles; -1 if none lives.
Index closest_enemy(const Battle& battle, Index i);

// Fill the observation of one battle: agents [N, F], tasks [M, F], pairs [N, M, PAIR_FEATURES], contributions [N, M]
// and capacities [M].
void observe(const Battle& battle, const Display& display, Array2<float> agents, Array2<float> tasks,
             Array3<float> pairs, Array2<double> contributions, Array1<double> capacities);

// Add each unit's features at its walk tile of a window round the middle of all units; `planes` [2F, kGrid, kGrid].
//
// The first F planes are ours, the others the enemy's. A unit outside the window is drawn at its rim. `places` [U, 2]
// gets the row and column of each unit.
void draw_planes(const Battle& battle, Array2<const float> agents, Array2<const float> tasks, Array3<float> planes,
                 Array2<Index> places);

// Turn an assignment [N] into orders [N].
//
// A task index is that enemy; HOLD and MARCH pass through. An agent that is unassigned, or whose enemy is dead, stops
// if it could still have fitted somewhere (`guess`: so the policy chose it); otherwise it keeps its previous target, or
// takes the closest enemy. With a single enemy left it attacks that one. `left` [M] is scratch space.
void resolve(const Battle& battle, bool guess, Array1<const Index> assignment, Array1<Index> orders,
             Array1<Index> left);

}  // namespace muster::battle
