//! Finds in an image what its names mean: programs and users.

use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, OFlags, fstat};

use crate::Error;
use crate::unpack::root::Root;

/// Where programs are when an image does not say.
pub(super) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The file of a program, as shells find it. The error says why there is none.
pub(super) fn find(root: &Root, name: &str, path: &str, cwd: &Path) -> Result<PathBuf, Error> {
    let candidates: Vec<PathBuf> = if name.contains('/') {
        vec![cwd.join(name)]
    } else {
        path.split(':').filter(|dir| !dir.is_empty()).map(|dir| cwd.join(dir).join(name)).collect()
    };
    let mut seen = None;
    for candidate in candidates {
        match look(root, &candidate) {
            Some(Found::Program) => return Ok(candidate),
            Some(other) => seen = Some((candidate, other)),
            None => {}
        }
    }
    let command = name.to_owned();
    let Some((file, found)) = seen else {
        let looked =
            if name.contains('/') { String::new() } else { format!(" (looked in {path})") };
        let message = format!("The command {name} does not exist in the image{looked}.");
        return Err(Error::CommandNotFound { command, message });
    };
    let is = if let Found::Directory = found { "a directory" } else { "not executable" };
    let message =
        format!("The command {name} can't be run: {} is {is} in the image.", file.display());
    Err(Error::CommandNotExecutable { command, message })
}

enum Found {
    Program,
    Directory,
    NotExecutable,
}

fn look(root: &Root, path: &Path) -> Option<Found> {
    let file = root.resolve(path, OFlags::PATH).ok()?;
    let there = fstat(file.as_fd()).ok()?;
    Some(match FileType::from_raw_mode(there.st_mode) {
        FileType::Directory => Found::Directory,
        FileType::RegularFile if there.st_mode & 0o111 != 0 => Found::Program,
        _ => Found::NotExecutable,
    })
}

/// A user of the image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct User {
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// Other groups it belongs to.
    pub(super) groups: Vec<u32>,
}

/// The user that `uid`, `name`, `uid:gid`, `name:group` mean.
pub(super) fn user(root: &Root, text: &str) -> Result<User, Error> {
    let (who, group) = text.split_once(':').map_or((text, ""), |(who, group)| (who, group));
    if who.is_empty() && group.is_empty() {
        return Ok(User::default());
    }
    let passwd = lines(root, "etc/passwd");
    let entry = passwd.iter().find(|fields| fields[0] == who || fields.get(2) == Some(&who.into()));
    let number = |fields: &Vec<String>, at: usize| fields.get(at).and_then(|id| id.parse().ok());
    let uid: u32 = match entry.and_then(|fields| number(fields, 2)).or(who.parse().ok()) {
        Some(uid) => uid,
        None if who.is_empty() => 0,
        None => return Err(unknown("user", who)),
    };
    let known = lines(root, "etc/group");
    if !group.is_empty() {
        let entry = known.iter().find(|fields| fields[0] == group);
        let gid = entry.and_then(|fields| number(fields, 2)).or(group.parse().ok());
        let gid = gid.ok_or_else(|| unknown("group", group))?;
        return Ok(User { uid, gid, groups: Vec::new() });
    }
    let name = entry.map_or("", |fields| fields[0].as_str());
    let gid = entry.and_then(|fields| number(fields, 3)).unwrap_or(0);
    let groups = known
        .iter()
        .filter(|fields| fields.get(3).is_some_and(|all| all.split(',').any(|one| one == name)))
        .filter_map(|fields| number(fields, 2))
        .filter(|group| !name.is_empty() && *group != gid)
        .take(64)
        .collect();
    Ok(User { uid, gid, groups })
}

fn unknown(what: &str, name: &str) -> Error {
    Error::BadImageConfig(format!("The image's {what} {name} does not exist in the image."))
}

/// The fields of each line of a file of the image; nothing when there is no such file.
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
    fn users_by_name_and_number() {
        let dir = std::env::temp_dir().join(format!("paddock-users-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("etc")).unwrap();
        std::fs::write(dir.join("etc/passwd"), "root:x:0:0::/:\nweb:x:33:34::/:\n").unwrap();
        std::fs::write(dir.join("etc/group"), "web:x:34:\nlogs:x:50:root,web\n").unwrap();
        let root = Root::open(&dir).unwrap();
        let is = |uid, gid, groups: &[u32]| Ok(User { uid, gid, groups: groups.to_vec() });
        for (text, expected) in [
            ("", is(0, 0, &[])),
            ("web", is(33, 34, &[50])),
            ("33", is(33, 34, &[50])),
            ("1000", is(1000, 0, &[])),
            ("1000:7", is(1000, 7, &[])),
            ("web:logs", is(33, 50, &[])),
        ] {
            assert_eq!(user(&root, text), expected, "{text}");
        }
        assert!(user(&root, "nobody-knows").is_err());
        std::fs::remove_dir_all(dir).unwrap();
    }
}
