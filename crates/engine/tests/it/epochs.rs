//! A server that is another one than the epoch was made on: nothing is dispatched in the old epoch, and
//! the next pass dispatches in a new one (I2, I20).

use crate::world::{Place, World};
use fencepost_engine::Pass;
use fencepost_engine::dispatcher::Dispatcher;
use fencepost_engine::scheduler::Scheduler;
use fencepost_store::query::listing::attempts::{AttemptFilter, page};
use fencepost_store::query::listing::events::{self, EventFilter};

const ONE: &str = "
dag_id: d
tasks:
  t: {run: x}
";

/// The epochs of the attempts that are queued.
async fn queued(world: &World) -> Vec<u32> {
    let tx = world.cx.store.read("look").await.unwrap();
    let filter = AttemptFilter { states: ",queued,".into(), ..AttemptFilter::default() };
    page(&tx, 0, &filter, 10).await.unwrap().iter().map(|token| token.epoch()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i2_on_another_server_the_next_pass_dispatches_in_a_new_epoch() {
    let world = World::at(Place::database(), &[ONE], World::settings(), 1).await;
    world.trigger("d", "r").await;
    Scheduler.pass(&world.cx).await.unwrap();
    let Place::Database(database) = &world.place else { panic!("it is on a server") };
    database.sql("UPDATE installation SET timeline = '000000AA'").unwrap();
    let report = Dispatcher.pass(&world.cx).await.unwrap();
    assert_eq!((report.moved, queued(&world).await), (0, vec![]));
    assert!(report.next_due.is_some(), "it is looked at again at once");
    Dispatcher.pass(&world.cx).await.unwrap();
    assert_eq!(queued(&world).await, [2]);
    let tx = world.cx.store.read("look").await.unwrap();
    let filter = EventFilter { kinds: ",epoch_raised,".into(), ..EventFilter::default() };
    assert_eq!(events::page(&tx, 0, &filter, 10).await.unwrap().len(), 1);
}
