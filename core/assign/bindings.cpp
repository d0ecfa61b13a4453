#include "../bindings.hpp"

namespace muster {

void bind_assign([[maybe_unused]] nb::module_& room) {}

}  // namespace muster
