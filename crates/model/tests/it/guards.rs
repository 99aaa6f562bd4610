//! Each guard is needed: without it the search finds the way to a broken promise, in a world in which it
//! finds none with it (`worlds`). The checks know of no guard.

use fencepost_core::guard::Guard;
use fencepost_model::search::search;
use fencepost_model::world;

fn is_needed(guard: Guard) {
    let mut shown = 0;
    for world in world::all() {
        for (_, invariant) in world.shows.iter().filter(|(of, _)| *of == guard) {
            let found = search(&world.without(guard));
            let again = format!("fencepost-model --world {} --unsafe {guard}", world.name);
            let counterexample = found.counterexample.unwrap_or_else(|| panic!("none: {again}"));
            println!("{again}\n{counterexample}");
            assert_eq!(counterexample.broken.invariant, *invariant, "{again}");
            shown += 1;
        }
    }
    assert!(shown > 0, "no world shows {guard}");
}

macro_rules! guards {
    ($($name:ident: $guard:ident,)+) => {
        $(#[test] fn $name() { is_needed(Guard::$guard); })+

        #[test]
        fn each_guard_has_its_test() {
            let tested = [$(Guard::$guard),+];
            assert!(Guard::ALL.iter().all(|guard| tested.contains(guard)));
        }
    };
}

guards! {
    own_lease: OwnLease,
    declare_compare_and_set: DeclareCompareAndSet,
    declare_row_lock: DeclareRowLock,
    store_clock: StoreClock,
    start_token: StartToken,
    finish_token: FinishToken,
    owner_alive: OwnerAlive,
    full_ttl: FullTtl,
    fit_to_judge: FitToJudge,
    brake: Brake,
    local_deadline: LocalDeadline,
    absence_under_lock: AbsenceUnderLock,
    owner_word: OwnerWord,
    inventory_number: InventoryNumber,
    epoch: Epoch,
    epoch_reconciling: EpochReconciliation,
    register_order: RegisterOrder,
    beat_order: BeatOrder,
}
