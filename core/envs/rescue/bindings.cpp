#include "../../bindings.hpp"

namespace muster {

void bind_rescue([[maybe_unused]] nb::module_& room) {}

}  // namespace muster
