//! Separate debug files: where distributions put the names and lines that they strip from
//! programs (GDB manual, "Debugging Information in Separate Files").

use crate::bytes::Bytes;
use crate::image::Image;
use crate::process::Process;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const ROOT: &str = "/usr/lib/debug";
/// A checksum is computed over a whole file; larger ones need a build id.
const MAX_CHECKED: u64 = 256 << 20;

/// The image with its debug file, if it needs one and there is one that certainly belongs to it.
pub(crate) fn add(image: Image, process: &Process, path: Option<&Path>) -> Image {
    if image.is_self_contained() {
        return image;
    }
    let link = image.debug_link();
    for candidate in candidates(&image, link.as_ref().map(|(name, _)| name.as_str()), path) {
        let Ok(file) = process.open_path(&candidate) else { continue };
        let Ok(debug) = Image::open(file) else { continue };
        let belongs = match (image.build_id(), debug.build_id(), &link) {
            (Some(own), Some(other), _) => own == other,
            (None, _, Some((_, checksum))) => crc32(debug.bytes()) == Some(*checksum),
            _ => false,
        };
        if belongs {
            return image.with_debug(debug);
        }
    }
    image
}

fn candidates(image: &Image, link: Option<&str>, path: Option<&Path>) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    if let Some((first, rest)) = image.build_id().and_then(<[u8]>::split_first) {
        let mut name = format!("{ROOT}/.build-id/{first:02x}/");
        for byte in rest {
            // Writing to a string can't fail.
            let _ = write!(name, "{byte:02x}");
        }
        paths.push(PathBuf::from(name + ".debug"));
    }
    // A name with directories in it could lead anywhere.
    let link = link.filter(|name| !name.is_empty() && !name.contains('/'));
    if let (Some(link), Some(path)) = (link, path)
        && let Some(directory) = path.parent()
    {
        let below = directory.strip_prefix("/").unwrap_or(directory);
        paths.push(directory.join(link));
        paths.push(directory.join(".debug").join(link));
        paths.push(Path::new(ROOT).join(below).join(link));
    }
    paths.retain(|candidate| Some(candidate.as_path()) != path);
    paths
}

/// The CRC-32 of ISO 3309 (as in gzip), which `.gnu_debuglink` uses.
fn crc32(bytes: &Bytes) -> Option<u32> {
    const CHUNK: u64 = 1 << 20;
    let len = bytes.len();
    if len > MAX_CHECKED {
        return None;
    }
    let mut crc = u32::MAX;
    let mut at = 0;
    while at < len {
        let chunk = bytes.read(at, CHUNK.min(len - at)).ok()?;
        at += chunk.len() as u64;
        for byte in chunk {
            crc = TABLE[usize::from(crc.to_le_bytes()[0] ^ byte)] ^ (crc >> 8);
        }
    }
    Some(!crc)
}

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    let mut number = 0_u32;
    while index < 256 {
        let mut value = number;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { 0xedb8_8320 ^ (value >> 1) } else { value >> 1 };
            bit += 1;
        }
        table[index] = value;
        index += 1;
        number += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_standard_one() {
        assert_eq!(crc32(&Bytes::Memory(b"123456789".to_vec())), Some(0xcbf4_3926));
        assert_eq!(crc32(&Bytes::Memory(Vec::new())), Some(0));
    }
}
