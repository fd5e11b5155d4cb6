//! Prometheus text format (version 0.0.4).

use std::fmt::Write as _;

use crate::metrics_backend::Series;

/// Renders the last value of each series, grouped by name.
pub(super) fn exposition(series: &[Series]) -> String {
    let mut sorted: Vec<&Series> = series.iter().collect();
    sorted.sort_by(|a, b| a.labels.cmp(&b.labels));
    let mut text = String::new();
    let mut last = "";
    for series in sorted {
        let (Some(name), Some((at, value))) = (series.labels.get("__name__"), series.values.last())
        else {
            continue;
        };
        if name != last {
            let _ = writeln!(text, "# TYPE {name} untyped");
            last = name;
        }
        let _ = writeln!(text, "{name}{} {value} {}", labels(series), at.0 / 1000);
    }
    text
}

fn labels(series: &Series) -> String {
    let named = series.labels.iter().filter(|(name, _)| *name != "__name__");
    let pairs: Vec<String> =
        named.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use model::Time;

    use super::*;

    #[test]
    fn series_are_grouped_by_name_and_labels_are_escaped() {
        let one = |name: &str, topic: Option<&str>, value| {
            let mut labels = BTreeMap::from([("__name__".to_owned(), name.to_owned())]);
            labels.extend(topic.map(|topic| ("topic".to_owned(), topic.to_owned())));
            Series { labels, values: vec![(Time(0), 0.0), (Time(5_000_000), value)] }
        };
        let series = [
            one("b", Some("x"), 1.5),
            one("a", None, 2.0),
            one("b", Some("say \"hi\"\\\n"), 3.0),
            Series { values: vec![], ..one("c", None, 0.0) },
        ];
        let expected = "# TYPE a untyped\na 2 5000\n# TYPE b untyped\n\
                        b{topic=\"say \\\"hi\\\"\\\\\\n\"} 3 5000\nb{topic=\"x\"} 1.5 5000\n";
        assert_eq!(exposition(&series), expected);
    }
}
