//! Rewrites an image archive for another container engine, in a helper process that is confined to
//! a directory.
//!
//! An engine would take over every name in an archive, including those of other owners. The new
//! archive contains only verified layers and the names that the caller has chosen.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use model::image::StoredImage;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tar::{Builder, Header};

use super::archive::Packed;
use super::describe::describe;
use super::fetch::limit_memory;
use super::load::{call, extract_stdin, names, respond};
use crate::Error;
use crate::child::{Task, close_inherited_fds};
use crate::confine::{self, Place, confine};
use crate::dirs::sha256;
use crate::unpack::stream::Contents;
use crate::unpack::{self, Budget, not_unpacked};

/// How to rewrite an archive.
#[derive(Debug, Clone)]
pub struct Repack {
    /// Program to run as helper process; it must call [`child_main`](crate::child_main) first.
    pub program: PathBuf,
    /// An empty directory for the files of the archive.
    pub dir: PathBuf,
    /// Maximum size of the archive, compressed or unpacked.
    pub max_bytes: u64,
    /// Time limit.
    pub timeout: Duration,
    /// Replaces `localhost` in the names of the new archive.
    pub prefix: String,
}

/// Request to the helper process.
#[derive(Serialize, Deserialize)]
struct Request {
    dir: PathBuf,
    max_bytes: u64,
    prefix: String,
    name: Option<String>,
}

/// An image of the new archive, under its local name.
#[derive(Serialize, Deserialize)]
struct Repacked {
    name: String,
    digest: String,
    size_bytes: u64,
}

/// Rewrites an archive. Returns its images under their local names, and the new archive in the
/// format of `docker save`, a file in the directory.
pub async fn repack(
    repack: &Repack,
    archive: File,
    name: Option<&str>,
) -> Result<(Vec<StoredImage>, PathBuf), Error> {
    let Repack { program, dir, max_bytes, timeout, prefix } = repack;
    let name = name.map(super::local_name).transpose()?;
    let (dir, prefix) = (dir.clone(), prefix.clone());
    let request = Request { dir, max_bytes: *max_bytes, prefix, name };
    let written: Vec<Repacked> =
        call(program, Task::Repack, &request, Some(archive), *timeout).await?;
    let output = output(&request.dir);
    // The helper process may have been taken over.
    if !fs::symlink_metadata(&output).is_ok_and(|found| found.is_file()) {
        return Err(Error::Helper("Loading the image failed: no archive was written.".to_owned()));
    }
    let stored = |Repacked { name, digest, size_bytes }| StoredImage {
        name,
        digest,
        size_bytes,
        is_builtin: false,
    };
    Ok((written.into_iter().map(stored).collect(), output))
}

fn output(dir: &Path) -> PathBuf {
    dir.join("repacked.tar")
}

/// Entry point of the helper process.
pub(crate) fn child(request: &OsStr) -> ExitCode {
    respond(request, run)
}

fn run(request: &Request) -> Result<Vec<Repacked>, Error> {
    close_inherited_fds();
    limit_memory()?;
    enter(&request.dir).map_err(|error| Error::io("Confining the helper process failed", error))?;
    let here = Path::new(".");
    let failed = |error| not_unpacked("from its archive", error);
    let files = extract_stdin(here, request.max_bytes).map_err(failed)?;
    let packed = files.images()?;
    let given: Vec<_> = packed.iter().map(|image| image.names.as_slice()).collect();
    let names = names(request.name.as_ref(), &given)?;
    let file = File::create_new(output(here)).map_err(failed)?;
    let budget = Budget::new(request.max_bytes, 0);
    let mut writer = Writer { tar: Builder::new(file), budget, written: HashSet::new() };
    let (mut manifest, mut repacked) = (Vec::new(), Vec::new());
    for (image, names) in packed.iter().zip(names) {
        let tags: Vec<String> = names.iter().map(|name| tag(&request.prefix, name)).collect();
        let (config, layers, size_bytes) = writer.image(image, &names[0])?;
        manifest.push(json!({"Config": config, "RepoTags": tags, "Layers": layers}));
        let digest = &image.digest;
        let repack = |name| Repacked { name, digest: digest.clone(), size_bytes };
        repacked.extend(names.into_iter().map(repack));
    }
    let manifest = serde_json::Value::from(manifest).to_string();
    let finished = writer.file("manifest.json", manifest.len() as u64, manifest.as_bytes());
    finished.and_then(|()| writer.tar.into_inner()?.sync_all()).map_err(failed)?;
    Ok(repacked)
}

/// Confines this process to the directory. Only root can; others have no privileges to drop.
fn enter(dir: &Path) -> std::io::Result<()> {
    confine::leave_network();
    let is_root = geteuid().is_root();
    let directory = if is_root { confine::directory(dir)? } else { confine::open(dir)? };
    confine(Place::Root(directory.as_fd()), confine::NOTHING)
}

/// A local name below the prefix.
fn tag(prefix: &str, name: &str) -> String {
    format!("{prefix}/{}", name.split_once('/').map_or(name, |(_, rest)| rest))
}

/// The new archive.
struct Writer {
    tar: Builder<File>,
    budget: Budget,
    /// Names of files in it.
    written: HashSet<String>,
}

impl Writer {
    /// Writes configuration and layers of an image. Returns their names and the size of the layers.
    fn image(&mut self, packed: &Packed, name: &str) -> Result<(String, Vec<String>, u64), Error> {
        let failed = |error| not_unpacked(name, error);
        let (_, diff_ids) =
            describe(name, packed.digest.clone(), &packed.config, packed.layers.len())?;
        let config = format!("{}.json", sha256(&packed.config));
        if self.written.insert(config.clone()) {
            self.file(&config, packed.config.len() as u64, &packed.config[..]).map_err(failed)?;
        }
        let (mut layers, mut total) = (Vec::new(), 0);
        for (blob, diff_id) in packed.layers.iter().zip(&diff_ids) {
            let before = self.budget.bytes;
            let file = unpack::open(blob).map_err(failed)?;
            unpack::verify(file, diff_id, &mut self.budget).map_err(failed)?;
            let size = before - self.budget.bytes;
            let layer = format!("{}.tar", super::hex_of(diff_id).unwrap_or_default());
            if self.written.insert(layer.clone()) {
                self.layer(&layer, blob, size).map_err(failed)?;
            }
            layers.push(layer);
            total += size;
        }
        Ok((config, layers, total))
    }

    /// Writes a verified layer, uncompressed: not every engine reads every compression.
    fn layer(&mut self, name: &str, blob: &Path, size: u64) -> std::io::Result<()> {
        let contents = Contents::new(fs::File::open(blob)?, size.saturating_add(1))?;
        self.file(name, size, contents)
    }

    fn file(&mut self, name: &str, size: u64, content: impl std::io::Read) -> std::io::Result<()> {
        let mut header = Header::new_gnu();
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_size(size);
        header.set_cksum();
        self.tar.append_data(&mut header, name, content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_moved_below_the_prefix() {
        let prefix = "localhost/paddock-0a/org";
        assert_eq!(tag(prefix, "localhost/web:1"), "localhost/paddock-0a/org/web:1");
        assert_eq!(tag(prefix, "localhost/team/web:1"), "localhost/paddock-0a/org/team/web:1");
    }
}
