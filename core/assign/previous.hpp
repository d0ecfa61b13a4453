// Keep the previous plan: an answer that is never worth less than what is still possible of the plan before it.
#pragma once

#include "../stop.hpp"
#include "plan.hpp"

namespace muster {

// Load the part of an assignment, by the numbers of the input, that is still possible; `position` is each task's index
// or -1.
void load_plan(Plan& plan, const Instance& instance, const Array1<const Index>& tasks, const Array1<Index>& position);

// How many agents lost the task that they had, by the numbers of the input.
Index changes_of(const Plan& plan, const Instance& instance, const Array1<const Index>& previous);

// Let no answer of instances begin..end-1 be worth less than what is still possible of the plan before it.
void keep_previous(Index begin, Index end, const Problem& problem, const Settings& settings, const Output& out, Stop& stop,
                   const Array2<const Index>& previous);

}  // namespace muster
