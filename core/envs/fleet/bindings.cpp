#include "../../bindings.hpp"

namespace muster {

void bind_fleet([[maybe_unused]] nb::module_& room) {}

}  // namespace muster
