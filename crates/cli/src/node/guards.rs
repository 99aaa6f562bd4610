//! Guards that are off: `FENCEPOST_UNSAFE=NAME,...`, for the torture harness, whose checker has to see
//! what breaks then.
//!
//! Only in builds with the feature `guard-switches`. Other builds refuse the variable rather than
//! ignore it.

use crate::environment::Environment;
use crate::error::{CliError, Outcome};
use fencepost_core::guard::Guards;

const VARIABLE: &str = "FENCEPOST_UNSAFE";

/// Which guards are on.
#[cfg(not(feature = "guard-switches"))]
pub(crate) fn guards(env: &Environment) -> Outcome<Guards> {
    if env.get(VARIABLE).is_some() {
        return Err(CliError::usage(format!(
            "{VARIABLE} is set, and this build has all guards on"
        ))
        .hint("build with --features guard-switches, or unset it"));
    }
    Ok(Guards::all())
}

/// Which guards are on.
#[cfg(feature = "guard-switches")]
pub(crate) fn guards(env: &Environment) -> Outcome<Guards> {
    use fencepost_core::guard::Guard;
    let names = env.get(VARIABLE).unwrap_or_default();
    let off = names.split(',').map(str::trim).filter(|name| !name.is_empty());
    off.into_iter().try_fold(Guards::all(), |guards, name| {
        let known = Guard::parse(name);
        let known = known.ok_or_else(|| CliError::usage(format!("no guard `{name}`")))?;
        Ok(guards.without(known))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: Option<&str>) -> Outcome<Guards> {
        let variables: Vec<(&str, &str)> =
            value.map(|value| (VARIABLE, value)).into_iter().collect();
        guards(&Environment::of(&variables))
    }

    #[test]
    fn without_the_variable_every_guard_is_on() {
        assert!(of(None).is_ok_and(|guards| guards == Guards::all()));
    }

    #[cfg(not(feature = "guard-switches"))]
    #[test]
    fn a_build_that_is_shipped_refuses_to_have_a_guard_off() {
        assert!(of(Some("epoch")).is_err_and(|error| error.to_string().contains(VARIABLE)));
    }

    #[cfg(feature = "guard-switches")]
    #[test]
    fn the_guards_that_are_named_are_off_and_an_unknown_name_is_refused() {
        use fencepost_core::guard::Guard;
        let some = of(Some("epoch, full_ttl")).unwrap_or_default();
        let off = [Guard::Epoch, Guard::FullTtl];
        assert!(Guard::ALL.iter().all(|guard| some.on(*guard) != off.contains(guard)));
        assert!(of(Some("luck")).is_err());
    }
}
