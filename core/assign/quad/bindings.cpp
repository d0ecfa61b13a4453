#include "../bindings.hpp"

namespace muster {

void bind_quad([[maybe_unused]] nb::module_& room) {}

}  // namespace muster
