//! How many atoms the clients of each address have made. Atoms are never freed, so a client that
//! connects again must not get another share of them.

use crate::limits::TermLimits;
use crate::lock::lock;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Mutex;
use tremula_table::term::AtomQuota;

/// The quotas of atoms, by address.
#[derive(Default)]
pub(crate) struct AtomQuotas(Mutex<HashMap<IpAddr, AtomQuota>>);

/// From this number of addresses on, those that have made no atom are forgotten when another comes.
/// The others are at most as many as there are atoms.
const FEW: usize = if cfg!(test) { 4 } else { 10_000 };

impl AtomQuotas {
    /// The quota of the clients of this address.
    pub(crate) fn of(&self, address: IpAddr, limits: &TermLimits) -> AtomQuota {
        let mut quotas = lock(&self.0);
        let machine = machine(address);
        if quotas.len() >= FEW && !quotas.contains_key(&machine) {
            quotas.retain(|_, quota| quota.made() > 0);
        }
        quotas
            .entry(machine)
            .or_insert_with(|| limits.atom_quota())
            .clone()
    }
}

/// The address that stands for all that one machine may have: for all loopback addresses, and for
/// all addresses of version 6 with the same first half.
pub(crate) fn machine(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        address if address.is_loopback() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(address) => {
            let network = address.to_bits() >> 64 << 64;
            IpAddr::V6(network.into())
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tremula_table::term::{Limits, Term};

    #[test]
    fn clients_of_one_address_share_a_quota() {
        let (quotas, limits) = (AtomQuotas::default(), TermLimits::default());
        let quota = |address: &str| quotas.of(address.parse().unwrap(), &limits);
        for (one, other, is_same) in [
            ("10.0.0.1", "10.0.0.1", true),
            ("10.0.0.1", "::ffff:10.0.0.1", true),
            ("10.0.0.1", "10.0.0.2", false),
            ("127.0.0.1", "127.1.2.3", true),
            ("127.0.0.1", "::1", true),
            ("2001:db8::1", "2001:db8::ffff:1", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
        ] {
            assert_eq!(quota(one) == quota(other), is_same, "{one} {other}");
        }
    }

    #[test]
    fn those_who_have_made_no_atom_are_forgotten() {
        let (quotas, limits) = (AtomQuotas::default(), TermLimits::default());
        let first = quotas.of(IpAddr::from([10, 0, 0, 0]), &limits);
        let terms = Limits::default().atom_quota(Some(first.clone()));
        assert!(Term::parse("an_atom_of_the_first_address", &terms).is_ok());
        for number in 1..100 {
            quotas.of(IpAddr::from([10, 0, 0, number]), &limits);
        }
        assert!(lock(&quotas.0).len() <= FEW + 1);
        assert_eq!(quotas.of(IpAddr::from([10, 0, 0, 0]), &limits), first);
    }
}
