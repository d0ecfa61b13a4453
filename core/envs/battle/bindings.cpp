#include "../../bindings.hpp"

namespace muster {

void bind_battle([[maybe_unused]] nb::module_& room) {}

}  // namespace muster
