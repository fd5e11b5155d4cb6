//! Looks up programs and users in an image.

use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, OFlags, fstat};

use crate::Error;
use crate::unpack::root::Root;

/// `PATH` of images that set none.
pub(super) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Finds the file of a program, as shells do.
pub(super) fn program(root: &Root, name: &str, path: &str, cwd: &Path) -> Result<PathBuf, Error> {
    let candidates: Vec<PathBuf> = if name.contains('/') {
        vec![cwd.join(name)]
    } else {
        path.split(':').filter(|dir| !dir.is_empty()).map(|dir| cwd.join(dir).join(name)).collect()
    };
    let mut unusable = None;
    for candidate in candidates {
        match inspect(root, &candidate) {
            Some(Found::Program) => return Ok(candidate),
            Some(other) => unusable = Some((candidate, other)),
            None => {}
        }
    }
    let command = name.to_owned();
    let Some((file, found)) = unusable else {
        let searched =
            if name.contains('/') { String::new() } else { format!(" (searched {path})") };
        let message = format!("Command {name} not found in the image{searched}.");
        return Err(Error::CommandNotFound { command, message });
    };
    let is = if let Found::Directory = found { "a directory" } else { "not executable" };
    let message = format!("Command {name} cannot run: {} is {is}.", file.display());
    Err(Error::CommandNotExecutable { command, message })
}

enum Found {
    Program,
    Directory,
    NotExecutable,
}

fn inspect(root: &Root, path: &Path) -> Option<Found> {
    let file = root.resolve(path, OFlags::PATH).ok()?;
    let metadata = fstat(file.as_fd()).ok()?;
    Some(match FileType::from_raw_mode(metadata.st_mode) {
        FileType::Directory => Found::Directory,
        FileType::RegularFile if metadata.st_mode & 0o111 != 0 => Found::Program,
        _ => Found::NotExecutable,
    })
}

/// A user of the image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct User {
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// Supplementary groups.
    pub(super) groups: Vec<u32>,
}

/// Resolves `uid`, `name`, `uid:gid` or `name:group`.
pub(super) fn user(root: &Root, text: &str) -> Result<User, Error> {
    let (user, group) = text.split_once(':').unwrap_or((text, ""));
    if user.is_empty() && group.is_empty() {
        return Ok(User::default());
    }
    let passwd = lines(root, "etc/passwd");
    let entry =
        passwd.iter().find(|fields| fields[0] == user || fields.get(2) == Some(&user.into()));
    let number = |fields: &Vec<String>, at: usize| fields.get(at).and_then(|id| id.parse().ok());
    let uid: u32 = match entry.and_then(|fields| number(fields, 2)).or(user.parse().ok()) {
        Some(uid) => uid,
        None if user.is_empty() => 0,
        None => return Err(not_found("User", user)),
    };
    let groups = lines(root, "etc/group");
    if !group.is_empty() {
        let entry = groups.iter().find(|fields| fields[0] == group);
        let gid = entry.and_then(|fields| number(fields, 2)).or(group.parse().ok());
        let gid = gid.ok_or_else(|| not_found("Group", group))?;
        return Ok(User { uid, gid, groups: Vec::new() });
    }
    let name = entry.map_or("", |fields| fields[0].as_str());
    let gid = entry.and_then(|fields| number(fields, 3)).unwrap_or(0);
    let groups = groups
        .iter()
        .filter(|fields| {
            fields.get(3).is_some_and(|members| members.split(',').any(|member| member == name))
        })
        .filter_map(|fields| number(fields, 2))
        .filter(|group| !name.is_empty() && *group != gid)
        .take(64)
        .collect();
    Ok(User { uid, gid, groups })
}

fn not_found(what: &str, name: &str) -> Error {
    Error::BadImageConfig(format!("{what} {name} not found in the image."))
}

/// The colon-separated fields of each line of a file; empty if the file is missing.
fn lines(root: &Root, path: &str) -> Vec<Vec<String>> {
    let Ok(file) = root.file(Path::new(path)) else { return Vec::new() };
    BufReader::new(std::io::Read::take(file, 1 << 20))
        .lines()
        .map_while(Result::ok)
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split(':').map(|field| field.trim().to_owned()).collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_resolved_by_name_and_number() {
        let dir = std::env::temp_dir().join(format!("paddock-users-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("etc")).unwrap();
        std::fs::write(dir.join("etc/passwd"), "root:x:0:0::/:\nweb:x:33:34::/:\n").unwrap();
        std::fs::write(dir.join("etc/group"), "web:x:34:\nlogs:x:50:root,web\n").unwrap();
        let root = Root::open(&dir).unwrap();
        let user_is = |uid, gid, groups: &[u32]| Ok(User { uid, gid, groups: groups.to_vec() });
        for (text, expected) in [
            ("", user_is(0, 0, &[])),
            ("web", user_is(33, 34, &[50])),
            ("33", user_is(33, 34, &[50])),
            ("1000", user_is(1000, 0, &[])),
            ("1000:7", user_is(1000, 7, &[])),
            ("web:logs", user_is(33, 50, &[])),
        ] {
            assert_eq!(user(&root, text), expected, "{text}");
        }
        assert!(user(&root, "nobody-knows").is_err());
        std::fs::remove_dir_all(dir).unwrap();
    }
}
