// Observations of a pursuit: distances and relative positions, in units of 8 cells, so that any grid looks alike.
// The columns are named in muster/envs/pursuit/observe.py.
#pragma once

#include "pursuit.hpp"

namespace muster::pursuit {

// agents [B, N, 2] = x, y; tasks [B, M, 3] = x, y, caught; from the middle of the grid.
void observe_coordinates(const Pursuit& pursuit, const Settings& settings, Array3<float> agents, Array3<float> tasks);

// prior [B, N, M]: minus the distance from each pursuer to each evader.
void measure_distances(const Pursuit& pursuit, const Settings& settings, Array3<double> prior);

// Features of agents [B, N, 2], tasks [B, M, 7], pairs [B, N, M, 9] and pairs of tasks [B, M, M, 5]; all zero but "caught"
// for a caught evader.
void observe_relations(const Pursuit& pursuit, const Settings& settings, Array3<float> agents, Array3<float> tasks,
                       Array4<float> pairs, Array4<float> task_pairs);

}  // namespace muster::pursuit
