#include "../../bindings.hpp"

namespace muster {

void bind_routes([[maybe_unused]] nb::module_& room) {}

}  // namespace muster
