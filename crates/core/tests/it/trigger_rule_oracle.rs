//! Every trigger rule against a naive oracle over lists of upstream states, written from the
//! sentences of Airflow's documentation.

use fencepost_core::trigger_rule::{Decision, TriggerRule, UpstreamCounts};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Up {
    Pending,
    Success,
    Failed,
    Skipped,
    UpstreamFailed,
}

/// What the documentation says: first whether the rule can still come true and whether it has,
/// then what a rule that cannot come true any more leaves behind.
fn oracle(rule: TriggerRule, ups: &[Up]) -> Decision {
    let any = |state| ups.contains(&state);
    let all_done = !any(Up::Pending);
    let broken = any(Up::Failed) || any(Up::UpstreamFailed);
    let only = |allowed: &[Up]| ups.iter().all(|up| allowed.contains(up));
    if ups.is_empty() {
        return Decision::Ready;
    }
    let (ready, impossible) = match rule {
        // "runs at any time"
        TriggerRule::Always => (true, false),
        // "all upstream tasks are done with their execution"
        TriggerRule::AllDone => (all_done, false),
        // "all upstream tasks have succeeded"
        TriggerRule::AllSuccess => (only(&[Up::Success]), broken || any(Up::Skipped)),
        // "all upstream tasks are in a failed or upstream_failed state"
        TriggerRule::AllFailed => {
            (only(&[Up::Failed, Up::UpstreamFailed]), any(Up::Success) || any(Up::Skipped))
        }
        // "all upstream tasks are in a skipped state"
        TriggerRule::AllSkipped => (only(&[Up::Skipped]), any(Up::Success) || broken),
        // "all non-skipped upstream tasks are done and at least one has succeeded"
        TriggerRule::AllDoneMinOneSuccess => {
            (all_done && any(Up::Success), all_done && !any(Up::Success))
        }
        // "at least one upstream task has failed (does not wait for the others)"
        TriggerRule::OneFailed => (broken, all_done && !broken),
        // "at least one upstream task has succeeded (does not wait for the others)"
        TriggerRule::OneSuccess => (any(Up::Success), all_done && !any(Up::Success)),
        // "at least one upstream task succeeded or failed"
        TriggerRule::OneDone => {
            let one = any(Up::Success) || any(Up::Failed);
            (one, all_done && !one)
        }
        // "all upstream tasks have succeeded or been skipped"
        TriggerRule::NoneFailed => (only(&[Up::Success, Up::Skipped]), broken),
        // "... and at least one upstream task has succeeded"
        TriggerRule::NoneFailedMinOneSuccess => {
            let fine = only(&[Up::Success, Up::Skipped]);
            (fine && any(Up::Success), broken || (all_done && !any(Up::Success)))
        }
        // "no upstream task is in a skipped state"
        TriggerRule::NoneSkipped => (all_done && !any(Up::Skipped), any(Up::Skipped)),
    };
    let failure_spreads = matches!(
        rule,
        TriggerRule::AllSuccess
            | TriggerRule::OneSuccess
            | TriggerRule::NoneFailed
            | TriggerRule::NoneFailedMinOneSuccess
            | TriggerRule::AllDoneMinOneSuccess
    );
    match (ready, impossible) {
        (true, _) => Decision::Ready,
        (false, true) if failure_spreads && broken => Decision::UpstreamFailed,
        (false, true) => Decision::Skip,
        (false, false) => Decision::Wait,
    }
}

#[test]
fn every_rule_equals_the_documented_one_for_up_to_three_of_each_state() {
    let states = [Up::Success, Up::Failed, Up::Skipped, Up::UpstreamFailed, Up::Pending];
    let mut checked = 0;
    for number in 0..4_u32.pow(5) {
        let counts: Vec<u32> = (0..5).map(|digit| (number >> (2 * digit)) & 3).collect();
        let ups: Vec<Up> = states
            .iter()
            .zip(&counts)
            .flat_map(|(state, count)| std::iter::repeat_n(*state, *count as usize))
            .collect();
        let up = UpstreamCounts {
            total: counts.iter().sum(),
            success: counts[0],
            failed: counts[1],
            skipped: counts[2],
            upstream_failed: counts[3],
            removed: 0,
        };
        for (rule, name) in TriggerRule::ALL {
            assert_eq!(rule.decide(&up), oracle(rule, &ups), "{name} with {up:?}");
            checked += 1;
        }
    }
    assert_eq!(checked, 12 * 1024);
}

#[test]
fn a_decision_once_made_is_not_taken_back_by_further_ends() {
    for number in 0..4_u32.pow(4) {
        let count = |digit: u32| (number >> (2 * digit)) & 3;
        let later = UpstreamCounts {
            total: count(0) + count(1) + count(2) + count(3) + 1,
            success: count(0),
            failed: count(1),
            skipped: count(2),
            upstream_failed: count(3),
            removed: 0,
        };
        for (rule, name) in TriggerRule::ALL {
            let decided = rule.decide(&later);
            if matches!(decided, Decision::Skip | Decision::UpstreamFailed) {
                for end in 0..4 {
                    let mut more = later;
                    match end {
                        0 => more.success += 1,
                        1 => more.failed += 1,
                        2 => more.skipped += 1,
                        _ => more.upstream_failed += 1,
                    }
                    assert_ne!(rule.decide(&more), Decision::Ready, "{name} after {later:?}");
                }
            }
        }
    }
}

#[test]
fn a_removed_instance_never_fails_its_downstream() {
    for (rule, name) in TriggerRule::ALL {
        let up = UpstreamCounts { total: 3, success: 2, removed: 1, ..UpstreamCounts::default() };
        assert_ne!(rule.decide(&up), Decision::UpstreamFailed, "{name}");
    }
}

#[test]
fn names_read_back() {
    for (rule, name) in TriggerRule::ALL {
        assert_eq!(TriggerRule::parse(name), Some(rule));
        assert_eq!(rule.as_str(), name);
    }
    assert_eq!(TriggerRule::parse("all_sucess"), None);
}
