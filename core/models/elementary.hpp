// exp and log that give the same bits with every compiler and C library, written so that loops of them vectorise.
//
// Errors, measured against long double on 8 million arguments or more, stand beside each function. NaN gives NaN.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace muster {

// e^x within 0.9 ulp; 0 below -708, infinity above 709.78.
inline double exp_fixed(double x) {
  constexpr double kMagic = 6755399441055744.0;  // 1.5·2^52: adding it rounds to an integer, in the lowest bits
  constexpr double kLow = -708.0, kHigh = 709.782712893384;
  const double inside = x < kLow ? kLow : (x > kHigh ? kHigh : x);
  const double shifted = inside * 1.4426950408889634 + kMagic;
  const double n = shifted - kMagic;
  const double high = inside - n * 6.93147180369123816490e-01, low = n * 1.90821492927058770002e-10;
  const double r = high - low, t = r * r;
  const double c = r - t * (1.66666666666666019037e-01 +
                            t * (-2.77777777770155933842e-03 +
                                 t * (6.61375632143793436117e-05 +
                                      t * (-1.65339022054652515390e-06 + t * 4.13813679705723846039e-08))));
  const double y = 1.0 - ((low - (r * c) / (2.0 - c)) - high);
  // Times 2^n, in two steps since 2^1024 is no number.
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(shifted);
  const double most = std::bit_cast<double>((bits - 1 + 1023) << 52);
  const double result = y * most * 2.0;
  return x < kLow ? 0.0 : (x > kHigh ? std::numeric_limits<double>::infinity() : (x == x ? result : x));
}

// e^x within 1 ulp; 0 below -87.3, infinity above 88.72.
inline float exp_fixed(float x) {
  constexpr float kMagic = 12582912.0f;  // 1.5·2^23
  constexpr float kLow = -87.3f, kHigh = 88.722839f;
  const float inside = x < kLow ? kLow : (x > kHigh ? kHigh : x);
  const float shifted = inside * 1.44269504f + kMagic;
  const float n = shifted - kMagic;
  const float r = (inside - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const float y = (p * (r * r) + r) + 1.0f;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(shifted);
  const float most = std::bit_cast<float>((bits - 1 + 127) << 23);
  const float result = y * most * 2.0f;
  return x < kLow ? 0.0f : (x > kHigh ? std::numeric_limits<float>::infinity() : (x == x ? result : x));
}

// log x within 0.9 ulp, of x from 2^-1022 on: no denormal numbers, zeros or negative ones.
inline double log_fixed(double x) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  // The mantissa in [sqrt(1/2), sqrt(2)).
  const std::uint64_t moved = bits + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
  const double k = static_cast<double>(static_cast<std::int64_t>(moved >> 52) - 1023);
  const double f = std::bit_cast<double>((moved & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
  const double s = f / (2.0 + f), z = s * s, w = z * z;
  const double even = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
  const double odd = z * (6.666666666666735130e-01 +
                          w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
  const double half = 0.5 * f * f;
  const double result =
      k * 6.93147180369123816490e-01 - ((half - (s * (half + (odd + even)) + k * 1.90821492927058770002e-10)) - f);
  return x < std::numeric_limits<double>::infinity() ? result : x;
}

}  // namespace muster
