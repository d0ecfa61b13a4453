#include "../bindings.hpp"
#include "solve.hpp"

namespace muster {

void bind_routes(nb::module_& room) {
  bind_kernel<In3<const double>, In3<const Index>, In3<Index>, Index>(
      room, "solve_routes", "Routes of instances begin..end-1, written to `out` and `routes` [B, N, M].", solve_routes,
      "end_scores"_a, "previous"_a, "routes"_a.noconvert(), "power"_a);
}

}  // namespace muster
