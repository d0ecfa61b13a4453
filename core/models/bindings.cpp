#include "../bindings.hpp"

namespace muster {

void bind_models([[maybe_unused]] nb::module_& room) {}

}  // namespace muster
