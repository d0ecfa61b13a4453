// The linear assignment problem: every contribution and capacity is 1. Shortest augmenting paths (Jonker and Volgenant
// 1987) solve it several times faster than the transport simplex.
//
// Prices start at 0 and rise. First agents without a task bid for their best one, as in an auction, and displace each
// other; then each agent that is still free finds the path of exchanges that costs least, which ends at a free task or
// at an agent that is better left out.
#pragma once

#include "../../arena.hpp"
#include "../../stop.hpp"
#include "../problem.hpp"

namespace muster {

struct JonkerVolgenant {
  Array1<Index> task;      // [N] of each agent, -1 for none
  Array1<Index> owner;     // [M] agent of each task, -1 for none
  Array1<double> price;    // [M]
  Array1<double> open;     // [M] price of tasks that a path has not reached yet, else infinity
  Array1<double> distance;  // [M] of the best path to each of those tasks, else infinity
  Array1<double> before;   // [M] agent before the task on that path, as a double for SIMD
  Array1<Index> reached;   // [M] tasks in the order in which they were reached ...
  Array1<double> cost;     // [M] ... at this distance
  Array1<Index> queue;     // [N + 1] agents without a task
  Array1<Index> arc_start;  // [N + 1] exchanges that cost nothing, by agent ...
  Array1<Index> arc_to;    // ... and the agent whose task is taken
  Array1<Index> entering;  // [N + 1] how many of them lead to each agent
};

JonkerVolgenant make_jonker_volgenant(Arena& arena, Index n, Index m);

// Whether a batch is one of linear assignment problems that are large enough for it to matter.
bool is_linear_assignment(const Problem& problem);

// Solve instance b and write its answer; false if nothing was written and the simplex has to be used: where tasks or agents
// are not alive, an entry is invalid, time is over, or several assignments of a smaller instance are optimal (the simplex
// chooses among them).
bool solve_by_jonker_volgenant(const JonkerVolgenant& work, Index b, const Problem& problem, const Settings& settings,
                               const Output& out, Stop& stop);

}  // namespace muster
