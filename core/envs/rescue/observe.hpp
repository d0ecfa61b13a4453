// Observations of search and rescue. Coordinates are in units of 8 cells from the middle of the grid: a 16x16 grid
// spans about -1 to 1, and a distance means the same on any grid.
#pragma once

#include "../../array.hpp"

namespace muster::rescue {

// agent_features [B, N, 2] = x, y; task_features [B, M, 3] = x, y, picked up.
void observe_objects(Array3<const Index> agents, Array3<const Index> victims, Array2<const bool> waiting, Index height,
                     Index width, Array3<float> agent_features, Array3<float> task_features);

// The first five features of each pair [B, S, T, 5 or more]: dx, dy, |dx|, |dy| and king's moves from source to target.
void observe_pairs(Array3<const Index> sources, Array3<const Index> targets, Array4<float> features);

// distances [B, S, T]: king's moves from each source to each target, times `scale`.
void measure_distances(Array3<const Index> sources, Array3<const Index> targets, double scale, Array3<double> distances);

// The first four planes [B, 4 or more, H, W]: victim here, ambulance here, and the x and y of what is here. Victims that
// were picked up are left out.
void draw_planes(Array3<const Index> agents, Array3<const Index> victims, Array2<const bool> waiting, Array4<float> planes);

}  // namespace muster::rescue
