//! Resource quantities: exact decimals, stored in thousandths.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A quantity in thousandths: `1500` is 1.5.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity(i64);

/// Why a text is not a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidQuantity {
    /// Not a number with an optional suffix.
    #[error("must be a number such as 2 or 0.5, or a quantity such as 500m or 4Gi")]
    Malformed,
    /// Below zero.
    #[error("must not be negative")]
    Negative,
    /// More than three decimals.
    #[error("must have at most three decimals (0.001)")]
    TooPrecise,
    /// Above [`Quantity::MAX`].
    #[error("must be at most {}", Quantity::MAX)]
    TooLarge,
}

/// Up to here thousandths are exact as a JSON number, which preserves 15 digits.
const EXACT_FRACTION: i64 = 1_000_000_000_000_000;

impl Quantity {
    /// Zero.
    pub const ZERO: Quantity = Quantity(0);
    /// The largest accepted quantity, small enough that sums can't overflow.
    pub const MAX: Quantity = Quantity(4_000_000_000_000_000_000);

    /// A quantity from thousandths, for computed values.
    pub const fn from_milli(milli: i64) -> Self {
        Self(milli)
    }

    /// A whole quantity.
    pub const fn whole(units: i64) -> Self {
        Self(units * 1000)
    }

    /// The quantity in thousandths.
    pub const fn milli(self) -> i64 {
        self.0
    }

    /// Is it zero?
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `self - other`, at least zero.
    pub fn minus(self, other: Quantity) -> Quantity {
        Quantity(self.0.saturating_sub(other.0).max(0))
    }

    /// `self + other`.
    pub fn plus(self, other: Quantity) -> Quantity {
        Quantity(self.0.saturating_add(other.0))
    }

    /// `self * n`, if it is at most [`Quantity::MAX`].
    pub fn times(self, n: u32) -> Option<Quantity> {
        self.0.checked_mul(i64::from(n)).filter(|&m| m <= Self::MAX.0).map(Quantity)
    }
}

impl Quantity {
    /// Short form: whole multiples of Mi, Gi and Ti with their suffix.
    pub fn to_short_string(self) -> String {
        for (name, unit) in [("Ti", 1000i64 << 40), ("Gi", 1000 << 30), ("Mi", 1000 << 20)] {
            if self.0 >= unit && self.0 % unit == 0 {
                return format!("{}{name}", self.0 / unit);
            }
        }
        self.to_string()
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 1000, self.0 % 1000);
        if rest == 0 {
            return write!(f, "{whole}");
        }
        write!(f, "{whole}.{}", format!("{rest:03}").trim_end_matches('0'))
    }
}

/// The factor of a suffix, in thousandths.
fn suffix(text: &str) -> Option<i128> {
    Some(match text {
        "" => 1000,
        "m" => 1,
        "k" => 1_000_000,
        "M" => 1_000_000_000,
        "G" => 1_000_000_000_000,
        "T" => 1_000_000_000_000_000,
        "P" => 1_000_000_000_000_000_000,
        "Ki" => 1000 << 10,
        "Mi" => 1000 << 20,
        "Gi" => 1000 << 30,
        "Ti" => 1000 << 40,
        "Pi" => 1000 << 50,
        _ => return None,
    })
}

impl FromStr for Quantity {
    type Err = InvalidQuantity;

    fn from_str(text: &str) -> Result<Self, InvalidQuantity> {
        use InvalidQuantity::{Malformed, Negative, TooLarge, TooPrecise};
        let text = text.trim();
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let unit = suffix(text[end..].trim_start()).ok_or(Malformed)?;
        let (whole, fraction) = text[..end].split_once('.').unwrap_or((&text[..end], ""));
        if whole.is_empty() || (text[..end].contains('.') && fraction.is_empty()) {
            return Err(Malformed);
        }
        if fraction.contains('.') {
            return Err(Malformed);
        }
        let fraction = fraction.trim_end_matches('0');
        let digits = format!("{}{fraction}", whole.trim_start_matches('0'));
        if digits.trim_start_matches('0').len() > 24 {
            return Err(TooLarge);
        }
        let number: i128 =
            if digits.is_empty() { 0 } else { digits.parse().map_err(|_| TooLarge)? };
        if negative && number != 0 {
            return Err(Negative);
        }
        // Longer fractions are never exact: every suffix has fewer factors of ten and two.
        let places = u32::try_from(fraction.len()).map_err(|_| TooPrecise)?;
        let scale = 10i128.checked_pow(places).filter(|_| places <= 18).ok_or(TooPrecise)?;
        let product = number.checked_mul(unit).ok_or(TooLarge)?;
        if product / scale > i128::from(Self::MAX.0) {
            return Err(TooLarge);
        }
        if product % scale != 0 {
            return Err(TooPrecise);
        }
        let milli = i64::try_from(product / scale).map_err(|_| TooLarge)?;
        if milli % 1000 != 0 && milli >= EXACT_FRACTION {
            return Err(TooPrecise);
        }
        Ok(Self(milli))
    }
}

impl Serialize for Quantity {
    /// Serializes as a JSON number, which is exact because parsing limits fractions.
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        if self.0 % 1000 == 0 {
            return s.serialize_i64(self.0 / 1000);
        }
        #[expect(clippy::cast_precision_loss, reason = "fractions have at most 15 digits")]
        s.serialize_f64(self.0 as f64 / 1000.0)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(Amount)
    }
}

struct Amount;

impl Visitor<'_> for Amount {
    type Value = Quantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity: a number such as 2 or 0.5, or text such as \"500m\" or \"4Gi\"")
    }

    fn visit_i64<E: de::Error>(self, n: i64) -> Result<Quantity, E> {
        self.visit_str(&n.to_string())
    }

    fn visit_u64<E: de::Error>(self, n: u64) -> Result<Quantity, E> {
        self.visit_str(&n.to_string())
    }

    fn visit_f64<E: de::Error>(self, n: f64) -> Result<Quantity, E> {
        // Display prints the shortest exact decimal, never an exponent.
        self.visit_str(&n.to_string())
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
        text.parse().map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn valid_text_is_parsed() {
        for (text, milli) in [
            ("1", 1000),
            (" 1", 1000),
            ("0.5 ", 500),
            ("500m", 500),
            ("1.5k", 1_500_000),
            ("0", 0),
            ("-0", 0),
            ("007", 7000),
            ("4Gi", 4000 << 30),
            ("0.5Ki", 512_000),
            ("2 Mi", 2000 << 20),
            ("1.500", 1500),
            ("4000000000000000", 4_000_000_000_000_000_000),
        ] {
            assert_eq!(text.parse(), Ok(Quantity(milli)), "{text:?}");
        }
    }

    #[test]
    fn short_form_uses_binary_suffixes() {
        for (text, brief) in
            [("2147483648", "2Gi"), ("1536Mi", "1536Mi"), ("1000000", "1000000"), ("0.5", "0.5")]
        {
            assert_eq!(text.parse::<Quantity>().unwrap().to_short_string(), brief);
        }
    }

    #[test]
    fn invalid_text_is_refused() {
        use InvalidQuantity::{Malformed, Negative, TooLarge, TooPrecise};
        for (text, why) in [
            ("", Malformed),
            (" ", Malformed),
            ("x", Malformed),
            ("1.", Malformed),
            (".5", Malformed),
            ("1.2.3", Malformed),
            ("NaN", Malformed),
            ("inf", Malformed),
            ("1e3", Malformed),
            ("1 2", Malformed),
            ("4gi", Malformed),
            ("٣", Malformed),
            ("-1", Negative),
            ("0.0001", TooPrecise),
            ("0.5m", TooPrecise),
            ("0.00000000000000000000000000000001", TooPrecise),
            ("1000000000000.001", TooPrecise),
            ("4000000000000001", TooLarge),
            ("99999999999999999999999999999999999999999999", TooLarge),
            ("9Pi", TooLarge),
        ] {
            assert_eq!(text.parse::<Quantity>(), Err(why), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn text_and_json_round_trip(milli in 0i64..EXACT_FRACTION) {
            let quantity = Quantity(milli);
            prop_assert_eq!(quantity.to_string().parse(), Ok(quantity));
            let json = serde_json::to_string(&quantity).unwrap();
            prop_assert_eq!(serde_json::from_str::<Quantity>(&json).unwrap(), quantity);
        }

        #[test]
        fn parsing_never_panics(text: String) {
            let _ = text.parse::<Quantity>();
        }
    }
}
