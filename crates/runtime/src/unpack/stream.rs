//! Content of a layer: decompressed, counted and hashed while it is read.

use std::io::{self, BufReader, Read, Seek};

use flate2::read::MultiGzDecoder;
use sha2::{Digest, Sha256};

use super::with_context;

/// Content of a layer as a stream that fails beyond a size limit.
pub(crate) struct Contents {
    inner: Box<dyn Read>,
    left: u64,
    hash: Sha256,
}

impl Contents {
    /// Opens a compressed layer or archive. Its magic bytes, not its media type, decide how.
    pub(crate) fn new(mut blob: impl Read + Seek + 'static, limit: u64) -> io::Result<Self> {
        let unreadable = |error: io::Error| with_context("reading a layer failed", &error);
        let mut magic = [0; 4];
        let n = read_up_to(&mut blob, &mut magic).map_err(unreadable)?;
        blob.rewind().map_err(unreadable)?;
        let blob = BufReader::with_capacity(128 << 10, blob);
        let inner: Box<dyn Read> = match &magic[..n] {
            [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(blob)),
            [0x28, 0xb5, 0x2f, 0xfd] => {
                Box::new(zstd::Decoder::with_buffer(blob).map_err(unreadable)?)
            }
            _ => Box::new(blob),
        };
        Ok(Self { inner, left: limit, hash: Sha256::new() })
    }

    /// Bytes left of the limit.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Reads to the end.
    pub(crate) fn drain(&mut self) -> io::Result<()> {
        io::copy(self, &mut io::sink())
            .map(drop)
            .map_err(|error| with_context("unpacking a layer failed", &error))
    }

    /// Digest of everything read.
    pub(super) fn digest(self) -> String {
        format!("sha256:{}", data_encoding::HEXLOWER.encode(&self.hash.finalize()))
    }
}

impl Read for Contents {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::Error::other("size limit exceeded"));
        }
        let n = self.inner.read(buffer)?;
        self.hash.update(&buffer[..n]);
        self.left = self.left.saturating_sub(n as u64);
        Ok(n)
    }
}

fn read_up_to(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut have = 0;
    while have < buffer.len() {
        match from.read(&mut buffer[have..])? {
            0 => break,
            n => have += n,
        }
    }
    Ok(have)
}
