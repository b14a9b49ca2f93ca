//! Which addresses an upstream's name may lead to.
//!
//! A name is looked up, its addresses are judged, and one that was judged is connected to: nobody who answers for a name can lead
//! the server to another address between the two.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::dns::Name;
use tower_service::Service;

/// What an address belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// The internet.
    Public,
    /// This machine, or a network of somebody's own.
    Private,
    /// A link, where clouds keep the secrets of their machines; or none that a server has.
    Never,
}

/// Where the secrets of a machine at Amazon are, by IPv6.
const METADATA: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

pub(super) fn reach(ip: IpAddr) -> Reach {
    match ip.to_canonical() {
        IpAddr::V4(ip) => reach_v4(ip),
        IpAddr::V6(ip) => reach_v6(ip),
    }
}

fn reach_v4(ip: Ipv4Addr) -> Reach {
    match ip.octets() {
        [0 | 224.., ..] | [169, 254, ..] => Reach::Never,
        [10 | 127, ..] | [100, 64..=127, ..] | [172, 16..=31, ..] | [192, 168, ..] => Reach::Private,
        // Assignments of protocols, examples, benchmarks. A cloud has its secrets at 192.0.0.192.
        [192, 0, 0 | 2, _] | [198, 18 | 19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => Reach::Never,
        _ => Reach::Public,
    }
}

fn reach_v6(ip: Ipv6Addr) -> Reach {
    let [a, b, c, d, e, f, g, h] = ip.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        reach_v4(Ipv4Addr::new(a, b, c, d))
    };
    match [a, b, c, d, e, f] {
        _ if ip == METADATA || ip.is_unspecified() => Reach::Never,
        _ if ip.is_loopback() => Reach::Private,
        // An address of IPv4 in one of IPv6: compatible, translated, and by way of a relay.
        [0, 0, 0, 0, 0, 0] | [0, 0, 0, 0, 0xffff, 0] | [0x64, 0xff9b, 0, 0, 0, 0] => embedded(g, h),
        [0x2002, high, low, ..] => embedded(high, low),
        [0xfc00..=0xfdff, ..] => Reach::Private,
        // The rest outside of what is given out: links, sites, groups, and what nobody has.
        [0x2000..=0x3fff, ..] if a != 0x2001 || b != 0xdb8 => Reach::Public,
        _ => Reach::Never,
    }
}

/// Looks names up, and hands on only addresses that an upstream may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Checked {
    /// Whether private addresses are among them.
    pub(super) private: bool,
}

/// The error if a name leads nowhere else.
#[derive(Debug, thiserror::Error)]
#[error("the name leads to {0} alone, which no upstream may have here")]
pub(super) struct NotAllowed(IpAddr);

impl Checked {
    fn allowed(self, found: Vec<SocketAddr>) -> io::Result<Vec<SocketAddr>> {
        let may = |address: &SocketAddr| match reach(address.ip()) {
            Reach::Public => true,
            Reach::Private => self.private,
            Reach::Never => false,
        };
        let (allowed, refused): (Vec<_>, Vec<_>) = found.into_iter().partition(may);
        match (allowed.is_empty(), refused.first()) {
            (true, Some(refused)) => Err(io::Error::new(io::ErrorKind::PermissionDenied, NotAllowed(refused.ip()))),
            _ => Ok(allowed),
        }
    }
}

impl Service<Name> for Checked {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let checked = *self;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(checked.allowed(found.collect())?.into_iter())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_internet_is_public() {
        let table = [
            (
                Reach::Public,
                &["1.1.1.1", "172.15.0.1", "172.32.0.1", "100.63.0.1", "2606:4700::1111", "::ffff:8.8.8.8"][..],
            ),
            (Reach::Public, &["64:ff9b::808:808", "2002:808:808::1"]),
            (Reach::Private, &["127.0.0.1", "127.9.9.9", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "::1"]),
            (
                Reach::Private,
                &["::ffff:127.0.0.1", "::ffff:10.0.0.1", "fd12::1", "64:ff9b::a00:1", "2002:a00:1::1", "::a00:1"],
            ),
            (Reach::Never, &["0.0.0.0", "0.1.2.3", "169.254.169.254", "::ffff:169.254.169.254", "fd00:ec2::254", "::"]),
            (Reach::Never, &["fe80::1", "fec0::1", "ff02::1", "224.0.0.1", "255.255.255.255", "64:ff9b::a9fe:a9fe"]),
            (
                Reach::Never,
                &["2002:a9fe:a9fe::1", "::169.254.169.254", "2001:db8::1", "192.0.0.192", "100::1", "240.0.0.1"],
            ),
        ];
        for (expected, addresses) in table {
            for address in addresses {
                assert_eq!(reach(address.parse().unwrap()), expected, "{address}");
            }
        }
    }

    #[test]
    fn a_name_leads_only_to_addresses_that_were_judged() {
        let of = |private, addresses: &[&str]| {
            let found = addresses.iter().map(|ip| SocketAddr::new(ip.parse().unwrap(), 0)).collect();
            Checked { private }
                .allowed(found)
                .map(|allowed| allowed.iter().map(|a| a.ip().to_string()).collect::<Vec<_>>())
        };
        assert_eq!(of(false, &["10.0.0.1", "1.1.1.1"]).unwrap(), ["1.1.1.1"]);
        assert_eq!(of(true, &["10.0.0.1", "169.254.169.254"]).unwrap(), ["10.0.0.1"]);
        assert!(of(false, &["10.0.0.1"]).unwrap_err().to_string().contains("10.0.0.1"));
        assert!(of(true, &["169.254.169.254"]).is_err());
        assert!(of(false, &[]).unwrap().is_empty());
    }
}
