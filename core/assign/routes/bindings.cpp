// Bindings of routes: muster._core.routes.
#include "../bindings.hpp"
#include "solve.hpp"

namespace muster {

void bind_routes(nb::module_& module) {
  bind_kernel(module, "solve_routes", solve_routes, "end_scores", "previous", "routes", "power");
}

}  // namespace muster
