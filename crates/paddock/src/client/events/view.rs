//! Table view of events.

use serde_json::Value;
use wire::event::Event;

use super::super::format;
use super::super::table::{self, Table};

const HEADER: [&str; 6] = ["SEQ", "AT", "TYPE", "SUBJECT", "ACTOR", "DETAIL"];
/// Column widths of streamed events, whose later rows are unknown.
const WIDTHS: [usize; 5] = [6, 20, 25, 20, 25];

/// One row per event.
pub(super) fn table(events: &[Event]) -> String {
    events.iter().fold(Table::new(&HEADER), |table, event| table.row(row(event))).render()
}

/// Header of streamed events.
pub(super) fn header_line() -> String {
    table::line(&HEADER.map(Into::into), &WIDTHS)
}

/// A streamed event.
pub(super) fn line(event: &Event) -> String {
    table::line(&row(event).map(|cell| table::cell_text(&cell)), &WIDTHS)
}

fn row(event: &Event) -> [String; 6] {
    [
        event.seq.to_string(),
        format::timestamp(event.at),
        event.change.clone(),
        event.subject.clone(),
        event.actor.clone(),
        detail(&event.data),
    ]
}

/// Name and reason of the subject.
fn detail(data: &Value) -> String {
    let text = |name| data.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let name = text("name").or_else(|| text("username"));
    let parts = [name, text("status_reason").or_else(|| text("reason"))];
    parts.into_iter().flatten().collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(data: &str) -> Event {
        let text = format!(
            r#"{{"seq":7,"at":"2026-01-02T03:04:05.6Z","actor":"ann","kind":"deployment",
                "subject":"9m4e2mr0ui3e8a215n4g","type":"deployment.queued","data":{data}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn streamed_lines_align_with_the_header() {
        let line = line(&event(r#"{"name":"web","status_reason":"2 cpu short"}"#));
        let header = header_line();
        assert_eq!(
            line,
            "7       2026-01-02T03:04:05Z  deployment.queued          9m4e2mr0ui3e8a215n4g  \
             ann                        web: 2 cpu short\n"
        );
        assert_eq!(header.find("DETAIL"), line.find("web"));
    }

    #[test]
    fn detail_contains_name_and_reason() {
        for (data, want) in [
            (r#"{"name":"web"}"#, "web"),
            (r#"{"username":"bob"}"#, "bob"),
            (r#"{"status_reason":"why"}"#, "why"),
            (r#"{"name":"east","reason":"why"}"#, "east: why"),
            (r#"{"name":""}"#, ""),
            ("{}", ""),
            ("null", ""),
        ] {
            assert_eq!(detail(&event(data).data), want);
        }
    }
}
