//! HTTP as little as the tests need: requests on connections of their own, and streams that are read as they come.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// What takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Who asks.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) address: String,
    pub(crate) key: Option<String>,
}

/// What was answered.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The JSON of an answer that has to have this status.
    #[track_caller]
    pub(crate) fn of(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        self.json()
    }

    /// The JSON of an answer that has to be 200.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        self.of(200)
    }

    /// The code of an error that has to have this status.
    #[track_caller]
    pub(crate) fn code(&self, status: u16) -> String {
        let json = self.of(status);
        let error = &json["error"];
        for key in ["message", "type", "param", "code"] {
            assert!(error.get(key).is_some(), "{key} is missing: {json}");
        }
        error["code"].as_str().unwrap_or_default().to_owned()
    }
}

impl Client {
    pub(crate) fn with_key(&self, key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..self.clone() }
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], b"")
    }

    pub(crate) fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, &[], b"")
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, &[], body.to_string().as_bytes())
    }

    pub(crate) fn put(&self, path: &str, body: &Value) -> Answer {
        self.send("PUT", path, &[], body.to_string().as_bytes())
    }

    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.try_send(method, path, headers, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// As [`Client::send`], where the server may be gone.
    pub(crate) fn try_send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> std::io::Result<Answer> {
        let mut stream = self.connect()?;
        let length = body.len().to_string();
        let mut all = vec![("content-length", &*length), ("connection", "close")];
        if !headers.iter().any(|(name, _)| *name == "content-type") {
            all.push(("content-type", "application/json"));
        }
        all.extend(headers);
        stream.write_all(self.head(method, path, &all).as_bytes())?;
        // A server that refuses a large body answers before it has read it.
        let _ = stream.write_all(body);
        read(&mut BufReader::new(stream))
    }

    pub(crate) fn connect(&self) -> std::io::Result<TcpStream> {
        let stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    /// The head of a request.
    pub(crate) fn head(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> String {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| *name == "host") {
            head.push_str(&format!("host: {}\r\n", self.address));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(key) = &self.key {
            head.push_str(&format!("authorization: Bearer {key}\r\n"));
        }
        head + "\r\n"
    }

    /// Sends a request: its answer, which is read as it comes.
    pub(crate) fn open(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Open {
        let mut stream = self.connect().unwrap();
        let length = body.len().to_string();
        let mut all = vec![("content-length", &*length), ("connection", "close")];
        all.extend(headers);
        stream.write_all(self.head(method, path, &all).as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        let mut reader = BufReader::new(stream);
        let (status, headers) = head(&mut reader).unwrap();
        Open { answer: Answer { status, headers, body: Vec::new() }, reader }
    }

    /// Follows a conversation.
    pub(crate) fn follow(&self, path: &str, headers: &[(&str, &str)]) -> Events {
        self.stream("GET", path, headers, b"")
    }

    /// Sends a request whose answer is a stream of events.
    pub(crate) fn stream(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Events {
        let mut open = self.open(method, path, headers, body);
        if open.answer.status != 200 {
            open.end();
        }
        let Open { answer, reader } = open;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        assert_eq!(answer.header("content-type"), Some("text/event-stream"), "{path}");
        Events { reader, text: String::new(), searched: 0, is_over: false }
    }
}

/// An answer on its way. Dropping it closes the connection.
pub(crate) struct Open {
    /// Its head, and what was read of its body.
    pub(crate) answer: Answer,
    reader: BufReader<TcpStream>,
}

impl Open {
    /// Reads until the body has these bytes.
    pub(crate) fn until(&mut self, bytes: &[u8]) {
        while !self.answer.body.windows(bytes.len()).any(|window| window == bytes) {
            let piece = piece(&mut self.reader).unwrap();
            self.answer.body.extend(piece.unwrap_or_else(|| panic!("the body ended: {:?}", self.answer)));
        }
    }

    /// Reads until the body has so many bytes.
    pub(crate) fn until_length(&mut self, length: usize) {
        while self.answer.body.len() < length {
            let piece = piece(&mut self.reader).unwrap();
            self.answer.body.extend(piece.unwrap_or_else(|| panic!("the body ended: {:?}", self.answer)));
        }
    }

    /// Reads to the end: whether it ended as HTTP ends a body.
    pub(crate) fn end(&mut self) -> bool {
        let header = self.answer.header("content-length").and_then(|length| length.parse::<usize>().ok());
        if let Some(length) = header {
            let mut rest = vec![0; length.saturating_sub(self.answer.body.len())];
            let ended = self.reader.read_exact(&mut rest).is_ok();
            self.answer.body.extend(rest);
            return ended;
        }
        loop {
            match piece(&mut self.reader) {
                Ok(Some(piece)) => self.answer.body.extend(piece),
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }
}

/// Server-sent events, as they come.
pub(crate) struct Events {
    reader: BufReader<TcpStream>,
    text: String,
    /// Up to here no event ends in the text.
    searched: usize,
    is_over: bool,
}

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) id: Option<u64>,
    pub(crate) data: Value,
}

impl Events {
    /// The next event; `None` at the end of the stream, or when the connection is gone.
    pub(crate) fn next(&mut self) -> Option<Event> {
        loop {
            while let Some(end) = self.text.get(self.searched..).and_then(|rest| rest.find("\n\n")) {
                let rest = self.text.split_off(std::mem::take(&mut self.searched) + end + 2);
                if let Some(event) = parse(&std::mem::replace(&mut self.text, rest)) {
                    return Some(event);
                }
            }
            // Half of an end may be there.
            self.searched = self.text.len() - usize::from(self.text.ends_with('\n'));
            if self.is_over {
                return None;
            }
            match piece(&mut self.reader) {
                Ok(Some(bytes)) => self.text.push_str(std::str::from_utf8(&bytes).unwrap()),
                Ok(None) | Err(_) => self.is_over = true,
            }
        }
    }

    /// The next events, as many.
    pub(crate) fn take(&mut self, count: usize) -> Vec<Event> {
        (0..count).map_while(|_| self.next()).collect()
    }
}

fn parse(text: &str) -> Option<Event> {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
    let data = field("data: ")?;
    Some(Event {
        name: field("event: ").unwrap_or_default(),
        id: field("id: ").map(|id| id.parse().unwrap()),
        data: serde_json::from_str(&data).unwrap(),
    })
}

fn line(reader: &mut impl BufRead) -> std::io::Result<String> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}

fn head(reader: &mut impl BufRead) -> std::io::Result<(u16, Vec<(String, String)>)> {
    let status = line(reader)?;
    let status = status.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or(std::io::ErrorKind::InvalidData)?;
    let mut headers = Vec::new();
    loop {
        let line = line(reader)?;
        let Some((name, value)) = line.split_once(':') else { return Ok((status, headers)) };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
}

/// A piece of a chunked body.
fn piece(reader: &mut impl BufRead) -> std::io::Result<Option<Vec<u8>>> {
    let size = usize::from_str_radix(&line(reader)?, 16).map_err(|_| std::io::ErrorKind::InvalidData)?;
    let mut bytes = vec![0; size];
    reader.read_exact(&mut bytes)?;
    line(reader)?;
    Ok((size > 0).then_some(bytes))
}

/// Reads an answer.
pub(crate) fn read(reader: &mut impl BufRead) -> std::io::Result<Answer> {
    let (status, headers) = head(reader)?;
    let header = |wanted: &str| headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    let mut body = Vec::new();
    if header("transfer-encoding") == Some("chunked") {
        while let Some(piece) = piece(reader)? {
            body.extend(piece);
        }
    } else {
        let length: usize = header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        body.resize(length, 0);
        reader.read_exact(&mut body)?;
    }
    Ok(Answer { status, headers, body })
}

/// The next request or answer of a connection, which has a length: its head, in lower case, and its body. `None` at the end.
pub(crate) fn received(stream: &mut BufReader<TcpStream>) -> Option<(String, String)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).unwrap_or(0) == 0 {
            return None;
        }
    }
    let head = head.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).unwrap();
    Some((head, String::from_utf8(body).unwrap()))
}
