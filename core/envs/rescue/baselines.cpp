#include "baselines.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "../../random.hpp"
#include "rescue.hpp"

namespace muster::rescue {

void send_to_closest(Array3<const Index> agents, Array3<const Index> victims, Array2<const bool> open, bool manhattan,
                     Array1<std::uint64_t> rng, Array2<Index> assignment) {
  for (Index b = 0; b < agents.layers; ++b) {
    for (Index i = 0; i < agents.rows; ++i) {
      Index nearest = std::numeric_limits<Index>::max();
      Index ties = 0;
      assignment(b, i) = -1;
      for (Index j = 0; j < victims.rows; ++j) {
        if (!open(b, j)) continue;
        const Index rows = std::abs(victims(b, j, kRow) - agents(b, i, kRow));
        const Index columns = std::abs(victims(b, j, kColumn) - agents(b, i, kColumn));
        const Index distance = manhattan ? rows + columns : std::max(rows, columns);
        if (distance < nearest) {
          nearest = distance;
          ties = 0;
        }
        if (distance == nearest) {
          ++ties;
          if (ties == 1 || below(rng[b], ties) == 0) assignment(b, i) = j;
        }
      }
    }
  }
}

void follow_routes(Array3<const Index> routes, Array2<const bool> waiting, Array2<Index> assignment) {
  for (Index b = 0; b < routes.layers; ++b) {
    for (Index i = 0; i < routes.rows; ++i) {
      assignment(b, i) = -1;
      for (Index k = 0; k < routes.columns; ++k) {
        const Index task = routes(b, i, k);
        if (task < 0) break;
        if (waiting(b, task)) {
          assignment(b, i) = task;
          break;
        }
      }
    }
  }
}

}  // namespace muster::rescue
