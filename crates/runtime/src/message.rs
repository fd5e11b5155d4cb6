//! Messages about the end of a program, the same for every runtime.

use std::time::Duration;

/// How a program ended: by its code, and by whether something of it was killed for lack of memory,
/// with how much it had.
pub fn ended(code: i32, oom: bool, ram_bytes: Option<i64>) -> String {
    match (code, oom, ram_bytes.map(bytes)) {
        (137, true, Some(ram)) => {
            format!("It was killed: it used more than its {ram} of ram. Ask for more ram.")
        }
        (137, true, None) => "It was killed: the machine ran out of memory.".to_owned(),
        (0, ..) => "It ended with code 0.".to_owned(),
        (code, true, Some(ram)) => format!(
            "It ended with code {code}, after a process of it was killed because it used more \
             than its {ram} of ram."
        ),
        (code @ 129..=159, ..) => {
            format!("It ended with code {code}: signal {}.", signal(code - 128))
        }
        (code, ..) => format!("It ended with code {code}."),
    }
}

/// How it ended and when it is tried again, for the how manieth time.
pub fn restarting(ended: &str, wait: Duration, restart: u32) -> String {
    format!("{ended} It is started again after {} (restart {restart}).", time(wait))
}

/// A signal, by number and name.
pub fn signal(number: i32) -> String {
    nix::sys::signal::Signal::try_from(number)
        .map_or_else(|_| number.to_string(), |signal| format!("{number} ({})", signal.as_str()))
}

/// A time as people say it.
pub fn time(time: Duration) -> String {
    match time.as_millis() {
        ms if ms >= 60_000 && ms % 60_000 == 0 => format!("{} min", ms / 60_000),
        ms if ms >= 1000 => format!("{} s", ms / 1000),
        ms => format!("{ms} ms"),
    }
}

/// An amount of bytes as people say it.
pub fn bytes(bytes: i64) -> String {
    for (unit, shift) in [("GiB", 30), ("MiB", 20), ("KiB", 10)] {
        if bytes >= 1 << shift && bytes % (1 << shift) == 0 {
            return format!("{} {unit}", bytes >> shift);
        }
    }
    match bytes {
        1 => "1 byte".to_owned(),
        bytes if bytes >= 10 << 20 => format!("{} MiB", bytes >> 20),
        bytes => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings() {
        for (code, oom, ram, expected) in [
            (0, false, None, "It ended with code 0."),
            (0, true, Some(1 << 30), "It ended with code 0."),
            (3, false, Some(1 << 30), "It ended with code 3."),
            (139, false, None, "It ended with code 139: signal 11 (SIGSEGV)."),
            (137, false, None, "It ended with code 137: signal 9 (SIGKILL)."),
            (137, true, None, "It was killed: the machine ran out of memory."),
        ] {
            assert_eq!(ended(code, oom, ram), expected);
        }
        let killed = ended(137, true, Some(32 << 20));
        assert_eq!(killed, "It was killed: it used more than its 32 MiB of ram. Ask for more ram.");
        let again = restarting("It ended with code 3.", Duration::from_secs(4), 3);
        assert_eq!(again, "It ended with code 3. It is started again after 4 s (restart 3).");
        assert_eq!(time(Duration::from_mins(5)), "5 min");
    }
}
