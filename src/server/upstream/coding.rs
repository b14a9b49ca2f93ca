//! An answer as it was before it was encoded for its way: decoded beside the traffic, which has it as it came.

use std::fmt;
use std::io::{Error, Result, Write};

use brotli_decompressor::DecompressorWriter;
use flate2::write::{MultiGzDecoder, ZlibDecoder};
use zstd::stream::write::Decoder as ZstdDecoder;

/// The most bytes that one piece, and a whole answer, may become: some bytes stand for a million others.
const OF_PIECE: usize = 32 * 1024 * 1024;
const OF_ANSWER: usize = 256 * 1024 * 1024;
/// Bytes that are decoded at a time.
const BUFFER: usize = 16 * 1024;

/// How an answer is encoded.
pub(crate) enum Coding {
    Plain,
    Gzip(Box<MultiGzDecoder<Sink>>),
    Deflate(Box<ZlibDecoder<Sink>>),
    Brotli(Box<DecompressorWriter<Sink>>),
    Zstd(Box<ZstdDecoder<'static, Sink>>),
}

impl fmt::Debug for Coding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "Plain",
            Self::Gzip(_) => "Gzip",
            Self::Deflate(_) => "Deflate",
            Self::Brotli(_) => "Brotli",
            Self::Zstd(_) => "Zstd",
        })
    }
}

/// What was decoded and not taken yet.
#[derive(Debug)]
pub(crate) struct Sink {
    bytes: Vec<u8>,
    /// What the answer may still become.
    left: usize,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let left = self.left.checked_sub(bytes.len());
        let left = left.filter(|_| self.bytes.len() + bytes.len() <= OF_PIECE);
        self.left = left.ok_or_else(|| Error::other("it becomes too large when it is decoded"))?;
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Coding {
    /// By the header that names it; `None` for one that is not known.
    pub(crate) fn of(name: Option<&str>) -> Option<Self> {
        let sink = || Sink { bytes: Vec::new(), left: OF_ANSWER };
        Some(match name.map(str::trim).unwrap_or_default().to_ascii_lowercase().as_str() {
            "" | "identity" => Self::Plain,
            "gzip" | "x-gzip" => Self::Gzip(Box::new(MultiGzDecoder::new(sink()))),
            "deflate" => Self::Deflate(Box::new(ZlibDecoder::new(sink()))),
            "br" => Self::Brotli(Box::new(DecompressorWriter::new(sink(), BUFFER))),
            "zstd" => Self::Zstd(Box::new(ZstdDecoder::new(sink()).ok()?)),
            _ => return None,
        })
    }

    /// What a piece says.
    pub(crate) fn decode(&mut self, piece: &[u8]) -> Result<Vec<u8>> {
        fn through<W: Write>(to: &mut W, piece: &[u8], sink: impl FnOnce(&mut W) -> &mut Sink) -> Result<Vec<u8>> {
            to.write_all(piece)?;
            to.flush()?;
            Ok(std::mem::take(&mut sink(to).bytes))
        }
        match self {
            Self::Plain => Ok(piece.to_vec()),
            Self::Gzip(to) => through(&mut **to, piece, MultiGzDecoder::get_mut),
            Self::Deflate(to) => through(&mut **to, piece, ZlibDecoder::get_mut),
            Self::Brotli(to) => through(&mut **to, piece, DecompressorWriter::get_mut),
            Self::Zstd(to) => through(&mut **to, piece, ZstdDecoder::get_mut),
        }
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};

    use super::*;

    fn encoded(name: &str, text: &[u8]) -> Vec<u8> {
        match name {
            "gzip" => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(text).unwrap();
                encoder.finish().unwrap()
            }
            "deflate" => {
                let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(text).unwrap();
                encoder.finish().unwrap()
            }
            "zstd" => zstd::encode_all(text, 3).unwrap(),
            // "hello\n" as `brotli` writes it.
            "br" => vec![0x8f, 0x02, 0x80, 0x68, 0x65, 0x6c, 0x6c, 0x6f, 0x0a, 0x03],
            _ => text.to_vec(),
        }
    }

    #[test]
    fn every_coding_is_decoded_however_its_bytes_come() {
        for name in ["gzip", "deflate", "br", "zstd", "identity", ""] {
            let bytes = encoded(name, b"hello\n");
            for size in 1..=bytes.len() {
                let mut coding = Coding::of(Some(name)).unwrap();
                let pieces = bytes.chunks(size).map(|piece| coding.decode(piece).unwrap());
                assert_eq!(pieces.collect::<Vec<_>>().concat(), b"hello\n", "{name} {size}");
            }
        }
        assert!(Coding::of(Some("compress")).is_none() && Coding::of(Some("gzip, br")).is_none());
    }

    #[test]
    fn what_would_become_too_large_is_refused() {
        let zeros = vec![0; OF_PIECE + 1];
        for name in ["gzip", "deflate", "zstd"] {
            let bytes = encoded(name, &zeros);
            assert!(bytes.len() < 100_000, "{name}");
            assert!(Coding::of(Some(name)).unwrap().decode(&bytes).is_err(), "{name}");
        }
        assert!(Coding::of(Some("gzip")).unwrap().decode(b"no gzip at all").is_err());
    }
}
