//! Quantities in the notation of Kubernetes.

use model::Quantity;

/// Parses a quantity into thousandths; rounds up if `up`, else down. None if it is invalid.
pub(super) fn parse(text: &str, up: bool) -> Option<Quantity> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..end], &text[end..]);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: i128 = format!("{whole}{fraction}").parse().ok().filter(|_| number.len() <= 24)?;
    let below = 10i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let (times, over) = scale(unit)?;
    let (above, below) = (digits.checked_mul(times)?, below.checked_mul(over)?);
    let milli = if up { (above + below - 1) / below } else { above / below };
    let milli = i64::try_from(milli).unwrap_or(i64::MAX).min(Quantity::MAX.milli());
    Some(Quantity::from_milli(milli))
}

/// Thousandths of a unit, as a fraction.
fn scale(unit: &str) -> Option<(i128, i128)> {
    let power = |n: u32| 10i128.checked_pow(n);
    Some(match unit {
        "n" => (1, 1_000_000),
        "u" => (1, 1000),
        "m" => (1, 1),
        "" => (1000, 1),
        "k" => (power(6)?, 1),
        "M" => (power(9)?, 1),
        "G" => (power(12)?, 1),
        "T" => (power(15)?, 1),
        "P" => (power(18)?, 1),
        "E" => (power(21)?, 1),
        "Ki" => (1000 << 10, 1),
        "Mi" => (1000 << 20, 1),
        "Gi" => (1000 << 30, 1),
        "Ti" => (1000 << 40, 1),
        "Pi" => (1000 << 50, 1),
        "Ei" => (1000 << 60, 1),
        other => {
            let exponent: i32 = other.strip_prefix(['e', 'E'])?.parse().ok()?;
            let size = power(exponent.unsigned_abs())?;
            if exponent < 0 { (1000, size) } else { (1000 * size, 1) }
        }
    })
}

/// Paddock's name of a resource of Kubernetes; none for resources that it does not count.
pub(super) fn from_kubernetes(name: &str) -> Option<&str> {
    match name {
        "cpu" => Some("cpu"),
        "memory" => Some("ram"),
        "ephemeral-storage" => Some("disk"),
        "nvidia.com/gpu" => Some("gpu"),
        other if other.contains('/') && !other.starts_with("hugepages-") => Some(other),
        _ => None,
    }
}

/// Name and quantity of a Paddock resource in Kubernetes; none for resources unknown there.
pub(super) fn to_kubernetes(kind: &str, amount: Quantity) -> Option<(String, String)> {
    let whole = ((amount.milli() + 999) / 1000).to_string();
    match kind {
        "cpu" => Some(("cpu".into(), format!("{}m", amount.milli()))),
        "ram" => Some(("memory".into(), whole)),
        "disk" => Some(("ephemeral-storage".into(), whole)),
        "gpu" => Some(("nvidia.com/gpu".into(), whole)),
        other if other.contains('/') => Some((other.into(), whole)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_parsed_and_converted() {
        for (text, milli) in [
            ("4", 4000),
            ("3920m", 3920),
            ("0.5", 500),
            ("1.5Gi", 1_610_612_736_000),
            ("15923032Ki", 16_305_184_768_000),
            ("1e3", 1_000_000),
            ("5E-1", 500),
            ("2M", 2_000_000_000),
            ("1500000n", 1),
            ("250u", 0),
        ] {
            assert_eq!(parse(text, false), Some(Quantity::from_milli(milli)), "{text}");
        }
        assert_eq!(parse("250u", true), Some(Quantity::from_milli(1)));
        for text in ["", "x", "1x", "-1", "1.2.3", "e3"] {
            assert_eq!(parse(text, true), None, "{text}");
        }
        assert_eq!(parse("999999999999E", true), Some(Quantity::MAX));
        let memory = Some(("memory".into(), "2".into()));
        assert_eq!(to_kubernetes("ram", Quantity::from_milli(1500)), memory);
        assert_eq!(to_kubernetes("seats", Quantity::ZERO), None);
        assert_eq!(from_kubernetes("ephemeral-storage"), Some("disk"));
        let disk = Some(("ephemeral-storage".into(), "2147483648".into()));
        assert_eq!(to_kubernetes("disk", Quantity::whole(2 << 30)), disk);
        assert_eq!(from_kubernetes("pods"), None);
    }
}
