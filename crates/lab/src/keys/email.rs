//! Realistic e-mail addresses. Names, domains, words and numbers are drawn as often as they occur
//! in the lists of the folder `data`.

use rand::{
    Rng, RngExt,
    distr::{Distribution, weighted::WeightedIndex},
};
use std::str::FromStr;

/// Draws addresses.
#[derive(Debug)]
pub(super) struct Addresses {
    given_names: Frequencies<&'static str>,
    surnames: Frequencies<&'static str>,
    domains: Frequencies<&'static str>,
    domain_endings: Frequencies<&'static str>,
    domain_label_lengths: Frequencies<usize>,
    local_parts: Frequencies<&'static str>,
    word_lengths: Frequencies<usize>,
    number_lengths: Frequencies<usize>,
}

/// The entry of the list of domains for all domains that are too rare to be listed.
const OTHER_DOMAIN: &str = "{other}";

impl Addresses {
    pub(super) fn new() -> Self {
        Self {
            given_names: Frequencies::read(include_str!("../../data/given-names.tsv")),
            surnames: Frequencies::read(include_str!("../../data/surnames.tsv")),
            domains: Frequencies::read(include_str!("../../data/domains.tsv")),
            domain_endings: Frequencies::read(include_str!("../../data/domain-endings.tsv")),
            domain_label_lengths: Frequencies::read(include_str!(
                "../../data/domain-label-lengths.tsv"
            )),
            local_parts: Frequencies::read(include_str!("../../data/local-parts.tsv")),
            word_lengths: Frequencies::read(include_str!("../../data/word-lengths.tsv")),
            number_lengths: Frequencies::read(include_str!("../../data/number-lengths.tsv")),
        }
    }

    /// One address.
    pub(super) fn draw(&self, random: &mut impl Rng) -> String {
        let mut address = String::with_capacity(64);
        self.local_part(&mut address, random);
        address.push('@');
        match *self.domains.draw(random) {
            OTHER_DOMAIN => self.rare_domain(&mut address, random),
            domain => address.push_str(domain),
        }
        // The capacity that a program gives a text that it does not mean to extend.
        address.shrink_to_fit();
        address
    }

    /// `ann.smith`, `asmith`, a word …, and perhaps a number.
    fn local_part(&self, address: &mut String, random: &mut impl Rng) {
        let given = *self.given_names.draw(random);
        let surname = *self.surnames.draw(random);
        let mut rest = *self.local_parts.draw(random);
        while let Some((before, after)) = rest.split_once('{') {
            let (placeholder, after) = after.split_once('}').expect("the list closes its braces");
            address.push_str(before);
            match placeholder {
                "first" => address.push_str(given),
                "f" => address.push_str(&given[..1]),
                "last" => address.push_str(surname),
                "l" => address.push_str(&surname[..1]),
                _ => {
                    let length = *self.word_lengths.draw(random);
                    self.word(address, length, random);
                }
            }
            rest = after;
        }
        address.push_str(rest);
        for _ in 0..*self.number_lengths.draw(random) {
            address.push(char::from(b'0' + random.random_range(0..10)));
        }
    }

    fn rare_domain(&self, address: &mut String, random: &mut impl Rng) {
        let length = *self.domain_label_lengths.draw(random);
        self.word(address, length, random);
        address.push('.');
        address.push_str(self.domain_endings.draw(random));
    }

    /// Letters in sequences that occur in names, cut to the length.
    fn word(&self, address: &mut String, length: usize, random: &mut impl Rng) {
        let end = address.len() + length;
        while address.len() < end {
            address.push_str(self.surnames.draw(random));
        }
        address.truncate(end);
    }
}

/// A list of the folder `data`: entries, drawn as often as the list says.
#[derive(Debug)]
struct Frequencies<T> {
    entries: Vec<T>,
    weights: WeightedIndex<u64>,
}

impl<T: FromStatic> Frequencies<T> {
    /// Parses lines of an entry, a tab, and how often it occurs.
    fn read(list: &'static str) -> Self {
        let (entries, counts): (Vec<_>, Vec<_>) = list
            .lines()
            .map(|line| {
                let (entry, count) = line.split_once('\t').expect("a line has a tab");
                let count: u64 = count.parse().expect("a line ends in a count");
                (T::from_static(entry), count)
            })
            .unzip();
        Self {
            weights: WeightedIndex::new(counts).expect("a list is not empty"),
            entries,
        }
    }

    fn draw(&self, random: &mut impl Rng) -> &T {
        &self.entries[self.weights.sample(random)]
    }
}

/// What an entry of a list can be.
trait FromStatic {
    fn from_static(text: &'static str) -> Self;
}

impl FromStatic for &'static str {
    fn from_static(text: &'static str) -> Self {
        text
    }
}

impl FromStatic for usize {
    fn from_static(text: &'static str) -> Self {
        usize::from_str(text).expect("the entry is a number")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, generator};

    fn some(count: usize) -> Vec<String> {
        let addresses = Addresses::new();
        let mut random = generator(3, Purpose::Keys, 0, 0);
        (0..count).map(|_| addresses.draw(&mut random)).collect()
    }

    #[test]
    fn addresses_are_well_formed() {
        for address in some(20_000) {
            let (local, domain) = address.split_once('@').unwrap();
            assert!(!local.is_empty() && domain.contains('.'), "{address}");
            assert!(!address.contains(['{', '}', ' ']), "{address}");
            assert!(address.is_ascii() && address.len() < 64, "{address}");
        }
    }

    #[test]
    fn parts_occur_as_often_as_the_lists_say() {
        let addresses = some(50_000);
        let share = |of: &dyn Fn(&str) -> bool| {
            let count = addresses.iter().filter(|address| of(address)).count();
            count as f64 / addresses.len() as f64
        };
        // 3058 of 6323 in the list of domains; 574 of 6323 addresses end in a number.
        let gmail = share(&|address| address.ends_with("@gmail.com"));
        assert!((0.46..0.51).contains(&gmail), "{gmail}");
        let numbered = share(&|address| {
            let (local, _) = address.split_once('@').unwrap();
            local.ends_with(|letter: char| letter.is_ascii_digit())
        });
        assert!((0.05..0.15).contains(&numbered), "{numbered}");
    }
}
