//! Messages about exits and restarts, shared by all runtimes.

use std::time::Duration;

/// Describes an exit: exit code, whether a process was OOM-killed, and the memory limit.
pub fn exited(code: i32, oom: bool, ram_bytes: Option<i64>) -> String {
    match (code, oom, ram_bytes.map(bytes)) {
        (137, true, Some(ram)) => {
            format!("OOM-killed: exceeded its memory limit of {ram}.")
        }
        (137, true, None) => "OOM-killed: the machine ran out of memory.".to_owned(),
        (0, ..) => "Exited with code 0.".to_owned(),
        (code, true, Some(ram)) => format!(
            "Exited with code {code}. One of its processes exceeded the memory limit of {ram}."
        ),
        (code @ 129..=159, ..) => {
            format!("Exited with code {code}: signal {}.", signal(code - 128))
        }
        (code, ..) => format!("Exited with code {code}."),
    }
}

/// Describes an exit, the restart backoff and the number of the restart.
pub fn restarting(exited: &str, wait: Duration, restart: u32) -> String {
    format!("{exited} Restarting in {} (restart {restart}).", duration(wait))
}

/// Number and name of a signal.
pub fn signal(number: i32) -> String {
    nix::sys::signal::Signal::try_from(number)
        .map_or_else(|_| number.to_string(), |signal| format!("{number} ({})", signal.as_str()))
}

/// A duration in its largest whole unit.
pub fn duration(duration: Duration) -> String {
    match duration.as_millis() {
        ms if ms >= 60_000 && ms % 60_000 == 0 => format!("{} min", ms / 60_000),
        ms if ms >= 1000 => format!("{} s", ms / 1000),
        ms => format!("{ms} ms"),
    }
}

/// An amount of bytes in its largest whole unit.
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
    fn exit_messages_name_code_signal_and_memory_limit() {
        for (code, oom, ram, expected) in [
            (0, false, None, "Exited with code 0."),
            (0, true, Some(1 << 30), "Exited with code 0."),
            (3, false, Some(1 << 30), "Exited with code 3."),
            (139, false, None, "Exited with code 139: signal 11 (SIGSEGV)."),
            (137, false, None, "Exited with code 137: signal 9 (SIGKILL)."),
            (137, true, None, "OOM-killed: the machine ran out of memory."),
        ] {
            assert_eq!(exited(code, oom, ram), expected);
        }
        let killed = exited(137, true, Some(32 << 20));
        assert_eq!(killed, "OOM-killed: exceeded its memory limit of 32 MiB.");
        let again = restarting("Exited with code 3.", Duration::from_secs(4), 3);
        assert_eq!(again, "Exited with code 3. Restarting in 4 s (restart 3).");
        assert_eq!(duration(Duration::from_mins(5)), "5 min");
    }
}
