// Tabu search where agents are alike, so that only the set of tasks taken matters.
//
// Choosing 50 of 500 elements by what pairs of them are worth (maximum diversity) is such a problem. A search that
// takes only moves that help soon ends there; this one takes the best move even where it loses, and does not undo it
// for a while.
#pragma once

#include "../local_search.hpp"

namespace muster {

// Whether all agents have the same scores and contributions.
bool all_alike(const Instance& instance);

// Take `steps` moves from `plan`, each the best that is not tabu, or that leads to a new best; `plan` becomes the best
// assignment on the way. The agents are alike; `trial` is scratch.
void search_tabu(Plan& plan, Plan& trial, const Instance& instance, Search& search, Index steps, double scale,
                 Stop& stop);

}  // namespace muster
