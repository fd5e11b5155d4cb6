//! Image archives: `docker save` and OCI layout, as tar, compressed or not. Read only in a helper
//! process: archives are hostile input.
//!
//! Files are copied to a directory under numbers. No path of an archive becomes a path on the host.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::{Component, Path, PathBuf};

use oci_client::manifest::{OciImageIndex, OciImageManifest};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use tar::EntryType;

use super::describe::MAX_LAYERS;
use super::registry::{MAX_DOCUMENT, wrong_digest};
use super::{hex_of, platform};
use crate::Error;
use crate::dirs::sha256;
use crate::unpack::stream::Contents;
use crate::unpack::{root, too_large, with_context};

/// Maximum number of entries of an archive.
const MAX_ENTRIES: usize = 10_000;
/// Maximum number of links from a path to its file.
const MAX_LINKS: usize = 8;
/// Maximum number of images and of names of an archive.
pub(super) const MAX_IMAGES: usize = 64;
/// Annotations with the name of an image; the second may be only a tag.
const FULL_NAME: &str = "io.containerd.image.name";
const NAME_OR_TAG: &str = "org.opencontainers.image.ref.name";

/// An image of an archive, not unpacked.
pub(crate) struct Packed {
    /// Names, as the archive has them.
    pub(crate) names: Vec<String>,
    pub(crate) digest: String,
    pub(crate) config: Vec<u8>,
    /// Files of its layers, lowest first.
    pub(crate) layers: Vec<PathBuf>,
}

/// The files of an archive.
pub(crate) struct Files {
    entries: HashMap<PathBuf, Entry>,
}

enum Entry {
    File(PathBuf),
    Link(PathBuf),
}

/// An entry of `manifest.json` in a `docker save` archive.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SavedImage {
    config: String,
    repo_tags: Option<Vec<String>>,
    layers: Vec<String>,
}

impl Files {
    /// Copies the files of an archive to a directory.
    pub(crate) fn extract(
        archive: impl Read + Seek + 'static,
        dir: &Path,
        max_bytes: u64,
    ) -> io::Result<Self> {
        let mut contents = Contents::new(archive, max_bytes.saturating_add(1))?;
        let extracted = Self::extract_all(&mut contents, dir);
        if contents.left() == 0 { Err(too_large()) } else { extracted }
    }

    fn extract_all(contents: &mut impl Read, dir: &Path) -> io::Result<Self> {
        let broken = |error: io::Error| with_context("archive is not a valid tar", &error);
        let mut entries = HashMap::new();
        for (number, entry) in tar::Archive::new(contents).entries().map_err(broken)?.enumerate() {
            let mut entry = entry.map_err(broken)?;
            if number >= MAX_ENTRIES {
                let why = format!("archive has more than {MAX_ENTRIES} entries");
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
            }
            let path = root::clean(&entry.path().map_err(broken)?)?;
            let link = entry.link_name().map_err(broken)?.map(std::borrow::Cow::into_owned);
            let parent = path.parent().unwrap_or(Path::new("")).to_owned();
            let entry = match (entry.header().entry_type(), link) {
                (EntryType::Regular | EntryType::Continuous, _) => {
                    let file = dir.join(number.to_string());
                    let mut copy = File::create_new(&file)?;
                    io::copy(&mut entry, &mut copy)?;
                    Entry::File(file)
                }
                (EntryType::Symlink, Some(target)) => Entry::Link(lexical(&parent, &target)?),
                (EntryType::Link, Some(target)) => Entry::Link(root::clean(&target)?),
                _ => continue,
            };
            entries.insert(path, entry);
        }
        Ok(Self { entries })
    }

    /// The copy of a file. Follows links inside the archive.
    fn get(&self, path: &str) -> Option<&Path> {
        let mut path = root::clean(Path::new(path)).ok()?;
        for _ in 0..MAX_LINKS {
            match self.entries.get(&path)? {
                Entry::File(file) => return Some(file),
                Entry::Link(target) => path.clone_from(target),
            }
        }
        None
    }

    fn find(&self, path: &str) -> Result<&Path, Error> {
        self.get(path).ok_or_else(|| invalid(&format!("{} is missing", brief(path))))
    }

    /// Reads a document, such as a manifest.
    fn document(&self, path: &str) -> Result<Vec<u8>, Error> {
        let file = self.find(path)?;
        let failed = |error| Error::io("Reading the archive failed", error);
        let size = fs::metadata(file).map_err(failed)?.len();
        if i64::try_from(size).is_ok_and(|size| size <= MAX_DOCUMENT) {
            return fs::read(file).map_err(failed);
        }
        Err(invalid(&format!("{} is larger than {MAX_DOCUMENT} bytes", brief(path))))
    }

    /// All images of the archive, for this host's platform.
    pub(crate) fn images(&self) -> Result<Vec<Packed>, Error> {
        let images = if self.get("manifest.json").is_some() {
            self.saved_images()?
        } else if self.get("index.json").is_some() {
            self.layout_images()?
        } else {
            let why = "it has neither manifest.json (docker save) nor index.json (OCI layout)";
            return Err(invalid(why));
        };
        match images.iter().map(|image| image.names.len().max(1)).sum::<usize>() {
            0 => Err(invalid("it contains no image")),
            1..=MAX_IMAGES => Ok(images),
            _ => Err(Error::ImageTooLarge(format!("archive has more than {MAX_IMAGES} images"))),
        }
    }

    fn saved_images(&self) -> Result<Vec<Packed>, Error> {
        let path = "manifest.json";
        let images: Vec<SavedImage> = parse(path, &self.document(path)?)?;
        images.iter().take(MAX_IMAGES + 1).map(|image| self.saved_image(image)).collect()
    }

    fn saved_image(&self, image: &SavedImage) -> Result<Packed, Error> {
        let config = self.document(&image.config)?;
        let found = sha256(&config);
        // Its file is named after its digest; that of other tools may not be.
        let named = Path::new(&image.config).file_stem().and_then(|stem| stem.to_str());
        let named = named.map(|hex| format!("sha256:{hex}"));
        if let Some(named) = named.filter(|digest| hex_of(digest).is_some_and(|hex| hex != found)) {
            return Err(wrong_digest(&named, &found));
        }
        check_layers(image.layers.len())?;
        let layers = image.layers.iter().map(|path| self.find(path).map(Path::to_owned));
        Ok(Packed {
            names: image.repo_tags.clone().unwrap_or_default(),
            digest: format!("sha256:{found}"),
            layers: layers.collect::<Result<_, _>>()?,
            config,
        })
    }

    fn layout_images(&self) -> Result<Vec<Packed>, Error> {
        let path = "index.json";
        let index: OciImageIndex = parse(path, &self.document(path)?)?;
        let (os, architecture) = platform::host();
        let is_other = |entry: &&oci_client::manifest::ImageIndexEntry| {
            entry.platform.as_ref().is_some_and(|platform| {
                (platform.os.to_string().as_str(), platform.architecture.to_string().as_str())
                    != (os, architecture)
            })
        };
        if !index.manifests.is_empty() && index.manifests.iter().all(|entry| is_other(&entry)) {
            platform::choose(&index)?;
        }
        let ours = index.manifests.iter().filter(|entry| !is_other(entry));
        ours.take(MAX_IMAGES + 1)
            .map(|entry| {
                let annotations = entry.annotations.as_ref();
                let annotation = |key| annotations.and_then(|all| all.get(key)).cloned();
                let is_name = |text: &String| text.contains([':', '/']);
                let name = annotation(FULL_NAME);
                let name = name.or_else(|| annotation(NAME_OR_TAG).filter(is_name));
                self.layout_image(&entry.digest, name.into_iter().collect())
            })
            .collect()
    }

    fn layout_image(&self, digest: &str, names: Vec<String>) -> Result<Packed, Error> {
        let mut digest = digest.to_owned();
        let mut manifest = self.blob(&digest)?;
        if let Ok(index) = serde_json::from_slice::<OciImageIndex>(&manifest) {
            digest = platform::choose(&index)?;
            manifest = self.blob(&digest)?;
        }
        let manifest: OciImageManifest = parse(&digest, &manifest)?;
        check_layers(manifest.layers.len())?;
        let config = self.blob(&manifest.config.digest)?;
        let layers = manifest.layers.iter().map(|layer| self.layer(&layer.digest));
        Ok(Packed { names, config, layers: layers.collect::<Result<_, _>>()?, digest })
    }

    /// A document by its digest, verified.
    fn blob(&self, digest: &str) -> Result<Vec<u8>, Error> {
        let (hex, path) = blob_path(digest)?;
        let bytes = self.document(&path)?;
        let found = sha256(&bytes);
        if found == hex { Ok(bytes) } else { Err(wrong_digest(digest, &found)) }
    }

    /// The file of a layer by its digest, verified.
    fn layer(&self, digest: &str) -> Result<PathBuf, Error> {
        let (hex, path) = blob_path(digest)?;
        let file = self.find(&path)?;
        let failed = |error| Error::io("Reading the archive failed", error);
        let mut hash = Sha256::new();
        let mut from = File::open(file).map_err(failed)?;
        let mut buffer = vec![0; 128 << 10];
        loop {
            match from.read(&mut buffer).map_err(failed)? {
                0 => break,
                n => hash.update(&buffer[..n]),
            }
        }
        let found = data_encoding::HEXLOWER.encode(&hash.finalize());
        if found == hex { Ok(file.to_owned()) } else { Err(wrong_digest(digest, &found)) }
    }
}

fn invalid(why: &str) -> Error {
    Error::InvalidArchive(why.to_owned())
}

fn blob_path(digest: &str) -> Result<(&str, String), Error> {
    let hex = hex_of(digest).ok_or_else(|| invalid("a digest is malformed"))?;
    Ok((hex, format!("blobs/sha256/{hex}")))
}

fn check_layers(count: usize) -> Result<(), Error> {
    if count <= MAX_LAYERS {
        return Ok(());
    }
    let why = format!("image has {count} layers, maximum is {MAX_LAYERS}");
    Err(Error::ImageTooLarge(why))
}

fn parse<T: DeserializeOwned>(path: &str, bytes: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(bytes).map_err(|error| invalid(&format!("{error} in {}", brief(path))))
}

/// Resolves the target of a symlink by its text alone.
fn lexical(parent: &Path, target: &Path) -> io::Result<PathBuf> {
    let mut path = parent.to_owned();
    for component in target.components() {
        match component {
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::ParentDir if path.pop() => {}
            _ => {
                let why = format!("link to {} leads out of the archive", target.display());
                return Err(io::Error::other(why));
            }
        }
    }
    root::clean(&path)
}

/// A path from an archive, for a message.
fn brief(path: &str) -> String {
    path.chars().filter(|c| !c.is_control()).take(100).collect()
}
