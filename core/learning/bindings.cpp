#include "../bindings.hpp"

namespace muster {

void bind_learning([[maybe_unused]] nb::module_& room) {}

}  // namespace muster
