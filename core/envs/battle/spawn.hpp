// Setting up a battle.
#pragma once

#include "layout.hpp"

namespace muster::battle {

// Fill the arrays of one battle; `roster` [U, 5] has each unit's type, centre x, y and spread x, y in walk tiles.
void spawn(const Battle& battle, Array2<const Index> roster);

}  // namespace muster::battle
