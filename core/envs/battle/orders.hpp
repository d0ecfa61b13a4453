// The order machine: what a unit does when its order is looked at, every 9th frame or when something wakes it.
#pragma once

#include "movement.hpp"

namespace muster::battle {

// Whether j is seen and in range of i, or would be once i has braked.
bool in_range_moving(const Battle& battle, Index i, Index j);

// Give an order from outside: it replaces everything the unit had in mind.
void give_order(Unit unit, Order order, Index target, Index x, Index y);

// Take up the order that waited for the unbreakable part of an attack to end.
void resume_pending(const Battle& battle, Unit unit);

// Look at the order of unit i.
void process_order(const Battle& battle, Index i);

}  // namespace muster::battle
