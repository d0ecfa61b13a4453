#include "../../bindings.hpp"

namespace muster {

void bind_pursuit([[maybe_unused]] nb::module_& room) {}

}  // namespace muster
