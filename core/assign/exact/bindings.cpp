#include "../bindings.hpp"

namespace muster {

void bind_exact([[maybe_unused]] nb::module_& room) {}

}  // namespace muster
