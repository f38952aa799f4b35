//! `LOLWUT`: an aspen, *Populus tremula*, whose leaves tremble in the slightest wind.

use super::{Context, Failure, Next, Outcome};
use crate::resp::{Arguments, number};
use crate::watch;

/// The width of the drawing, if none is asked for, and its bounds.
const WIDTH: usize = 64;
const LEAST_WIDTH: i64 = 24;
const MOST_WIDTH: i64 = 160;

/// Leaves as the wind turns them: their pale sides show.
const LEAVES: &[u8] = b"o0Oo.*&@%";

pub(super) fn lolwut(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let mut words = arguments.skip(1).peekable();
    if words
        .peek()
        .is_some_and(|word| word.eq_ignore_ascii_case(b"version"))
    {
        words.next();
        let version = words.next().and_then(number::parse);
        version.ok_or(Failure::NOT_AN_INTEGER)?;
    }
    let width = match words.next() {
        None => WIDTH,
        Some(word) => {
            let width = number::parse(word).ok_or(Failure::NOT_AN_INTEGER)?;
            usize::try_from(width.clamp(LEAST_WIDTH, MOST_WIDTH)).unwrap_or(WIDTH)
        }
    };
    let seed = watch::now().as_nanos() as u64;
    context.reply.text(&draw(width, seed));
    Ok(Next::Reply)
}

/// Numbers that look random enough for a tree.
struct Wind(u64);

impl Wind {
    fn blow(&mut self, below: usize) -> usize {
        // xorshift64 (Marsaglia, "Xorshift RNGs", 2003).
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }
}

fn draw(width: usize, seed: u64) -> String {
    let mut wind = Wind(seed | 1);
    let height = width / 4;
    let (middle, crown) = (width / 2, height * 3 / 4);
    let mut text = String::new();
    for row in 0..height {
        let mut line = vec![b' '; width];
        if row < crown {
            // Widest a little below its middle, as an aspen's crown is.
            let at = (row * 2 + 1) as f64 / (crown * 2) as f64;
            let half = (at.powf(0.7) * (1.0 - at).powf(0.35) * width as f64 * 0.62) as usize;
            let end = (middle + half).min(width);
            for place in &mut line[middle.saturating_sub(half)..end] {
                if wind.blow(5) > 0 {
                    *place = LEAVES[wind.blow(LEAVES.len())];
                }
            }
        } else if wind.blow(6) == 0 {
            // A leaf that has let go.
            line[wind.blow(width)] = b'*';
        }
        if row * 3 >= crown {
            // White bark with the dark eyes of lost branches.
            let bark = if wind.blow(4) == 0 { b"|e|" } else { b"| |" };
            line[middle - 1..middle + 2].copy_from_slice(bark);
        }
        let line = String::from_utf8_lossy(&line);
        text += line.trim_end();
        text.push('\n');
    }
    text += &"~".repeat(width);
    text += "\n\nThe wind is ";
    text += ["a breath", "light", "fresh", "yours"][wind.blow(4)];
    text += ", and every leaf answers at once. So does every thread.\nTremula ver. ";
    text += env!("CARGO_PKG_VERSION");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_stays_within_its_width_and_never_twice_the_same() {
        for width in [LEAST_WIDTH, 64, MOST_WIDTH] {
            let width = usize::try_from(width).expect("a width");
            let (one, other) = (draw(width, 1), draw(width, 99));
            assert_ne!(one, other);
            let lines: Vec<_> = one.lines().collect();
            assert!(
                lines[..width / 4 + 1]
                    .iter()
                    .all(|line| line.len() <= width)
            );
            assert!(one.contains("Tremula ver. ") && one.contains('|'));
        }
    }
}
