#include "observe.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "rescue.hpp"

namespace muster::rescue {

namespace {

constexpr double kUnitsPerCell = 1.0 / 8.0;

enum Plane : Index { kVictimHere, kAmbulanceHere, kXHere, kYHere, kPlanes };

// Coordinates of cells, from the middle of the grid.
struct Grid {
  double middle_row;
  double middle_column;

  Grid(Index height, Index width)
      : middle_row(static_cast<double>(height - 1) / 2.0), middle_column(static_cast<double>(width - 1) / 2.0) {}
  float x(Index column) const {
    return static_cast<float>((static_cast<double>(column) - middle_column) * kUnitsPerCell);
  }
  float y(Index row) const { return static_cast<float>((static_cast<double>(row) - middle_row) * kUnitsPerCell); }
};

void draw(const Grid& grid, Array1<const Index> cell, Plane what, Array3<float> planes) {
  const Index row = cell[kRow], column = cell[kColumn];
  planes(what, row, column) = 1.0f;
  planes(kXHere, row, column) = grid.x(column);
  planes(kYHere, row, column) = grid.y(row);
}

}  // namespace

void observe_objects(Array3<const Index> agents, Array3<const Index> victims, Array2<const bool> waiting, Index height,
                     Index width, Array3<float> agent_features, Array3<float> task_features) {
  const Grid grid(height, width);
  for (Index b = 0; b < agents.layers; ++b) {
    for (Index i = 0; i < agents.rows; ++i) {
      agent_features(b, i, 0) = grid.x(agents(b, i, kColumn));
      agent_features(b, i, 1) = grid.y(agents(b, i, kRow));
    }
    for (Index j = 0; j < victims.rows; ++j) {
      task_features(b, j, 0) = grid.x(victims(b, j, kColumn));
      task_features(b, j, 1) = grid.y(victims(b, j, kRow));
      task_features(b, j, 2) = waiting(b, j) ? 0.0f : 1.0f;
    }
  }
}

void observe_pairs(Array3<const Index> sources, Array3<const Index> targets, Array4<float> features) {
  for (Index b = 0; b < sources.layers; ++b) {
    for (Index i = 0; i < sources.rows; ++i) {
      const Index row = sources(b, i, kRow), column = sources(b, i, kColumn);
      for (Index j = 0; j < targets.rows; ++j) {
        // Eighths of whole numbers are exact, in single precision too.
        const float dx = static_cast<float>(static_cast<double>(targets(b, j, kColumn) - column) * kUnitsPerCell);
        const float dy = static_cast<float>(static_cast<double>(targets(b, j, kRow) - row) * kUnitsPerCell);
        float* const pair = &features(b, i, j, 0);
        pair[0] = dx;
        pair[1] = dy;
        pair[2] = std::abs(dx);
        pair[3] = std::abs(dy);
        pair[4] = std::max(std::abs(dx), std::abs(dy));
      }
    }
  }
}

void measure_distances(Array3<const Index> sources, Array3<const Index> targets, double scale, Array3<double> distances) {
  for (Index b = 0; b < sources.layers; ++b) {
    for (Index i = 0; i < sources.rows; ++i) {
      const Index row = sources(b, i, kRow), column = sources(b, i, kColumn);
      for (Index j = 0; j < targets.rows; ++j) {
        const Index moves = std::max(std::abs(targets(b, j, kRow) - row), std::abs(targets(b, j, kColumn) - column));
        distances(b, i, j) = scale * static_cast<double>(moves);
      }
    }
  }
}

void draw_planes(Array3<const Index> agents, Array3<const Index> victims, Array2<const bool> waiting, Array4<float> planes) {
  const Grid grid(planes.rows, planes.columns);
  for (Index b = 0; b < agents.layers; ++b) {
    const Array3<float> block = planes.block(b);
    std::fill_n(block.data, kPlanes * block.rows * block.columns, 0.0f);
    for (Index j = 0; j < victims.rows; ++j) {
      if (waiting(b, j)) draw(grid, victims.row(b, j), kVictimHere, block);
    }
    for (Index i = 0; i < agents.rows; ++i) draw(grid, agents.row(b, i), kAmbulanceHere, block);
  }
}

}  // namespace muster::rescue
