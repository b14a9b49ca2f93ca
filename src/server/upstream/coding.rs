//! An answer as it was before it was encoded for its way: decoded beside the traffic, which has it as it came.

use std::fmt;
use std::io::{Error, Result, Write};
use std::sync::Arc;

use brotli_decompressor::DecompressorWriter;
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use zstd::stream::write::Decoder as ZstdDecoder;

use crate::server::ledger::Room;

/// The most bytes that one piece, and a whole answer, may become: some bytes stand for a million others.
const OF_PIECE: usize = 32 * 1024 * 1024;
/// The most bytes to which an answer of zstd may refer back, as a power of two: what HTTP permits.
const ZSTD_WINDOW: u32 = 23;
/// What more a piece may become before that is counted.
const STEP: usize = 1024 * 1024;
const OF_ANSWER: usize = 256 * 1024 * 1024;
/// The method in the first byte of the head of zlib: RFC 1950, 2.2.
const ZLIB: u8 = 8;
/// Bytes that are decoded at a time.
const BUFFER: usize = 16 * 1024;

/// How an answer is encoded.
pub(crate) enum Coding {
    Plain,
    Gzip(Box<MultiGzDecoder<Sink>>),
    /// With a head, as HTTP has it, or without, as some servers send it. The first byte says which.
    Deflate,
    Zlib(Box<ZlibDecoder<Sink>>),
    Raw(Box<DeflateDecoder<Sink>>),
    Brotli(Box<DecompressorWriter<Sink>>),
    Zstd(Box<ZstdDecoder<'static, Sink>>),
}

impl fmt::Debug for Coding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "Plain",
            Self::Gzip(_) => "Gzip",
            Self::Deflate => "Deflate",
            Self::Zlib(_) => "Zlib",
            Self::Raw(_) => "Raw",
            Self::Brotli(_) => "Brotli",
            Self::Zstd(_) => "Zstd",
        })
    }
}

/// A byte of it: it is there as it grows, and as JSON, and as what that says.
const HELD: usize = 4;

/// What was decoded and not taken yet.
#[derive(Debug)]
pub(crate) struct Sink {
    bytes: Vec<u8>,
    /// What the answer may still become.
    left: usize,
    /// What the piece may become until more room is taken for it.
    counted: usize,
    /// Where that is taken, while a piece is decoded.
    room: Option<Arc<Room>>,
}

impl Sink {
    fn new() -> Self {
        Self { bytes: Vec::new(), left: OF_ANSWER, counted: 0, room: None }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let left = self.left.checked_sub(bytes.len());
        let left = left.filter(|_| self.bytes.len() + bytes.len() <= OF_PIECE);
        self.left = left.ok_or_else(|| Error::other("it becomes too large when it is decoded"))?;
        let length = self.bytes.len() + bytes.len();
        if length > self.counted {
            self.counted = length + STEP;
            if let Some(room) = &self.room {
                room.reach(self.counted.saturating_mul(HELD)).map_err(Error::other)?;
            }
        }
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
        let sink = Sink::new;
        Some(match name.map(str::trim).unwrap_or_default().to_ascii_lowercase().as_str() {
            "" | "identity" => Self::Plain,
            "gzip" | "x-gzip" => Self::Gzip(Box::new(MultiGzDecoder::new(sink()))),
            "deflate" => Self::Deflate,
            "br" => Self::Brotli(Box::new(DecompressorWriter::new(sink(), BUFFER))),
            "zstd" => {
                let mut decoder = ZstdDecoder::new(sink()).ok()?;
                decoder.window_log_max(ZSTD_WINDOW).ok()?;
                Self::Zstd(Box::new(decoder))
            }
            _ => return None,
        })
    }

    /// What a piece says. What it becomes counts in a room as it comes.
    pub(crate) fn decode(&mut self, piece: &[u8], room: &Arc<Room>) -> Result<Vec<u8>> {
        fn through<W: Write>(
            to: &mut W,
            piece: &[u8],
            room: &Arc<Room>,
            sink: impl Fn(&mut W) -> &mut Sink,
        ) -> Result<Vec<u8>> {
            sink(to).room = Some(Arc::clone(room));
            to.write_all(piece)?;
            to.flush()?;
            let sink = sink(to);
            sink.counted = 0;
            Ok(std::mem::take(&mut sink.bytes))
        }
        if let (Self::Deflate, Some(first)) = (&*self, piece.first()) {
            *self = match first & 0x0f {
                ZLIB => Self::Zlib(Box::new(ZlibDecoder::new(Sink::new()))),
                _ => Self::Raw(Box::new(DeflateDecoder::new(Sink::new()))),
            };
        }
        match self {
            Self::Plain | Self::Deflate => Ok(piece.to_vec()),
            Self::Gzip(to) => through(&mut **to, piece, room, MultiGzDecoder::get_mut),
            Self::Zlib(to) => through(&mut **to, piece, room, ZlibDecoder::get_mut),
            Self::Raw(to) => through(&mut **to, piece, room, DeflateDecoder::get_mut),
            Self::Brotli(to) => through(&mut **to, piece, room, DecompressorWriter::get_mut),
            Self::Zstd(to) => through(&mut **to, piece, room, ZstdDecoder::get_mut),
        }
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use prometheus_client::metrics::gauge::Gauge;

    use super::*;
    use crate::server::ledger::Ledger;

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
            "raw" => {
                let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(text).unwrap();
                encoder.finish().unwrap()
            }
            "zstd" => zstd::encode_all(text, 3).unwrap(),
            // "hello\n" as `brotli` writes it.
            "br" => vec![0x8f, 0x02, 0x80, 0x68, 0x65, 0x6c, 0x6c, 0x6f, 0x0a, 0x03],
            _ => text.to_vec(),
        }
    }

    fn room(most: usize) -> Arc<Room> {
        Arc::new(Arc::new(Ledger::new(most, most, Gauge::default())).room("ada"))
    }

    #[test]
    fn every_coding_is_decoded_however_its_bytes_come() {
        let room = room(usize::MAX / 4);
        for name in ["gzip", "deflate", "raw", "br", "zstd", "identity", ""] {
            let bytes = encoded(name, b"hello\n");
            let name = if name == "raw" { "deflate" } else { name };
            for size in 1..=bytes.len() {
                let mut coding = Coding::of(Some(name)).unwrap();
                let pieces = bytes.chunks(size).map(|piece| coding.decode(piece, &room).unwrap());
                assert_eq!(pieces.collect::<Vec<_>>().concat(), b"hello\n", "{name} {size}");
            }
        }
        assert!(Coding::of(Some("compress")).is_none() && Coding::of(Some("gzip, br")).is_none());
    }

    #[test]
    fn what_would_become_too_large_is_refused() {
        let (large, small) = (room(usize::MAX / 4), room(8 * STEP * HELD));
        for name in ["gzip", "deflate", "zstd"] {
            let of = |length: usize| encoded(name, &vec![0; length]);
            let decode = |bytes: &[u8], room| Coding::of(Some(name)).unwrap().decode(bytes, room);
            assert!(of(OF_PIECE).len() < 100_000, "{name}");
            assert!(decode(&of(OF_PIECE + 1), &large).is_err(), "{name}");
            // What it becomes has to have room.
            assert_eq!(decode(&of(6 * STEP), &small).unwrap().len(), 6 * STEP, "{name}");
            assert!(decode(&of(9 * STEP), &small).is_err(), "{name}");
        }
        assert!(Coding::of(Some("gzip")).unwrap().decode(b"no gzip at all", &large).is_err());
    }

    #[test]
    fn an_answer_of_zstd_refers_back_no_further_than_http_permits() {
        let with_window = |log: u32| {
            let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
            encoder.window_log(log).unwrap();
            encoder.include_contentsize(false).unwrap();
            encoder.write_all(b"hello").unwrap();
            encoder.finish().unwrap()
        };
        let room = room(usize::MAX / 4);
        let decode = |bytes: &[u8]| Coding::of(Some("zstd")).unwrap().decode(bytes, &room);
        assert_eq!(decode(&with_window(ZSTD_WINDOW)).unwrap(), b"hello");
        assert!(decode(&with_window(ZSTD_WINDOW + 1)).is_err());
    }
}
