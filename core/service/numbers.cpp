// Numbers in the body of a request as arrays: a body has thousands, and making a Python object of each takes longer than
// most decisions do.
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "bindings.hpp"

namespace muster {
namespace {

// Reads arrays of numbers that are the value of a key, [..] or [[..], ..] with rows of one length, from JSON text. It is no
// parser: all other text stays, for a JSON parser to read or to refuse.
class Lifter {
 public:
  Lifter(std::string_view text, double* values) : at_(text.data()), end_(at_ + text.size()), values_(values) {}

  // The text with NaN for each array, which are described by (first value, rows or -1, columns, whether all integers).
  nb::tuple lift() {
    const char* copied = at_;
    char before = 0;
    while (at_ < end_) {
      const char letter = *at_;
      if (letter == '"') {
        skip_string();
      } else if (letter == 'N' || letter == 'I') {
        return nb::make_tuple(nb::bytes("", 0), nb::list());  // the text has a NaN of its own
      } else if (letter == '[' && before == ':') {
        const char* began = at_;
        if (read_block()) {
          text_.append(copied, began).append("NaN");
          copied = at_;
        } else {
          at_ = began + 1;
        }
      } else {
        ++at_;
      }
      if (!is_space(letter)) before = letter;
    }
    text_.append(copied, end_);
    return nb::make_tuple(nb::bytes(text_.data(), text_.size()), blocks_);
  }

 private:
  static constexpr double largest = 1e30;  // of single precision, and some
  static constexpr double exact_integer = 9007199254740992.0;  // 2^53

  static bool is_space(char letter) { return letter == ' ' || letter == '\n' || letter == '\t' || letter == '\r'; }
  static bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

  void skip_string() {
    for (++at_; at_ < end_ && *at_ != '"'; ++at_) {
      if (*at_ == '\\') ++at_;
    }
    at_ = at_ < end_ ? at_ + 1 : end_;
  }

  // Whether the next letter but spaces is this one; then it is passed.
  bool take(char letter) {
    while (at_ < end_ && is_space(*at_)) ++at_;
    if (at_ == end_ || *at_ != letter) return false;
    ++at_;
    return true;
  }

  bool read_block() {
    double* const first = values_;
    std::int64_t rows = -1, columns = 0;
    bool whole = true, found = false;
    take('[');
    if (take('[')) {
      rows = 1;
      found = read_row(columns, whole);
      while (found && take(',')) {
        std::int64_t length = 0;
        found = take('[') && read_row(length, whole) && length == columns;
        ++rows;
      }
      found = found && take(']');
    } else {
      found = read_row(columns, whole);
    }
    if (found) {
      blocks_.append(nb::make_tuple(first - start_, rows, columns, whole));
    } else {
      values_ = first;
    }
    return found;
  }

  // Numbers up to the end of their list, at least one.
  bool read_row(std::int64_t& count, bool& whole) {
    do {
      if (!read_number(whole)) return false;
      ++count;
    } while (take(','));
    return take(']');
  }

  bool read_number(bool& whole) {
    while (at_ < end_ && is_space(*at_)) ++at_;
    const char* const began = at_;
    if (at_ < end_ && *at_ == '-') ++at_;
    if (at_ == end_ || !is_digit(*at_)) return false;
    std::uint64_t digits = 0;
    const char* const integer = at_;
    if (*at_ == '0') {
      ++at_;
    } else {
      read_digits(digits);
    }
    std::int64_t count = at_ - integer, decimals = 0;
    bool simple = true;
    if (at_ < end_ && *at_ == '.') {
      const char* const fraction = ++at_;
      read_digits(digits);
      decimals = at_ - fraction;
      if (decimals == 0) return false;
      count += decimals;
      whole = false;
    }
    if (at_ < end_ && (*at_ == 'e' || *at_ == 'E')) {
      if (++at_ < end_ && (*at_ == '+' || *at_ == '-')) ++at_;
      const char* const exponent = at_;
      std::uint64_t ignored = 0;
      read_digits(ignored);
      if (at_ == exponent) return false;
      whole = simple = false;
    }
    double value = 0.0;
    if (simple && count <= 15) {
      // Both are exact, so that their quotient is rounded once.
      value = static_cast<double>(digits) / powers[decimals];
      if (*began == '-') value = -value;
    } else if (std::from_chars(began, at_, value).ec != std::errc()) {
      return false;
    }
    if (!(std::abs(value) <= largest)) return false;
    whole = whole && std::abs(value) < exact_integer;
    *values_++ = value;
    return true;
  }

  void read_digits(std::uint64_t& digits) {
    for (; at_ < end_ && is_digit(*at_); ++at_) digits = 10 * digits + static_cast<std::uint64_t>(*at_ - '0');
  }

  static constexpr double powers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  const char* at_;
  const char* end_;
  double* values_;
  double* const start_ = values_;
  std::string text_;
  nb::list blocks_;
};

nb::tuple lift_numbers(const nb::bytes& text, Numpy<double, 1> values) {
  // A number and the comma or bracket after it take two letters at least.
  require(2 * values.size() >= text.size(), "values must have half as many entries as the text has letters");
  return Lifter({text.c_str(), text.size()}, values.data()).lift();
}

bool are_within(Array2<const float> values, Array1<const float> low, Array1<const float> high) {
  require(low.size == values.columns && high.size == values.columns, "low and high must be as wide as the values");
  const float* value = values.data;
  bool within = true;
  for (Index row = 0; row < values.rows && within; ++row) {
    for (Index k = 0; k < values.columns; ++k, ++value) within &= *value >= low.data[k] && *value <= high.data[k];
  }
  return within;
}

}  // namespace

void bind_service(nb::module_& module) {
  bind_function(module, "are_within", are_within, "values", "low", "high");
  module.def("lift_numbers", &lift_numbers, "text"_a, "values"_a.noconvert());
}

}  // namespace muster
