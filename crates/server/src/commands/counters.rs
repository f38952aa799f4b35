//! Commands on values as numbers.

use super::{Context, Failure, Next, Outcome};
use crate::extended::Extended;
use crate::resp::{
    Arguments,
    number::{self, Digits},
};
use tremula_store::{Key, Lifetime, Update, Value};

pub(super) fn incr(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    add(context, arguments.get(1), 1)
}

pub(super) fn decr(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    add(context, arguments.get(1), -1)
}

pub(super) fn incrby(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let increment = number::parse(arguments.get(2)).ok_or(Failure::NOT_AN_INTEGER)?;
    add(context, arguments.get(1), increment)
}

pub(super) fn decrby(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let decrement = number::parse(arguments.get(2)).ok_or(Failure::NOT_AN_INTEGER)?;
    let increment = decrement.checked_neg().ok_or(Failure::DECREMENT_OVERFLOW)?;
    add(context, arguments.get(1), increment)
}

/// Adds to the integer under `key`. An absent key counts as zero.
fn add(context: &mut Context<'_>, key: &[u8], increment: i64) -> Outcome {
    let mut sum = Err(Failure::NOT_AN_INTEGER);
    let values = context.values();
    let mut decide = |current: Option<&[u8]>| {
        sum = current
            .map_or(Some(0), number::parse)
            .ok_or(Failure::NOT_AN_INTEGER)
            .and_then(|number| number.checked_add(increment).ok_or(Failure::OVERFLOW));
        match &sum {
            Ok(sum) => Update::Put(Value::from(Digits::new(*sum).as_bytes())),
            Err(_) => Update::Keep,
        }
    };
    context
        .commit(|effects| values.update(effects, Key::from(key), Lifetime::Kept, &mut decide))?;
    context.reply.integer(sum?);
    Ok(Next::Reply)
}

pub(super) fn incrbyfloat(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let increment = Extended::parse(arguments.get(2));
    let mut sum = Err(Failure::NOT_A_FLOAT);
    let (key, values) = (Key::from(arguments.get(1)), context.values());
    let mut decide = |current: Option<&[u8]>| {
        sum = add_float(current, increment.as_ref());
        match &sum {
            Ok(text) => Update::Put(Value::from(text.as_bytes())),
            Err(_) => Update::Keep,
        }
    };
    context.commit(|effects| values.update(effects, key, Lifetime::Kept, &mut decide))?;
    context.reply.bulk(sum?.as_bytes());
    Ok(Next::Reply)
}

fn add_float(current: Option<&[u8]>, increment: Option<&Extended>) -> Result<String, Failure> {
    let current = Extended::parse(current.unwrap_or(b"0")).ok_or(Failure::NOT_A_FLOAT)?;
    let increment = increment.ok_or(Failure::NOT_A_FLOAT)?;
    let sum = current.add(increment).ok_or(Failure::NAN_OR_INFINITY)?;
    Ok(sum.print())
}
