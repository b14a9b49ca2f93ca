//! A proxy before the server, which can cut connections in the middle of a call.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// When connections are cut that carry a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Cut {
    /// Before the server sees the call.
    Before = 1,
    /// After the server has answered it, and before the answer arrives.
    After = 2,
}

/// A proxy.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    cut: AtomicU8,
    /// What a call has to hold to be cut.
    call: Mutex<Vec<u8>>,
    cuts: AtomicUsize,
    connections: AtomicUsize,
}

impl Proxy {
    /// Starts one before the server at a port.
    pub(crate) fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::<Shared>::default();
        thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                for client in listener.incoming().map_while(Result::ok) {
                    shared.connections.fetch_add(1, Ordering::SeqCst);
                    let shared = Arc::clone(&shared);
                    thread::spawn(move || shared.carry(client, server));
                }
            }
        });
        Self { port, shared }
    }

    /// Cuts the next connection that carries a call, once.
    pub(crate) fn cut(&self, cut: Cut, call: &str) {
        *self.shared.call.lock().unwrap() = call.as_bytes().to_vec();
        self.shared.cut.store(cut as u8, Ordering::SeqCst);
    }

    /// How many connections were made.
    pub(crate) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// How many connections were cut.
    pub(crate) fn cuts(&self) -> usize {
        self.shared.cuts.load(Ordering::SeqCst)
    }
}

impl Shared {
    /// Whether a call is cut in this way now; it is so once.
    fn cuts(&self, cut: Cut, sent: &[u8]) -> bool {
        let call = self.call.lock().unwrap();
        let is_it = !call.is_empty() && sent.windows(call.len()).any(|part| part == call.as_slice());
        let cuts = is_it && self.cut.compare_exchange(cut as u8, 0, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        self.cuts.fetch_add(usize::from(cuts), Ordering::SeqCst);
        cuts
    }

    fn carry(&self, mut client: TcpStream, server: u16) {
        let Ok(mut server) = TcpStream::connect(("127.0.0.1", server)) else { return };
        let (mut answers, mut client_end) = (server.try_clone().unwrap(), client.try_clone().unwrap());
        let swallows = Arc::new(AtomicU8::new(0));
        let back = thread::spawn({
            let swallows = Arc::clone(&swallows);
            move || {
                let mut bytes = [0; 64 * 1024];
                while let Ok(count @ 1..) = answers.read(&mut bytes) {
                    if swallows.load(Ordering::SeqCst) == 1 {
                        // It is done on the server, and nobody gets to know.
                        break;
                    }
                    if client_end.write_all(&bytes[..count]).is_err() {
                        break;
                    }
                }
                let _ = client_end.shutdown(Shutdown::Both);
                let _ = answers.shutdown(Shutdown::Both);
            }
        });
        let mut bytes = [0; 64 * 1024];
        while let Ok(count @ 1..) = client.read(&mut bytes) {
            if self.cuts(Cut::Before, &bytes[..count]) {
                break;
            }
            if self.cuts(Cut::After, &bytes[..count]) {
                swallows.store(1, Ordering::SeqCst);
            }
            if server.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = client.shutdown(Shutdown::Both);
        let _ = server.shutdown(Shutdown::Both);
        let _ = back.join();
    }
}
